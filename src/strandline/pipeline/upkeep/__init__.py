"""Keeps lake tables small and fast: compacts small files, expires old snapshots, clears the log.

Why:    a job that commits every few seconds leaves thousands of small files, and each snapshot
        keeps the files of its time.
Map:    options.py     what is small, what is old
        compaction.py  which table partitions to compact
        delta.py       what upkeep asks of Delta
        litter.py      what killed jobs leave in a local log
        table.py       one round of upkeep
Source: docs/pipelines/upkeep.md, decisions/0055."""
