"""Decides which brokers hold the replicas of a partition, proves it, and explains it. Pure.

Map:    policy/ (the user's document, read strictly), topology/ (labels, and candidates as bits),
        constraints/ (one file per family), solver/ (policy and brokers in, placements or a refusal
        out), survival/ (the losses that a placement survives), explain/ (reasons, latencies and
        costs); buckets.py (the buckets that may hold a topic's data); writers.py (whether a leader
        moves to the region that produces most), spread.py (topics without policy: distinct
        brokers, spread evenly over regions, zones, racks and hosts).
Source: design section 7; decision 0008."""
