"""Runs a cluster in one process and in virtual time, from one seed.

Map:    world/       One run, from start to verdict.
        network/     The simulated network.
        disk/        The simulated disk.
        buckets/     Simulated object stores.
        clients/     The load: producers, consumers, admin clients.
        faults/      What goes wrong.
        invariants/  What is observed, and what must hold.
        swarm/       Many seeds, and what each one stands for.
        scenarios/   Scenarios written by people.
        __main__.py  the command
Source: Design section 10.
"""
