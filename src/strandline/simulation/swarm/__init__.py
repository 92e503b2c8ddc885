"""Many seeds, and what each one stands for.

Map:    swarm.py           runs many seeds
        variations.py      what varies between seeds
        families.py        the families of seeds
        outage_swarm.py    lost regions, voters that leave
        brief_swarm.py     very short histories of one group
        shrink.py          fewer faults that still fail
        failure_report.py  the report of a violation
"""
