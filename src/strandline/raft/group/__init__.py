"""What a group is: its voters, quorums and the shape of its log.

Map:    configuration.py  voters, observers, and the arithmetic of quorums
        log_shape.py      epochs, configurations and marks of a log
        quorums.py        the index that a write quorum has reached
        membership.py     which configuration is in force, and which replicas may stand under it
"""
