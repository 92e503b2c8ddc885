"""Kafka's record batch v2: the bytes on the wire, which are the bytes on disk.

Map:    batch.py (the 61-byte header: read, walk, stamp, check), validate.py (what a producer may
        send), codec.py (bounded compression), record.py (records inside a batch: building and
        reading), cleaning.py (what compaction does to one batch), marker.py (Raft's own
        entries, in the shape of a batch), varint.py.
Source: design section 4; the layout stands as a table in batch.py."""
