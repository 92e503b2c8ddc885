"""The object store: one interface, real stores behind it.

Map:    store.py         what tiering asks of a store, and the errors it may get
        buckets.py       all buckets of a broker, by region
        claim.py         one cluster a prefix
        identity.py      which bucket it is
        opening.py       a store by its URL
        bucket_store.py  deadlines, and what an answer proves: written, absent, taken
        traffic.py       what was asked of a bucket, for its bill
        limits.py        requests, bytes and pace of a broker
        credentials.py   secrets, from a file
        backend.py       what one kind of store can do
        directory.py     a directory, in threads, flushed
        remote.py        S3, GCS and Azure, by obstore
"""
