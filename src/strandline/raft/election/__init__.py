"""How a group gets its leader.

Map:    election.py         pre-votes and votes
        transfer.py         leadership transfer
        vote_delegation.py  votes that voters delegate to the leader that hands over
        timeout_now.py      a transfer, as the transfer target and the other voters see it
        hand_over.py        acknowledgements that arrive after a transfer began
        arbitration.py      an epoch granted by the controller when no majority is left"""
