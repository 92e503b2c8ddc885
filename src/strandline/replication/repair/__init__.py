"""Damaged logs: reported, led by other replicas, repaired with their bytes.

Map:    damage.py      a replica with a damaged log gives up leadership
        log_repair.py  finds damage in the broker's logs and repairs it from other replicas
        gap_fetch.py   asks other replicas for the entries of a gap, and serves such requests"""
