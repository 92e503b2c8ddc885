"""One broker: takes Kafka requests from sockets, answers them from replicas, controller and coordinator.

Map, from the outside in:
        broker.py (Broker: the composition of one process), server.py (listens, bounds, sweeps), connection.py (one
        client: frames in, ordered answers out), router.py (frame -> handler -> answer), context.py (one request in
        hand, and what handlers work with), handler_table.py (which handler serves which API), handlers/ (one file an
        API), purgatory.py (fetches and produces that wait), controller_host.py and coordinator_host.py (the pure
        machines of the control plane, hosted).
Source: design sections 3 to 5."""
