"""Which brokers are alive: heartbeats per pair of brokers, leases, fencing.

Map:    liveness.py  Liveness: heartbeats and election timers of all groups
        sessions.py  the groups that one broker leads towards another, as heartbeats report them
        lease.py     until when a leader knows that no other leader can exist
        fencing.py   fences and seats replicas as the controller asks"""
