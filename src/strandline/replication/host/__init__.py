"""The groups of one broker: opening, closing, ticking them, and taking what other brokers send.

Map:    replication.py        Replication: all groups of this broker
        inbound.py            dispatches each incoming message to its group or component
        group_spec.py         what a replica is opened with
        opening.py            opens groups, many together
        bootstrap.py          a group's first start: is this a new group, or has this broker lost
                              its disk?
        removal.py            deletes a replica that has left for good
        early_appends.py      tells a leader that a replica, closed when an append came, is open now
        control_outbox.py     batches control messages of all groups until the pass ends
        led_groups.py         the groups that this broker leads
        leaders.py            which broker leads which group, cluster-wide
        nearness.py           which brokers share a region, zone or rack
        election_priority.py  which replica should lead, and in what order the others stand
"""
