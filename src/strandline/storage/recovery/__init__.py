"""Opens a log after a crash; finds damage and repairs it.

Map:    recovery.py       opens a log
        survey.py         lists a log's directory
        renewal.py        rewrites bytes that only the page cache may hold
        head_summary.py   summarises the head of the active segment
        verification.py   reports all damage of a stopped broker's log
        scrubbing.py      looks for damage in the background
        mending.py        replaces damaged batches by other replicas' batches
        rewriting.py      rewrites a segment with them
"""
