"""Who is alive: heartbeats per pair of brokers, leases, fencing.

Map:    liveness.py  Liveness: heartbeats and election timers of all groups
        sessions.py  what two brokers told each other about their groups
        lease.py     until when a leader knows that no other can exist
        fencing.py   fences and seats replicas as the controller asks
"""
