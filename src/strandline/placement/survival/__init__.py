"""What a placement survives, and which failures stop its writes or lose its data. Pure.

Map:    losses.py (the worst choice of domains), replicas.py (replicas with roles and labels, and
        their quorum), courses.py (what becomes of a partition, by how many are left), fates.py (by
        which choice of losses: what every answer reads), cut_links.py (who may go on while a link
        is cut), regions.py (which regions are taken for down), report.py (every level and
        combination that is survived), failures.py (the smallest sets that are not), goals.py
        (whether `survive` holds), restarts.py (in which order brokers may be restarted).
Source: design sections 6 and 7; decision 0008."""
