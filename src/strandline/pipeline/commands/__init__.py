"""The command line of the pipelines: one file for each command of `strandline pipeline`.

Why:    people and programs start the same jobs with the same words, here and under spark-submit.
How:    each command checks its options, then opens a session and hands over; pyspark is imported
        only then, so that `--help` stays instant. Tables and progress for people on stderr, with
        --json one object on stdout.
Map:    app.py           the app with all commands, and how it reports errors
        lake.py          topics into tables
        lake_options.py  the options of lake
        backfill.py      what buckets hold of topics, into tables
        aggregate.py     means over a table
        audit.py         whether all replicas hold the same records
        plan.py          what placement policies are worth
        plan_options.py  its options
        upkeep.py        small files and old snapshots of a table
        upkeep_options.py  its options
        replay.py        dead letters that fit a schema now
        jars.py          the jars that jobs need
        java.py          the Java runtime that jobs use
        options.py       options that commands share, each with its help
        output.py        text for people, JSON for programs
Source: docs/pipelines.md."""
