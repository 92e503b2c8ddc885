"""What a placement survives, and which failures stop its writes or lose its data. Pure.

Map:    losses.py (the worst choice of domains), replicas.py (replicas with roles and labels, and
        their quorum), report.py (every level and combination that is survived), failures.py (the
        smallest sets that are not), goals.py (whether `survive` holds), restarts.py
        (in which order brokers may be restarted).
Source: design sections 6 and 7; decision 0008."""
