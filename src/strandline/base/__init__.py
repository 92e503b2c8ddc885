"""The seams: small interfaces to everything a broker takes from the world, real or simulated.

Map:    clock.py       time and timers
        disk.py        files
        network.py     messages between brokers
        rng.py         random numbers
        errors.py      the error tree
        memory.py      buffers to be filled
        json_value.py  the type of JSON values
The object store joins with tiered storage.
Source: design sections 3 and 10."""
