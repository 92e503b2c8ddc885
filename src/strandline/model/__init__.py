"""The nouns that every room shares: ids, labels, topics, the cluster as the controller's log tells
it.

Map:    ids.py (ids, offsets, indexes, epochs as different types), cluster.py (brokers, topics,
        partitions)."""
