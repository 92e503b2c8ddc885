"""Which brokers are alive: heartbeats per pair of brokers, leases, fencing.

Map:    liveness.py           election timers of all groups, and check-quorum of the leaders here
        peer_contacts.py      what this broker hears of its peers: sessions, round trips, silences
        bound_votes.py        when a vote is bound to a leader, and the lease that rests on it
        election_timeouts.py  how long a follower waits before it stands for election
        sessions.py           the groups that one broker leads towards another, by heartbeats
        heartbeat_exchanges.py  when heartbeats are sent, and over which connection
        exchange_interval.py  how often, while nothing changes
        lease.py              until when a leader knows that no other leader can exist
        fencing.py            fences and appoints replicas as the controller asks"""
