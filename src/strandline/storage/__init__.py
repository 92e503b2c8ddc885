"""Logs, hard state and identity on the disk, and the real disk itself.

Map:    log/              one group's log
        recovery/         opens a log after a crash; finds and repairs damage
        compaction/       keeps the last value of each key
        digests/          digests of ranges, by which replicas are compared
        producers/        idempotence: the last batches of each producer
        disk/             files and flushes
        config.py         the settings of a log, from its topic
        layout.py         file names and formats
        state_journal.py  epoch and vote of every group
        reserve.py        disk space reserved for the journal and the controller's log
        identity.py       the broker and cluster that a data directory belongs to
        stored_labels.py  the broker's labels, as stored on its disk
Source: design section 4.
"""
