"""Idempotence: the last batches of each producer.

Map:    producers.py    the last five batches of each producer
        checkpoints.py  that state at an earlier offset
        replay.py       that state, rebuilt from the log
"""
