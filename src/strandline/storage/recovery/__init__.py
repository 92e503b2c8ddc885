"""Opening a log after a crash; damage found, and mended.

Map:    recovery.py       opens a log
        survey.py         lists a log's directory
        renewal.py        writes again what only the page cache may hold
        head_summary.py   what need not be scanned of the open segment
        verification.py   what is wrong with a log
        scrubbing.py      looks for damage in the background
        mending.py        puts other replicas' batches in place of damaged ones
        rewriting.py      rewrites a segment with them
"""
