"""Which segments are in which bucket: a state machine that a group's log drives.

Map:    commands.py  what markers in the log say
        tier.py      the state, and how commands change it
"""
