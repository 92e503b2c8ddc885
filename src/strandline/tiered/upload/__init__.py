"""Decides about uploads. Pure.

Map:    uploaders.py  which replica uploads to a bucket
        gaps.py       which range a bucket lacks next
"""
