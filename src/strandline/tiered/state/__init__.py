"""Which segments are in which bucket: a state machine that a group's log drives.

Map:    commands.py     what markers in the log say
        encoding.py     those as bytes
        transitions.py  which command leads from which phase of an object to which: a table
        bucket.py       one bucket's part of the state
        tier.py         the state of a partition, and the questions that it answers
        retirement.py   what a topic's retention takes out of a bucket
"""
