"""What a member keeps only while it leads.

Map:    leader_state.py          the state of a leader in one epoch: plain data
        leading.py               its entries, acknowledgements and marks
        configuration_change.py  changes of voters by joint consensus
        progress.py              one peer, as its leader sees it
        sending.py               what to send a peer next
        replies.py               answers of followers, and their silence
"""
