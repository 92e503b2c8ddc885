"""All Raft groups of one broker, and the one path on which records are replicated.

Map, from the outside in:
        host.py (Replication: the broker's side of it all), inbound.py (what other brokers send goes
        where it belongs), group_spec.py (what a replica is opened
        with), succession.py (who should lead, and who else), opening.py (opens groups, many
        together), latecomers.py (tells leaders of those that were opened late), control_mail.py
        (what groups say, gathered),
        replica.py (one group here: performs what its Raft core decides), effects.py
        (how each effect is performed), parting.py (leadership handed over), appender.py (the
        batcher: what waits becomes one append), sink.py (the replica as the batcher sees it),
        flushes.py (of its log, one at a time), waiters.py (who waits for which mark), leading.py
        (what exists only while leading), parcel.py (what an append carries), sender.py (the
        leader's stream to one follower), window.py
        (how much of it may be under way), queues.py (what waits for a peer's socket), throttle.py
        and credit.py (how fast who is behind is served from the log), lenders.py, lending.py and
        nearness.py (by a replica near it, where one has what it lacks), relays.py and relaying.py
        (what is new, through one of a region's replicas), tail.py (entries still in
        memory), entries.py (batches between leader and follower: checked, split), proof.py (records
        for a reader that believes them), liveness.py and sessions.py (who hears whom: coalesced
        heartbeats, leases, election timers), lease.py (the lease of one leader), led_groups.py
        (the leaders here), leaders.py (who
        leads what, cluster-wide), founding.py (a new group, or a lost disk?), forgetting.py (a
        replica that goes for good), fencing.py (an old side that must acknowledge no more),
        budget.py (memory),
        cleaning.py (upkeep of one log), compactor.py (compaction in slices), deleting.py (records
        deleted at the front), starts.py (followers ask where partitions begin), damage.py,
        repairs.py and helping.py (damaged logs are led by others, and mended with what these
        have), wire.py (messages as bytes), append_times.py and standing.py (how far each replica
        is, as its leader knows), settings.py.
Source: design section 5; Redpanda RFC 20220119 (one path for all acks levels)."""
