"""Checks what is in a bucket against what logs say: what is missing, damaged, or too much.

Map:    verify.py    reads one object, and compares every checksum
        orphans.py   which objects of a listing no log knows
        collect.py   one bucket: lists, asks the leaders, deletes
Source: decision 0058."""
