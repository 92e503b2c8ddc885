"""Drills: a part of a running cluster is taken away for a while, and what clients see is measured.

Map:    region.py (one drill from its beginning to its end), forecast.py (what would stop), load.py
        (producers and consumers of a topic of its own), groups.py (consumer groups whose
        coordinator goes), verdict.py (what was acknowledged against what is there), steady.py
        (whether all is as it was before).
Source: docs/decisions/0019-drills.md."""
