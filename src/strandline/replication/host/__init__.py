"""The groups of one broker: opening, closing, ticking them, and dispatching incoming messages.

Map:    replication.py        Replication: all groups of this broker
        inbound.py            dispatches each incoming message to its group or component
        group_spec.py         the parameters with which a replica is opened
        opening.py            opens groups, many together
        bootstrap.py          a group's first start: is the group new, or is this broker's disk
                              lost?
        removal.py            removes a replica from this broker for good
        early_appends.py      tells a leader that a replica which missed its append is open now
        control_outbox.py     batches control messages of all groups until the pass ends
        led_groups.py         the groups that this broker leads
        leaders.py            which broker leads which group, cluster-wide
        nearness.py           which brokers share a region, zone or rack
        election_priority.py  which replica should lead, and the order of the others"""
