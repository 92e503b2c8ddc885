"""The main promise, played through in front of you: `make demo`.

Why:    you can watch the claim "no acknowledged record is lost with a region".
Map:    run.py (the acts, in order: read this first), cluster.py (the cluster, through the command
        line alone), flights.py (the data), producer.py and consumer.py (the client processes),
        ledger.py (what each client saw, as files of numbers), watch.py (leaders, from the
        brokers' Metadata), lake.py (the Spark jobs and what they wrote), reports.py (the
        audit of all replicas, and a plot), history.py (reading out of buckets alone, also by a
        second cluster), checks.py (the promises, each held against the ledgers), screen.py (how
        it looks)."""
