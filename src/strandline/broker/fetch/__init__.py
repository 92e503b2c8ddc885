"""Consumers' reads.

Map:    fetching.py         one fetch over many partitions
        sessions.py         what consumers read, remembered
        session_requests.py requests in a session
        nearest_replica.py  which replica is near a consumer
"""
