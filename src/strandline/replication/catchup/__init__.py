"""Followers that are behind: served from the log, throttled, from a near replica if one has the
entries.

Map:    throttle.py       limits the rate of all catch-up traffic
        token_bucket.py   a token bucket
        fetch_sources.py  the leader chooses which near replica serves which follower
        peer_sender.py    a replica serves a neighbour that is behind, on its leader's request"""
