"""Reads old records out of buckets, through a cache on the broker's disk.

Map:    reader.py         RemoteReader: what a broker reads old records with
        remote_read.py    one read under way
        ranges.py         what can be read: live objects by bucket, of a replica or an export
        bucket_order.py   one bucket after the other, until one gives usable bytes
        object_reader.py  trailer, chunks and batches of one object
        finding.py        whole batches in the chunks that are here
        times.py          records by their timestamp
        streams.py        readers that go on where they stopped, and read-ahead for them
        trailers.py       trailers, in memory
        downloads.py      chunks on their way, shared by all who ask
        budget.py         bytes in flight
        ranged_store.py   ranges of objects, within a deadline
        failures.py       which buckets and objects are left alone for a while
        chunk_cache.py    the cache of chunks
        chunk_memory.py   chunks of scans, in memory
        admission.py      what stays in it
        chunk_files.py    chunks as files
        memory_file.py    a chunk in memory, as a file
        worker.py         where disk work runs
        counters.py       what has been read so far
Source: decision 0060."""
