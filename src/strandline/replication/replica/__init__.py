"""One Raft group on this broker: the core's effects performed on log, journal and network.

Map:    replica.py            Replica: steps the Raft core and performs its effects
        effects.py            how each effect is performed
        sink.py               the replica as the appender sees it
        flushes.py            flushes of one log, one at a time
        entries.py            batches of an append: checksums verified, split at an index
        verified_read.py      reads records whose checksums have been verified
        log_maintenance.py    retention, segment roll and compaction of one log
        compactor.py          compaction in slices
        delete_records.py     DeleteRecords: advances the log start offset
        log_start_offsets.py  followers learn where the leader's log begins
"""
