"""One segment as one immutable object.

Map:    entry.py  what the log says of such an object
"""
