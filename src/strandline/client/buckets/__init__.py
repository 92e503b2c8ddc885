"""Buckets of tiered storage that a client reads itself, past the brokers.

Map:    options.py  which buckets, and where their secrets are
        stores.py   ranges of objects, in the background
Source: decision 0065."""
