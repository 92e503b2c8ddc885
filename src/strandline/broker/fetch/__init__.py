"""Consumers' reads.

Map:    fetching.py         one fetch over many partitions
        remote_reads.py     its partitions whose records are in buckets only
        remote_log.py       such records, for all handlers
        checks.py           whether a replica may answer one
        cache_sweep.py      removes cached records of deleted topics
        sessions.py         what consumers read, remembered
        session_requests.py requests in a session
        nearest_replica.py  which replica is near a consumer
        nearer_replica.py   whether the leader names such a replica
"""
