"""Drills: cut a part of a running cluster off for a while, and measure the effect on clients.

Map:    region.py (one drill from its beginning to its end), forecast.py (what would stop), load.py
        (producers and consumers of a topic of its own), groups.py (consumer groups whose
        coordinator goes), verdict.py (compares acknowledged records with the log), steady.py
        (whether the cluster is as before), topics.py (the names of drills' topics).
Source: docs/decisions/0019-drills.md."""
