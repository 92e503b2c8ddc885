"""The object store: one interface, real stores behind it.

Map:    store.py  what tiering asks of a store, and the errors it may get
"""
