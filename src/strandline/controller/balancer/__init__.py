"""Decides which replicas move, so that every placement is what its policy wants. Pure.

Map:    health.py (which brokers are lost, and which may be given replicas), fullness.py (whose disk
        is too full for any), disks.py (how full disks are once what moves has moved), plans.py
        (what policies ask of these brokers), mending.py (what one partition needs, and what would
        give it that), makeshift.py (what takes a lost replica's place where nothing is right),
        relief.py (what goes from disks that are too full), evening.py (full brokers give to empty
        ones), leaders.py (and so do those that lead much), round.py (all partitions: moves, and
        what waits), stalls.py (why what has begun stands still), reasons.py (the codes of all),
        preview.py (what would follow, to the end).
Source: design section 7; decision 0010."""
