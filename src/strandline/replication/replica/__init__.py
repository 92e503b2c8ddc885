"""One Raft group on this broker: the core's effects performed on log, journal and network.

Map:    state.py              ReplicaState: the data that all components of a replica share
        driver.py             ReplicaDriver: steps the Raft core and performs its effects
        replica.py            Replica: what the rest of the broker sees of a partition
        replica_host.py       what a replica reports to the broker that holds it
        durable_state.py      what a broker must not forget of its groups, in the journal
        raft_factory.py       makes the core from the log and the durable state
        flushes.py            flushes of one log, one at a time
        entries.py            batches of an append: checksums verified, split at an index
        verified_read.py      reads records whose checksums have been verified
        log_maintenance.py    retention, segment roll and compaction of one log
        compactor.py          compaction in slices
        tombstones.py         up to where the tombstones of a compacted log may go
        delete_records.py     DeleteRecords: advances the log start offset
        tier.py               what buckets hold, and checkpoints of that
        snapshot_gate.py      snapshots that stand for the removed part of a log
        log_start_offsets.py  followers learn where the leader's log begins
"""
