"""Measurements: each figure of bench/README.md has a command here.

Map:    run.py (`make bench`: all scenarios, or some), load.py (a produce load that costs next to
        nothing), paced.py (a paced producer with latencies), clusters.py (clusters of Strandline
        and of Kafka to measure), partitions.py (thousands of them), restart.py (a killed broker
        with much data), alone.py (one of these two with other numbers), placement.py (where
        partitions go), spark_bucket.py (Spark reads tiered segments)."""
