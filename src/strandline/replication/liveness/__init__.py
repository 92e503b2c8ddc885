"""Which brokers are alive: heartbeats per pair of brokers, leases, fencing.

Map:    liveness.py           Liveness: heartbeats and election timers of all groups
        election_timeouts.py  how long a follower waits before it stands for election
        sessions.py           the groups that one broker leads towards another, by heartbeats
        lease.py              until when a leader knows that no other leader can exist
        fencing.py            fences and appoints replicas as the controller asks"""
