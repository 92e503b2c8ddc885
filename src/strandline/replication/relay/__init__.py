"""One replica of a region forwards a leader's appends to its neighbours.

Map:    relays.py       the leader's side: sends a region's appends to one replica there
        relay_watch.py  the leader's broker watches the appends that are under way through relays
        forwarding.py   the relay's side: forwards the leader's appends to its neighbours
"""
