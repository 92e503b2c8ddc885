"""The simulated network.

Map:    network.py           hosts and links between them
        link.py              one direction between two hosts
        crossings.py         bytes that cross between regions
        traffic_recorder.py  records messages between brokers
        entries_sent.py      entries sent to each broker
"""
