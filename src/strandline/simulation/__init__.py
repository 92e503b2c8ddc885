"""The second world behind the five seams: a cluster in one process and in virtual time.

Map:    time       scheduler.py (the one queue of events), process.py (one life of a host),
                   clock.py, loop.py (asyncio in virtual time)
Source: design section 10; docs/internals/simulation.md."""
