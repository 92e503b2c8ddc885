"""Connections between brokers.

Map:    tcp.py (the endpoint: listening, peers), outgoing.py (one connection to one peer, with its
        queue and injected delay), incoming.py (one accepted connection), loop_clock.py (real time),
        calls.py (question and answer on top of messages), webhook.py (tells somebody outside),
        sockets.py (a connection that met itself, a port that is taken).
Source: design section 5."""
