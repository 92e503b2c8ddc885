"""Where leaders should be, and moving them there.

Map:    failback.py      moves leadership back to the preferred replica
        following.py     moves leadership to the region of the writers
        writers.py       bytes produced by client region
        draining.py      moves leadership away for maintenance
        leader_ranks.py  how much policies prefer each broker as leader
        electing.py      ElectLeaders
        new_topics.py    topics that may not have their first leaders yet
"""
