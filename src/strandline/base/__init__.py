"""Four seams, and what every room needs beside them. A seam is a small interface between a broker
and the world, which is real or simulated.

Seams:  clock.py       time and timers
        disk.py        files and flushes
        network.py     messages between brokers
        rng.py         random numbers
Beside: errors.py      the error tree
        memory.py      buffers without initial contents
        json_value.py  the type of JSON values
        printable.py   text of others, shown without steering a terminal
        rising.py      when a level reaches a mark
A seam for the object store comes with tiered storage.
Source: design sections 3 and 10."""
