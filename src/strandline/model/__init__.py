"""The nouns that every room shares: ids, labels, topics, and the cluster in the controller's log.

Map:    ids.py          ids, offsets, indexes, epochs, as different types
        cluster.py      brokers, topics, partitions
        networks.py     networks that clients are in
        access.py       what principals may do: rules, passwords, quotas
        cluster_ids.py  new cluster ids"""
