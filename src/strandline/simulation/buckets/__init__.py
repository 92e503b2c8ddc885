"""Simulated object stores.

Map:    bucket.py   a bucket: what it holds, and what goes wrong with it
        backend.py  one process's requests to it
        buckets.py  all buckets of a run
        audit.py    what replicas believe, and what buckets have
        truth.py    a bucket as it is, without time or faults
        watch.py    exports and deletions, as they happen; orphans, at the end
"""
