"""Compares every replica of topics by digests, without moving records; and what buckets hold.

Why:    the daily proof that no acknowledged record was lost, on any replica.
How:    look at all replicas -> plan ranges -> each broker digests its own bytes -> compare
        -> narrow the first difference to an offset -> report. The brokers do the work; threads or
        Spark only ask them.
Map:    results.py    what an audit finds
        replicas.py   how far each replica is
        planning.py   ranges of offsets
        tasks.py      one request to one broker, with retries
        runners.py    many tasks: threads here, or a Spark job
        comparing.py  digests of one range from several replicas
        narrowing.py  the first offset that differs
        job.py        the audit of a cluster
        partitions.py the audit of one partition
        buckets/      objects of tiered storage, compared with replicas and each other
        wire.py       counts bytes on the wire
        report.py     the page; text.py (lines for a terminal); table.py (a Parquet file)
Source: docs/pipelines/audit.md, decision 0052."""
