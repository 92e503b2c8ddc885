"""Old data in object stores: what a bucket holds, and what a partition's log says of it.

Map:    objects/     the object store: one interface, real stores behind it
        state/       which segments are in which bucket: a state machine that a group's log drives
        segments/    one segment as one immutable object
        upload/      decides about uploads
        reading/     reads old records out of buckets, through a cache on the broker's disk
        cluster/     what a bucket says of a whole cluster: its controller, committed offsets
        exports/     what a bucket says of itself, in numbered exports
        collection/  checks a bucket: what is missing, damaged, or too much
        replicas/    read-only copies of another cluster's partitions
        framing.py   objects that are MessagePack, checked and versioned
        numbers.py   numbers in names, of a fixed width
Source: Design section 11; decision 0057."""
