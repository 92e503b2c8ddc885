"""Decides about uploads. Pure.

Map:    uploaders.py  which replica uploads to a bucket
        gaps.py       which range a bucket lacks next
        merging.py    which small objects become one
        cleaning.py   when a bucket of a compacted topic is cleaned, and in which steps
"""
