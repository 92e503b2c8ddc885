"""Connections between brokers, and the webhook for alarms.

Map:    tcp.py         the endpoint: listens, and knows the peers
        opening.py     opens a connection to a peer, with TLS or without
        outgoing.py    one connection to one peer
        accepted.py    the connections that peers have opened, and replies to them
        incoming.py    one accepted connection
        replies.py     replies that arrive on one connection
        peer_processes.py  which process of a peer may speak
        greeting.py    the first frame of a connection
        frame_reader.py  reads the frames of a connection
        frame_writer.py  writes frames: a queue, and the injected delay
        handshakes.py  TLS handshakes of accepted connections
        streams.py     the bytes of a connection, plain or TLS
        loop_clock.py  real time
        pass_end.py    what runs at the end of a pass of the event loop
        calls.py       requests and responses on top of messages
        refusals.py    logs why peers are refused
        webhook.py     posts alarms to an operator's URL
        webhook_post.py  posts one message to a listed host
        https_document.py  fetches a small document, with a deadline and a bound
        sockets.py     detects a connection to itself, and a taken port
Source: design section 5."""
