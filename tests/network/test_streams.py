"""A TLS stream behaves as a non-blocking socket. Source: docs/decisions/0069-access.md."""

import os
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.network.streams import RECORD_BYTES, TlsStream
from strandline.security.authority import Authority

BUFFER_BYTES = 1 << 20


def shake_hands(one: ssl.SSLSocket, other: ssl.SSLSocket) -> None:
    waiting = [one, other]
    while waiting:
        for sock in list(waiting):
            try:
                sock.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(sock)


@pytest.fixture
def streams(tmp_path: Path) -> Iterator[tuple[TlsStream, TlsStream]]:
    """A server's and a client's end."""
    files = Authority(tmp_path).issue("server")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(files.certificate, files.key)
    client = ssl.create_default_context(cafile=str(files.trust))
    one, other = socket.socketpair()
    one.setblocking(False)
    other.setblocking(False)
    accepted = server.wrap_socket(one, server_side=True, do_handshake_on_connect=False)
    opened = client.wrap_socket(other, server_hostname="localhost", do_handshake_on_connect=False)
    shake_hands(accepted, opened)
    ends = TlsStream(accepted), TlsStream(opened)
    yield ends
    for end in ends:
        end.close()


def receive(stream: TlsStream, size: int = BUFFER_BYTES) -> bytes:
    buffer = bytearray(size)
    try:
        return bytes(buffer[: stream.recv_into(memoryview(buffer))])
    except BlockingIOError:
        return b""


def test_nothing_to_read_is_a_blocking_io_error(streams: tuple[TlsStream, TlsStream]) -> None:
    with pytest.raises(BlockingIOError):
        streams[0].recv_into(memoryview(bytearray(1)))


def test_one_read_takes_all_records_that_came(streams: tuple[TlsStream, TlsStream]) -> None:
    server, client = streams
    data = os.urandom(4 * RECORD_BYTES)
    assert server.sendmsg([data], (), 0) == len(data)
    assert receive(client) == data


def test_small_parts_leave_as_one_record(streams: tuple[TlsStream, TlsStream]) -> None:
    server, client = streams
    parts = [os.urandom(100) for _ in range(50)]
    assert server.sendmsg(parts) == 5_000
    assert receive(client, 10) == b"".join(parts)[:10]
    assert client.pending_bytes == 4_990


def test_a_full_buffer_leaves_pending_bytes(streams: tuple[TlsStream, TlsStream]) -> None:
    server, client = streams
    server.sendmsg([b"x" * 100])
    assert receive(client, 30) == b"x" * 30
    assert client.pending_bytes == 70
    assert receive(client) == b"x" * 70
    assert client.pending_bytes == 0


@pytest.mark.parametrize("size", [100, 3_000, RECORD_BYTES, 100_000])
def test_writes_that_the_socket_does_not_take_are_repeated(
    streams: tuple[TlsStream, TlsStream], size: int
) -> None:
    server, client = streams
    data = os.urandom(4_000_000)
    parts = [memoryview(data)[at : at + size] for at in range(0, len(data), size)]
    received = bytearray()
    blocked_count = 0
    sent = 0
    while sent < len(data):
        rest = memoryview(data)[sent:]
        first = size - sent % size
        offered = [rest[:first], *parts[(sent + first) // size :]] if first < size else None
        try:
            sent += server.sendmsg((offered or parts[sent // size :])[:500])
        except BlockingIOError:
            blocked_count += 1
            received += receive(client)
    while len(received) < len(data):
        received += receive(client)
    assert received == data
    assert blocked_count > 1


def test_the_end_of_a_stream_is_a_read_of_nothing(streams: tuple[TlsStream, TlsStream]) -> None:
    server, client = streams
    server.sendmsg([b"last"])
    server.close()
    server.close()
    assert server.fileno() == -1
    assert server.pending_bytes == 0
    assert receive(client) == b"last"
    assert client.recv_into(memoryview(bytearray(1))) == 0


def test_a_damaged_stream_is_a_connection_error(tmp_path: Path) -> None:
    files = Authority(tmp_path).issue("server")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(files.certificate, files.key)
    one, other = socket.socketpair()
    one.setblocking(False)
    other.setblocking(False)
    accepted = server.wrap_socket(one, server_side=True, do_handshake_on_connect=False)
    raw = os.dup(other.fileno())
    opened = ssl.create_default_context(cafile=str(files.trust)).wrap_socket(
        other, server_hostname="localhost", do_handshake_on_connect=False
    )
    shake_hands(accepted, opened)
    stream = TlsStream(accepted)
    os.write(raw, b"\x17\x03\x03\x00\x20" + b"?" * 32)
    with pytest.raises(ConnectionError):
        stream.recv_into(memoryview(bytearray(10)))
    stream.close()
    opened.close()
    os.close(raw)
