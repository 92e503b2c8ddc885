"""Snapshots of the controller's state on this broker: taken, kept, sent to brokers that lack them.

Map:    files.py      the snapshots on the disk
        taking.py     makes the bytes of a snapshot, a slice at a time
        transfer.py   chunks of a snapshot from one broker to another
        exporting.py  the controller's state and committed offsets, into the buckets
        snapshots.py  when to take one, when to get one, and what may be removed then
"""
