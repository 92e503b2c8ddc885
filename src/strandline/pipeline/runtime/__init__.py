"""What a Spark job runs on: a Java runtime, the pinned jars, one session.

Why:    a job must not know where it runs.
Map:    java.py       finds or installs a Java runtime
        jars.py       the pinned jars and their directory
        resolvers.py  where missing jars come from
        session.py    a Spark session here, on a cluster or inside spark-submit
        overrides.py  settings for the length of one statement
        spark_errors.py  Spark's errors in one line
Source: docs/pipelines.md, "What it needs"."""
