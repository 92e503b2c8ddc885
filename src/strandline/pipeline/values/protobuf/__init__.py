"""Protobuf to typed columns, by a descriptor.

Why:    a strict reader of our own: Google's keeps the last of duplicate fields, cuts integers to
        their width, takes booleans of 2, and keeps unknown fields where no column sees them.
Map:    decoder.py     protobuf_decoder: which schema each value has, and the columns
        descriptors.py descriptor files and registry answers -> descriptors
        messages.py    a message's descriptor -> its fields by number, and Spark's type
        wire.py        reads a message from the wire
Source: https://protobuf.dev/programming-guides/encoding; decisions/0051."""
