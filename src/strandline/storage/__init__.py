"""What is on the disk: logs, hard state, the data directory's identity, and the real disk itself.

Map:    log.py (one group's log), which is made of
            config.py     what a topic may set
            row.py        its segments, in memory and on the disk, through crashes
            segment.py    one file of batches and its sparse index;  index.py  that index
            layout.py     file names and formats;  sealing.py  the files beside a closed segment
            history.py    index <-> offset, epochs, configurations
            scan.py, recovery.py  opening a log after a crash;  renewal.py  writing again what the
                          page cache alone may have;  head_summary.py  what of the open segment
                          need not be scanned then
            name_changes.py  several names changed as one, through crashes
            flushing.py   what is durable;  flushed_mark.py  noted on the disk
            reads.py      finding batches for consumers and followers;  times.py  by timestamp
            proving.py    looking once at what an earlier process wrote, before it is served
            scrubbing.py  looking for damage;  mending.py, rewriting.py  other replicas'
                          batches in its place
            room.py       space for its writes
            retention.py  letting go of old segments;  compaction.py  keeping the last value per key
            compacting.py  one such pass after the other
            segment_work.py, segment_writer.py  making a segment anew, in slices
            producers.py  idempotence: the last five batches of each producer;  checkpoints.py
                          the same, a while ago;  replay.py  the same, as the log says it
            survey.py     what lies in a log's directory;  verification.py  what is wrong with it
        state_journal.py (epoch and vote of every group), reserve.py (space that is kept for it and
        the controller's log), identity.py (whose directory this is), kept_labels.py (where its
        broker is), real_disk.py (files), read_only_disk.py (the same, to look at only),
        file_system.py (what both tell), kernel_flusher.py and flusher.py (who makes
        files durable), descriptor.py.
Source: design section 4."""
