"""The client's seam to the world: streams of bytes to brokers, and time.

Why:    tests supply a cluster in memory and a simulated clock; only this file uses sockets.
Source: STYLE, rule 2."""

import select
import socket
import time
from collections.abc import Sequence
from typing import Protocol

from strandline.base.disk import Buffer
from strandline.model.cluster import Address
from strandline.network.sockets import refuse_itself

RECEIVE_BYTES = 256 * 1024


class Stream(Protocol):
    """One connection. Whatever goes wrong is an OSError; TimeoutError when the time is over."""

    def send(self, parts: Sequence[Buffer], timeout_ms: int) -> None:
        """Hand all the parts over."""

    def receive(self, length: int, timeout_ms: int) -> memoryview:
        """Exactly `length` bytes; ConnectionError when the peer ends before."""

    def close(self) -> None:
        """End it; harmless when it has ended."""


class Transport(Protocol):
    """Connections and time."""

    def connect(self, address: Address, timeout_ms: int) -> Stream:
        """A new connection; raises OSError."""

    def wait_readable(self, streams: Sequence[Stream], timeout_ms: int) -> list[Stream]:
        """Those of the streams that have something to receive, or none when the time is over."""

    def monotonic_ms(self) -> int:
        """Milliseconds since some fixed moment."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC, for the timestamps of records."""

    def sleep_ms(self, duration_ms: int) -> None:
        """Let so much time go by."""


class TcpStream:
    """A stream over a TCP socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock

    def fileno(self) -> int:
        """The socket's descriptor, for `select`."""
        return self._socket.fileno()

    def send(self, parts: Sequence[Buffer], timeout_ms: int) -> None:
        """See `Stream.send`."""
        self._socket.settimeout(max(timeout_ms, 1) / 1000)
        if sum(map(len, parts)) <= RECEIVE_BYTES:
            parts = (b"".join(parts),)
        for part in parts:
            self._socket.sendall(part)

    def receive(self, length: int, timeout_ms: int) -> memoryview:
        """See `Stream.receive`."""
        until = time.monotonic() + timeout_ms / 1000
        # Memory grows with what has come in, not with what was announced.
        buffer = bytearray(min(length, RECEIVE_BYTES))
        filled = 0
        while filled < length:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError("timed out")
            if filled == len(buffer):
                buffer.extend(bytes(min(length - filled, filled)))
            self._socket.settimeout(left)
            count = self._socket.recv_into(memoryview(buffer)[filled:])
            if count == 0:
                raise ConnectionError("the broker closed the connection")
            filled += count
        return memoryview(buffer)

    def close(self) -> None:
        """See `Stream.close`."""
        self._socket.close()


class TcpTransport:
    """The real world."""

    def connect(self, address: Address, timeout_ms: int) -> Stream:
        """See `Transport.connect`."""
        sock = socket.create_connection(
            (address.host, address.port), timeout=max(timeout_ms, 1) / 1000
        )
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            refuse_itself(sock)
        except OSError:  # The broker has hung up already, or is none.
            sock.close()
            raise
        return TcpStream(sock)

    def wait_readable(self, streams: Sequence[Stream], timeout_ms: int) -> list[Stream]:
        """See `Transport.wait_readable`."""
        poll = select.poll()
        by_descriptor: dict[int, Stream] = {}
        for stream in streams:
            assert isinstance(stream, TcpStream)
            by_descriptor[stream.fileno()] = stream
            poll.register(stream.fileno(), select.POLLIN)
        return [by_descriptor[descriptor] for descriptor, _ in poll.poll(max(timeout_ms, 0))]

    def monotonic_ms(self) -> int:
        """See `Transport.monotonic_ms`."""
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        """See `Transport.wall_ms`."""
        return time.time_ns() // 1_000_000

    def sleep_ms(self, duration_ms: int) -> None:
        """See `Transport.sleep_ms`."""
        time.sleep(max(duration_ms, 0) / 1000)
