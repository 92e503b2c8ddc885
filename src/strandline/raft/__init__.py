"""Raft, as a pure state machine: events in, effects out; the log it replicates is the Kafka log.

Map:    core.py           the facade: `Raft.step`, `plan_append`, what is the case
        events.py         what can happen, and what is to be done about it
        messages.py       what the members say to each other
        configuration.py  who votes, and the arithmetic of quorums
        state.py          the fields that the parts share; following
        log_shape.py      epochs, configurations and marks of a log
        election.py       pre-votes and votes
        reign.py          what exists only while leading: own entries, peers, marks
        progress.py       one peer, as its leader sees it
        sending.py        what to send it next
        quorums.py        what a write quorum has reached
        replies.py        acknowledgements at a leader
        appends.py        the follower's side
        membership.py     joint consensus
        transfer.py       leadership handed over
        promises.py       votes that are left to the leader before
        orders.py         what the heir and the other voters are ordered then
        farewell.py       acknowledgements that come after that
        lending.py        entries that one follower sends another, on the leader's order
        rejoin.py         after the loss of a disk
        outdated.py       after it was no member for a while
        arbitration.py    an epoch that the controller grants, where no majority is left
Source: design sections 3-6."""
