"""Many seeds, and what each one stands for.

Map:    swarm.py             runs many seeds
        variations.py        what varies between seeds
        families.py          the families of seeds
        outage_swarm.py      lost regions, voters that leave: the table of families
        outage_additions.py  what some of those seeds have beside their family's faults
        outage_draws.py      their clusters, load and ordinary faults
        outage_layouts.py    their layouts
        brief_swarm.py       very short histories of one group
        snapshot_swarm.py    snapshots of the controller's log
        tiered_swarm.py      records that leave for buckets
        tiered_mixes.py      what some of those seeds have beside
        shrink.py            fewer faults that still fail
        failure_report.py    the report of a violation
"""
