"""Counts the bytes that an audit sends and receives.

Why:    that an audit moves no records is a claim; its own count stands in its result.
How:    a transport around the client's, whose streams add up.
Owns:   the counts."""

from collections.abc import Sequence

from strandline.base.disk import Buffer
from strandline.client.access import Access, AccessTransport
from strandline.client.wire.transport import Stream
from strandline.model.cluster import Address


class CountingTransport(AccessTransport):
    """Sockets that count. One thread at a time."""

    def __init__(self, access: Access | None = None) -> None:
        super().__init__(access)
        self.wire_bytes = 0

    def connect(self, address: Address, timeout_ms: int) -> Stream:
        """See `Transport.connect`."""
        return _CountingStream(super().connect(address, timeout_ms), self)


class _CountingStream:
    def __init__(self, stream: Stream, counter: CountingTransport) -> None:
        self._stream = stream
        self._counter = counter

    def send(self, parts: Sequence[Buffer], timeout_ms: int) -> None:
        self._counter.wire_bytes += sum(map(len, parts))
        self._stream.send(parts, timeout_ms)

    def receive(self, length: int, timeout_ms: int) -> memoryview:
        self._counter.wire_bytes += length
        return self._stream.receive(length, timeout_ms)

    def close(self) -> None:
        self._stream.close()
