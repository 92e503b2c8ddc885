"""Producers' writes.

Map:    produced_batches.py the batches for one partition, and what its topic asks of them
        partition_results.py the answer about one partition
"""
