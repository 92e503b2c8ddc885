"""What a follower does with what it receives, and what its leader decides about it.

Map:    appends.py          appends from the leader
        peer_catchup.py     entries sent from one follower to another, on the leader's request
        rejoin.py           rejoining after the loss of a disk
        stale_log_reset.py  restarting from an empty log after a time as no member
"""
