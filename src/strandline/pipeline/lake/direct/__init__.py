"""Appends a batch without Java's writer: Python workers write the table's Parquet files.

Why:    Java takes 8 us of CPU to write a row that Arrow writes in 0.3 us.
Map:    plan.py         whether a job and its table can do without Spark's writer
        run.py          a batch's files, by the workers of a session
        table_rows.py   a worker's records -> the table's columns
        partitions.py   partition columns in Arrow
        files.py        what a worker does: rows -> Parquet files, each an `add` of Delta's log
        statistics.py   Delta's statistics of a file
        commit.py       the commit, by Delta's own transaction
Source: decisions/0064."""
