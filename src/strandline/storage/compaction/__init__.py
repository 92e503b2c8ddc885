"""Keeps the last value of each key.

Map:    compaction.py      which records stay
        compacting.py      one pass after the other
        segment_work.py    makes a new segment in slices
        segment_writer.py  writes that segment
"""
