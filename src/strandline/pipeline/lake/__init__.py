"""The lake job: topics into Delta tables, each record one row, exactly once.

Why:    analysts want a table that equals the log, without a program of their own.
Map:    options.py  what a job is told, checked before Spark starts
        job.py      topic -> table
        table.py    a table's live files, from its log alone, without Spark
Source: docs/pipelines.md, decisions/0003."""
