"""Decides which brokers hold the replicas of a partition. Pure.

Map:    spread.py (distinct brokers, spread evenly over regions, zones, racks and hosts).
Source: design section 7. Policies and constraints join here."""
