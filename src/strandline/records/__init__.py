"""Kafka's record batch v2: the bytes on the wire, which are the bytes on disk.

Map:    batch.py     the 61-byte header: read, walk, stamp, check
        validate.py  checks the headers of a producer's batches
        validate_contents.py  checks the records in them, and takes the batch's time from them
        contents.py  walks over records; `_contents.c` is its compiled twin
        codec.py     bounded compression
        lz4_frame.py which lz4 frames Kafka's consumers read
        recompress.py  batches with the codec of their topic
        record.py    records inside a batch: building and reading
        cleaning.py  compaction of one batch
        latest_keys.py  which record of each key is the last one
        batch_cleaner.py  compaction of one batch after the other
        marker.py    Raft's own entries, in the shape of a batch
        record_times.py  records of one batch by their timestamps
        varint.py    zigzag varints
Source: design section 4; the layout stands as a table in batch.py."""
