"""The hard and soft constraints of placements: one file per family, factory -> evaluator. Pure.

Map:    contract.py (the interface of a constraint), reasons.py (why a broker is not eligible),
        static.py (constraints on the broker alone), counting.py (replicas by domain).
        Hard: active.py, capacity.py, distinct_host.py, selectors.py, pinned.py, residency.py,
        labelled.py, spread.py, even.py, label_count.py, survive.py.
        Soft: even_spread.py (distinct regions, zones, ...), preferred.py, leader_reach.py,
        nearest_quorum.py, least_allocated.py.
Source: design section 7; decision 0008."""
