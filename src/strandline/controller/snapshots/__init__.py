"""The controller's state as one file, from which a broker starts instead of the whole log.

Map:    image.py   the state at one offset as parts, and a state made of parts again
        format.py  the bytes of a snapshot: frames with checksums
"""
