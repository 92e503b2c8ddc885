"""Decides which replicas move, so that every placement is what its policy wants. Pure.

Map:    health.py (which brokers are lost, and which may be given replicas), fullness.py (disks too
        full for more replicas), disks.py (how full disks are once what moves has moved), plans.py
        (what policies ask of these brokers), mending.py (what one partition needs, and what would
        give it that), makeshift.py (what replaces a lost replica if no placement is right),
        relief.py (what leaves disks that are too full), evening.py (full brokers give to empty
        ones), leaders.py (and brokers that lead much give leaderships), round.py (all partitions:
        moves, and what waits), stalls.py (why a move stands still), reasons.py (the codes of all),
        preview.py (what would follow, to the end).
Source: design section 7; decision 0010."""
