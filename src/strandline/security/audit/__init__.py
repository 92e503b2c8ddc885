"""The audit log: who did what, from where, allowed or denied, as JSON lines of a bounded file.

Map:    event.py       one event, and its line
        trail.py       the lines that wait for the disk, within bounds
        audit_file.py  a file that is rotated once
        audit_log.py   the thread that writes
Source: decision 0069."""
