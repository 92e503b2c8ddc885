"""Damaged logs: reported, led by other replicas, repaired with their bytes.

Map:    damage.py             a replica with a damaged log gives up leadership
        gap_repair_client.py  finds damage, and repairs it with the bytes of other replicas
        gap_repair_server.py  asks other replicas for entries, and serves them to such requests"""
