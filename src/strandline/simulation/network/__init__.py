"""The simulated network.

Map:    network.py           hosts and links between them
        link.py              one direction between two hosts
        replies.py           replies on the connection of what they answer
        settling.py          when every replica is in step
        traffic_recorder.py  records messages between brokers
"""
