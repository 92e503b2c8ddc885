"""A lost cluster, out of its buckets.

Map:    plan.py  what the buckets have of it at one time, and what is missing
"""
