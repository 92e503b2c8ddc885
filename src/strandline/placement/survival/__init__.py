"""The losses that a placement survives, and the failures that stop its writes or lose its data.
Pure.

Map:    losses.py (the worst choice of domains), replicas.py (replicas with roles and labels, and
        their quorum), course.py (the fates of a partition), courses.py (which one, by the number of
        voters left), fates.py (the effect of each choice of losses, which all answers read),
        cut_links.py (the side that continues while a link is cut), regions.py (the regions that
        count as down), report.py (every level and combination that a placement survives),
        failures.py (the smallest sets that it does not), goals.py (whether `survive` holds),
        restarts.py (the order in which brokers may restart).
Source: design sections 6 and 7; decision 0008."""
