"""Compares what buckets hold of a partition with its log, with replicas and with each other.

Why:    old records are in buckets alone; a proof that leaves them out proves little.
How:    the leader's state names the live objects -> each object is read once, by a thread or an
        executor, and every checksum is compared -> digests of its ranges are compared with those
        of one sound replica, and of the other buckets -> the first difference is narrowed down.
Map:    objects.py  a task for one object, and what it finds
        walk.py     the batches of one object, each verified
        reading.py  reads one object out of its bucket
        tiers.py    what the partitions' leaders say of their buckets
        lines.py    objects that are not in line, and records that are nowhere
        plan.py     ranges of one partition's objects
        partition.py the audit of one partition's buckets
        phase.py    all partitions, from the leaders' states to findings
Source: docs/pipelines/audit.md, decisions 0052 and 0058."""
