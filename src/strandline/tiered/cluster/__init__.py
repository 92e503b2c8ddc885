"""What a bucket says of a whole cluster: snapshots of its controller, and committed offsets.

Map:    names.py    names of both, and which one is the newest at a time
        offsets.py  the committed offsets of one partition of `__consumer_offsets`, as bytes
Source: decision 0063."""
