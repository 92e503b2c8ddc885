"""Topics into lake tables with Spark, exactly once, on this machine or on a cluster.

Why:    the log is where data arrives; analysts want a table that equals it, without a program of
        their own.
How:    Kafka protocol -> planned batches in Spark -> Delta table -> aggregates. It reaches brokers
        only over the wire, so every job runs against any Kafka-compatible cluster.
Map:    lake/         topics -> Delta tables
        upkeep/       small files compacted, old snapshots expired
        replay/       dead letters into the table that they miss
        values/       bytes of records -> typed columns, strictly
        audit/        whether all replicas of topics hold the same records
        aggregate.py  table -> means by group
        reports/      plots and self-contained HTML pages
        plan/         what a placement policy is worth
        runtime/      what a job runs on: Java, the pinned jars, a Spark session
        commands/     the command line, one file for each command
        locations.py, questions.py, settings.py  arguments of commands: tables, means, KEY=VALUE
        __main__.py   the same command line as spark-submit's main file
Source: design section 12, docs/pipelines.md, decisions/0050."""
