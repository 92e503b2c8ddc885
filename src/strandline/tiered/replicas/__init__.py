"""Read-only copies of another cluster's partitions, out of its bucket alone.

Map:    view.py    what of one partition may be read here
        source.py  keeps the views of one cluster's partitions up to date
Source: decision 0061."""
