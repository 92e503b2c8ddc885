"""Raft, as a pure state machine: events in, effects out; the log it replicates is the Kafka log.

Map:    group/          what a group is: its voters, quorums and the shape of its log
        election/       how a group gets its leader
        leader/         what a member does only while it leads
        follower/       what a follower does with what it receives
        core.py         the facade: `Raft.step`, `plan_append`, queries
        events.py       events that a group receives, and the effects it asks for
        messages.py     messages between members
        state.py        the fields that all parts share; becoming a follower
        transitions.py  the roles, and every transition between them
Source: Design sections 3-6.
"""
