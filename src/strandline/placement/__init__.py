"""Decides which brokers hold the replicas of a partition. Pure.

Map:    spread.py (distinct brokers, spread evenly over regions, zones, racks and hosts),
        topology/ (labels, and candidates as bits), policy/ (what is wanted, read strictly),
        survival/ (what a placement survives), constraints/ (one file per family),
        solver/ (policy and brokers in, placements or a refusal out).
Source: design section 7; decision 0008."""
