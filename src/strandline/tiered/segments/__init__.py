"""One segment as one immutable object.

Map:    entry.py    what the log says of such an object
        names.py    its name in the bucket
        trailer.py  its indexes and checksums, and where to read by them
        writer.py   builds it from a log's batches
"""
