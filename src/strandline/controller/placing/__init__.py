"""Which brokers partitions get, and whether policies can be met.

Map:    assignments.py      brokers for new partitions
        policies.py         brokers by a placement policy
        chosen_replicas.py  whether replicas chosen by a client keep the policy
        policy_changes.py   whether a changed policy can be met
        label_changes.py    the effect of changed labels on policies
        broker_removal.py   whether the cluster can do without a broker
        start_offsets.py    where the partitions of a restored topic begin
        tiering.py          whether a topic has a bucket to go to
        read_replicas.py    whether a topic may be a copy of another cluster's topic
        space.py            whether the others have room for a broker's replicas
        copy_shares.py      each broker's share of the copy budget
"""
