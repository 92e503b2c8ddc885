"""Followers that are behind: served from the log, throttled, from a near replica if one has the
entries.

Map:    throttle.py       the rate of all catch-up traffic
        token_bucket.py   a token bucket
        fetch_sources.py  which near replica serves which follower, as the leader decides
        peer_catchup.py   serves a neighbour that is behind, on the leader's request
"""
