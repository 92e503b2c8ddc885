"""Topics into lake tables with Spark, exactly once, on this machine or on a cluster.

Why:    the log is where data arrives; analysts want a table that equals it, without a program of
        their own.
How:    Kafka protocol -> Spark structured streaming -> Delta table -> aggregates. Only this room
        knows Spark, and it reaches brokers only over the wire, so every job runs against any
        Kafka-compatible cluster.
Map:    java.py (finds or installs a Java runtime), jars.py and resolvers.py (the pinned jars, and
        where they come from), session.py (a Spark session here or inside spark-submit), options.py
        (what a lake job is told), lake.py (topic -> table), aggregate.py (table -> means by group),
        table.py (a table's live files without Spark), commands.py (the command line),
        command_options.py (its options), __main__.py (the same command line as spark-submit's main
        file).
Source: design section 12, docs/pipelines.md, decisions/0003."""
