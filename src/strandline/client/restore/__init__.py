"""A lost cluster, out of its buckets.

Map:    plan.py      what the buckets have of it at one time, and what is missing
        presence.py  which objects of an export are there still
        source.py    records out of a bucket, checked
        objects.py   carries a plan out by copying objects inside stores
        copying.py   carries a plan out by producing records
        rules.py     brings the rules of access back
        quotas.py    brings the quotas of clients back
        offsets.py   what both share: configurations, committed offsets
"""
