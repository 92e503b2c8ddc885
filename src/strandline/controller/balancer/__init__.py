"""Decides which replicas move, so that every placement keeps its policy. Pure.

Map:    health.py (which brokers are lost, and which may get replicas), fullness.py (disks too full
        for more replicas), disks.py (how full disks are after the present moves), plans.py (the
        constraints of policies on these brokers), needs.py (the needs of one partition, and the
        replicas that meet them), best_effort.py (the replacement of a lost replica if no placement
        keeps the policy), relief.py (the replicas that leave disks that are too full), evenness.py
        (moves from full brokers to empty ones), leaders.py (an even number of preferred leaders),
        undo.py (the replicas that a cancelled decommission brings back), round.py (all partitions:
        the moves, and those that wait), stalls.py (why a move does not proceed), reasons.py (the
        codes of all), preview.py (all moves that would follow).
Source: design section 7; decision 0010."""
