"""Kafka's record batch v2: the bytes on the wire, which are the bytes on disk.

Map:    batch.py     the 61-byte header: read, walk, stamp, check
        validate.py  checks a producer's batches
        codec.py     bounded compression
        record.py    records inside a batch: building and reading
        cleaning.py  compaction of one batch
        marker.py    Raft's own entries, in the shape of a batch
        varint.py    zigzag varints
Source: design section 4; the layout stands as a table in batch.py."""
