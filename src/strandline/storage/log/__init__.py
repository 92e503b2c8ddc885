"""One group's log.

Map:    log.py                    Log: appends, reads, truncation
        bounds.py                 where it begins and ends, its epochs and markers
        row.py                    its segments, in memory and on the disk, through crashes
        segment.py                one file of batches and its sparse index
        index.py                  that index
        history.py                index <-> offset, epochs, configurations
        reads.py                  finds batches for consumers and followers
        behind_damage.py          finds batches for followers behind damage
        times.py                  finds batches by timestamp
        checksum_verification.py  verifies checksums once before a segment is served
        closed_ranges.py          ranges of closed segments, for copies that leave the log
        scan.py                   walks the batches of a file
        sealing.py                the files beside a closed segment
        name_changes.py           renames of several files as one step, through crashes
        flushing.py               what of the log is durable
        flushed_mark.py           that mark, on the disk
        retention.py              deletes old segments
        rolling.py                when the active segment is closed
        space.py                  allocates space for writes
"""
