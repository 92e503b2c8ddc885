"""Logs, hard state and identity on the disk, and the real disk itself.

Map:    log/              One group's log.
        recovery/         Opening a log after a crash; damage found, and mended.
        compaction/       Keeping the last value of each key.
        producers/        Idempotence: the last batches of each producer.
        disk/             Files and flushes.
        config.py         what a topic may set
        layout.py         file names and formats
        state_journal.py  epoch and vote of every group
        reserve.py        disk space kept for the journal and the controller's log
        identity.py       which broker, cluster and directory this is
        stored_labels.py  the broker's labels, as stored on its disk
Source: Design section 4.
"""
