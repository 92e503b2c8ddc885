"""The bytes of an audit are counted on real sockets."""

import socket
import threading

from strandline.model.cluster import Address
from strandline.pipeline.audit.wire import CountingTransport


def test_bytes_both_ways_are_counted() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def echo() -> None:
            with server.accept()[0] as peer:
                peer.sendall(peer.recv(100)[:3])

        thread = threading.Thread(target=echo, daemon=True)
        thread.start()
        transport = CountingTransport()
        stream = transport.connect(Address("127.0.0.1", server.getsockname()[1]), 5_000)
        stream.send([b"123", b"45"], 5_000)
        assert bytes(stream.receive(3, 5_000)) == b"123"
        stream.close()
        thread.join()
    assert transport.wire_bytes == 8
