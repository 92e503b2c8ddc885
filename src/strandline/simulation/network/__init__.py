"""The simulated network.

Map:    network.py           hosts and links between them
        link.py              one direction between two hosts
        traffic_recorder.py  records messages between brokers
"""
