"""Digests of ranges of one log, by which replicas are compared without moving records.

Map:    ranges.py    what a digest is asked for, and what it says
        source.py    which parts of which files hold a range
        walk.py      the batches of these parts, each verified
        contents.py  digests of stored bytes, and of records
        latest.py    digests of the last record of each key, for compacted logs
"""
