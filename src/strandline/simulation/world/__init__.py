"""One run, from start to verdict.

Map:    world.py          World: one run
        cluster.py        SimCluster: the hosts and the links between them
        bootstrap.py      how brokers become a cluster
        host.py           a machine: its disk, and one process after the other
        process.py        one life of a host
        member.py         the program under test: Raft groups alone
        broker_member.py  the program under test: a whole broker
        caller.py         the client's end of one request
        topics.py         a topic for each group
        scheduler.py      the one queue of events
        clock.py          a host's clock, which may drift
        loop.py           asyncio in virtual time
        trace.py          all lines of a run
        tally.py          counts of what a run did
"""
