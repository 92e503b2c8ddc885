"""What a member keeps only while it leads.

Map:    leader_state.py  its entries, its peers' progress, its marks, for one epoch
        progress.py      one peer, as its leader sees it
        sending.py       what to send a peer next
        replies.py       acknowledgements of followers
"""
