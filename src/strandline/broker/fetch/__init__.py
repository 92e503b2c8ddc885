"""Consumers' reads.

Map:    fetching.py         one fetch over many partitions
        nearest_replica.py  which replica is near a consumer
"""
