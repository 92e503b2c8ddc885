"""Answers leave in order and in few system calls. Source: python-speed reference 1 and 9."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.base.errors import StorageError
from strandline.broker.server.limits import KIB, SENDFILE_BYTES_MIN, WRITE_BYTES_PER_PASS
from strandline.broker.server.outbox import (
    PREAD_BYTES_MAX,
    TLS_PREAD_BYTES_MAX,
    FilePart,
    Outbox,
)
from strandline.network.streams import TlsStream


class MemoryFile:
    """A file without a descriptor."""

    path = "memory"

    def __init__(self, content: bytes) -> None:
        self._content = content

    def pread(self, length: int, position: int) -> bytes:
        return self._content[position : position + length]

    def fileno(self) -> int:
        return -1


class ScriptedSocket:
    """A socket that takes so many bytes each time; -1 for none at all."""

    def __init__(self, takes: list[int]) -> None:
        self._takes = iter(takes)
        self.taken = bytearray()
        self.call_count = 0

    def sendmsg(self, buffers: list[bytes], _ancillary: object, _flags: int) -> int:
        self.call_count += 1
        take = next(self._takes, 1 << 40)
        if take < 0:
            raise BlockingIOError
        data = b"".join(buffers)[:take]
        self.taken += data
        return len(data)

    def fileno(self) -> int:
        return 99


@given(
    sizes=st.lists(st.tuples(st.booleans(), st.integers(0, 3_000)), max_size=30),
    takes=st.lists(st.integers(-1, 4_000), max_size=60),
)
def test_every_byte_arrives_once_and_in_order_whatever_the_socket_takes(
    sizes: list[tuple[bool, int]], takes: list[int]
) -> None:
    content = os.urandom(3_000)
    file = MemoryFile(content)
    socket = ScriptedSocket(takes)
    outbox = Outbox(socket)  # type: ignore[arg-type]
    expected = b""
    for number, (is_file, size) in enumerate(sizes):
        part = FilePart(file, 0, size) if is_file else bytes([number]) * size  # type: ignore[arg-type]
        outbox.add([part])
        expected += content[:size] if is_file else bytes([number]) * size
        outbox.write()
    while not outbox.is_empty:
        outbox.write()
    assert bytes(socket.taken) == expected
    assert outbox.backlog_bytes == 0


def test_small_ranges_go_with_what_is_around_them_in_one_call() -> None:
    socket = ScriptedSocket([])
    outbox = Outbox(socket)  # type: ignore[arg-type]
    file = MemoryFile(bytes(100 * KIB))
    small = FilePart(file, 0, SENDFILE_BYTES_MIN - 1)  # type: ignore[arg-type]
    outbox.add([b"head", small, b"between", small, b"tail"])
    assert outbox.write()
    assert outbox.is_empty
    assert socket.call_count == 1


def test_one_connection_takes_no_more_than_its_share_of_a_pass() -> None:
    socket = ScriptedSocket([])
    outbox = Outbox(socket)  # type: ignore[arg-type]
    outbox.add([bytes(WRITE_BYTES_PER_PASS)] * 3)
    outbox.write()
    assert len(socket.taken) == WRITE_BYTES_PER_PASS
    assert outbox.backlog_bytes == 2 * WRITE_BYTES_PER_PASS


def test_a_large_range_without_a_descriptor_is_read_in_pieces() -> None:
    content = os.urandom(3 * PREAD_BYTES_MAX + 17)
    socket = ScriptedSocket([10])
    outbox = Outbox(socket)  # type: ignore[arg-type]
    outbox.add([FilePart(MemoryFile(content), 5, len(content) - 5), b"end"])  # type: ignore[arg-type]
    while not outbox.is_empty:
        outbox.write()
        assert outbox.backlog_bytes <= WRITE_BYTES_PER_PASS + PREAD_BYTES_MAX
    assert bytes(socket.taken) == content[5:] + b"end"


def test_a_range_beyond_the_end_of_its_file_is_corruption(tmp_path: Path) -> None:
    outbox = Outbox(ScriptedSocket([]))  # type: ignore[arg-type]
    outbox.add([FilePart(MemoryFile(bytes(10)), 5, 6)])  # type: ignore[arg-type]
    with pytest.raises(StorageError, match="the file was cut"):
        outbox.write()


class DescriptorFile:
    """A real file."""

    path = "log"

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def pread(self, length: int, position: int) -> bytes:
        return os.pread(self._descriptor, length, position)

    def fileno(self) -> int:
        return self._descriptor


class TakenStream(TlsStream):
    """A TLS stream without TLS: it keeps what it takes."""

    def __init__(self, takes: list[int]) -> None:
        self.socket = ScriptedSocket(takes)

    def sendmsg(self, buffers: list[bytes], _ancillary: object = (), _flags: int = 0) -> int:  # type: ignore[override]
        return self.socket.sendmsg(buffers, _ancillary, _flags)

    def fileno(self) -> int:
        raise AssertionError("the kernel must not send the bytes of a file unprotected")


def test_a_file_leaves_through_tls_piece_by_piece(tmp_path: Path) -> None:
    content = os.urandom(3 * TLS_PREAD_BYTES_MAX)
    path = tmp_path / "log"
    path.write_bytes(content)
    with open(path, "rb") as opened:
        file = DescriptorFile(opened.fileno())
        stream = TakenStream([-1, 100_000, -1])
        outbox = Outbox(stream)
        part = FilePart(file, 0, len(content))  # type: ignore[arg-type]
        outbox.add([b"head", part, part, b"tail"])
        while not outbox.is_empty:
            outbox.write()
            assert outbox.backlog_bytes <= 8 + TLS_PREAD_BYTES_MAX
    assert stream.socket.taken == b"head" + content + content + b"tail"
