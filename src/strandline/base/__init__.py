"""The seams: the five things a broker takes from the world, each a small interface with two worlds
behind it.

Map:    clock.py (time and timers), disk.py (files), network.py (messages between brokers),
        errors.py (the error tree), memory.py (buffers to be filled), json_value.py (what programs
        are told), rng.py (random numbers). The object store joins with tiered storage.
Source: design sections 3 and 10."""
