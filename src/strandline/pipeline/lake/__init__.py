"""The lake job: topics into Delta tables, each record one row, exactly once.

Why:    analysts want a table that equals the log, without a program of their own.
Map:    options.py         what a job is told, checked before Spark starts
        kafka_settings.py  the properties that the connector's client takes, and which are secret
        start.py           where a table begins in a topic
        run.py             jobs of one run: locks, one Spark session, batches in turn
        job.py             one table's loop of batches
        plan.py            what the next batch reads, and what is missing
        progress.py        how far a table is, in its own commits
        cluster.py         what a job asks the cluster
        java_cluster.py    the same by Kafka's own client, over TLS and with a login
        lock.py            one job at a time for a table on a local disk
        source.py          a batch's records as a data frame
        rows.py            records -> rows: keys, values, partition columns
        residency.py       where a topic's table may lie
        upsert.py          the newest record of each key, merged into the table
        evolution.py       whether a table takes a job's rows, and what must change
        casting.py         rows in the type of their table, by name
        writer.py          commits: rows, dead letters, gaps
        direct/            appends without Spark's writer: workers write the files
        delta_log.py       the commits of a table, from its log alone
        hadoop_log.py      the same log through Spark's file systems
        table.py           a table's live files, from its log alone
Source: docs/pipelines/lake.md, decisions/0050."""
