"""Connections and frames by hand, so that each byte may be wrong.

How:    each connection comes from an address of its own in 127.0.0.0/8, so that what one attack
        costs (failures delay the answers to an address) is not another one's."""

import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from fuzz.hostile.cluster import HOST

PATIENCE_S = 10.0
PAUSE_S = 0.05
LATE_S = 0.5
"""The same where credentials that do not hold are answered late."""
ANSWER_BYTES_MAX = 64 << 20


class FindingError(AssertionError):
    """A broker did what it must not."""


def framed(frame: bytes) -> bytes:
    """With its size in front."""
    return struct.pack(">i", len(frame)) + frame


@contextmanager
def connected(port: int, random: Random) -> Iterator[socket.socket]:
    """A connection in the clear. Raises FindingError if the broker does not take it."""
    sock = connect(port, random)
    try:
        yield sock
    finally:
        sock.close()


def connect(port: int, random: Random) -> socket.socket:
    """The same, for the caller to close."""
    source = f"127.{random.randint(1, 250)}.{random.randint(1, 250)}.{random.randint(1, 250)}"
    try:
        return socket.create_connection((HOST, port), PATIENCE_S, source_address=(source, 0))
    except OSError as error:
        raise FindingError(f"no connection to port {port}: {error}") from error


@contextmanager
def secured(port: int, random: Random, context: ssl.SSLContext) -> Iterator[ssl.SSLSocket]:
    """A connection with TLS. Raises OSError if the handshake fails."""
    with connected(port, random) as sock:
        inner = context.wrap_socket(sock, server_hostname="localhost")
        try:
            yield inner
        finally:
            inner.close()


def send(sock: socket.socket, data: bytes) -> bool:
    """Send; False if the broker has hung up, or takes no more."""
    try:
        sock.settimeout(PATIENCE_S)
        sock.sendall(data)
    except OSError:
        return False
    return True


def drained(sock: socket.socket, *, pause_s: float = PAUSE_S) -> bytes:
    """What comes until the end, or until nothing has come for a moment."""
    found = bytearray()
    try:
        sock.settimeout(pause_s)
        while chunk := sock.recv(1 << 16):
            found += chunk
            assert len(found) <= ANSWER_BYTES_MAX, "an endless answer"
    except OSError:
        pass
    return bytes(found)


def answer(sock: socket.socket) -> bytes | None:
    """One answer without its size; None if the connection ends, or none comes in time."""
    try:
        sock.settimeout(PATIENCE_S)
        (size,) = struct.unpack(">i", _exactly(sock, 4))
        assert 4 <= size <= ANSWER_BYTES_MAX, f"an answer of {size} bytes"
        return _exactly(sock, size)
    except OSError:
        return None


def _exactly(sock: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        chunk = sock.recv(size - len(found))
        if not chunk:
            raise ConnectionResetError("the end")
        found += chunk
    return bytes(found)
