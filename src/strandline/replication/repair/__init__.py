"""Damaged logs: reported, led by others, mended with the bytes of other replicas.

Map:    damage.py             a replica with damage gives up leadership
        gap_repair_client.py  fetches the bytes of a gap from other replicas
        gap_repair_server.py  serves bytes to replicas that mend a gap
"""
