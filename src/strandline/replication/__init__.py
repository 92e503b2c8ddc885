"""Hosts all Raft groups of a broker: the one path on which records are replicated.

Map:    host/             The groups of one broker: opening, closing, ticking them, and dispatching
                          incoming messages.
        replica/          One Raft group on this broker: the core's effects performed on log,
                          journal and network.
        leader/           What exists only while a replica leads: the append path and one stream to
                          each follower.
        relay/            One replica of a region forwards a leader's appends to its neighbours.
        catchup/          Followers that are behind: served from the log, throttled, from a near
                          replica if one has the entries.
        liveness/         Which brokers are alive: heartbeats per pair of brokers, leases, fencing.
        repair/           Damaged logs: reported, led by other replicas, repaired with their bytes.
        shared.py         what a broker has once, and all its replicas use
        settings.py       limits and intervals of replication, each with a name and a unit
        wire.py           what brokers send each other, as bytes
        memory_budget.py  memory units for waiting requests: the back-pressure of every acks level
        waiters.py        requests that wait for a mark to reach an index
Source: Design section 5; Redpanda RFC 20220119 (one path for all acks levels).
"""
