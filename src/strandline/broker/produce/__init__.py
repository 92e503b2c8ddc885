"""Producers' writes.

Map:    produce_terms.py    what a topic asks of producers
        produced_batches.py the batches for one partition
        partition_results.py the answer about one partition
"""
