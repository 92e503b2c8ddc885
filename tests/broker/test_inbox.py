"""Bytes that a connection reads become whole frames; memory grows with the bytes received.

Source: reliability reference 4 (length before memory, always)."""

import random
import socket
import struct
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.base.errors import ProtocolError
from strandline.broker.server.inbox import Inbox, Scratch
from strandline.broker.server.limits import (
    FRAME_BYTES_MIN,
    LARGE_FRAME_BYTES,
    MIB,
    PEEK_BYTES,
    RECEIVE_BYTES,
)


class Pipe:
    """A socket whose reads are scripted: each gives at most one piece."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self._data = memoryview(data)
        self._sizes = iter(sizes)
        self.asked: list[int] = []

    def recv_into(self, buffer: memoryview) -> int:
        self.asked.append(len(buffer))
        count = min(len(buffer), len(self._data), next(self._sizes, len(self._data)))
        buffer[:count] = self._data[:count]
        self._data = self._data[count:]
        return count


def framed(*frames: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(one)) + one for one in frames)


def frames_of(inbox: Inbox, pipe: Pipe) -> Iterator[bytes]:
    """Everything that comes, in order; other connections use the shared buffer in between."""
    while inbox.receive(pipe):  # type: ignore[arg-type]
        while (frame := inbox.take()) is not None:
            assert not frame.readonly
            yield bytes(frame)
        inbox.stash()
        inbox._view[:] = b"\xee" * len(inbox._view)


def body(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


@given(
    sizes=st.lists(st.integers(FRAME_BYTES_MIN, 2_000), min_size=1, max_size=20),
    pieces=st.lists(st.integers(1, 700), max_size=60),
)
def test_frames_come_out_as_they_went_in_whatever_the_pieces(
    sizes: list[int], pieces: list[int]
) -> None:
    sent = [body(size, seed) for seed, size in enumerate(sizes)]
    inbox = Inbox(Scratch(), MIB)
    assert list(frames_of(inbox, Pipe(framed(*sent), pieces))) == sent
    assert inbox.partial_bytes == 0


@pytest.mark.parametrize("size", [LARGE_FRAME_BYTES, LARGE_FRAME_BYTES + 1, RECEIVE_BYTES, 3 * MIB])
@pytest.mark.parametrize("piece", [1_000, 65_536, 10 * MIB])
def test_large_frames_come_whole_between_small_ones(size: int, piece: int) -> None:
    sent = [body(20), body(size, 1), body(9, 2), body(size, 3), body(30, 4)]
    data = framed(*sent)
    inbox = Inbox(Scratch(), 4 * MIB)
    assert list(frames_of(inbox, Pipe(data, [piece] * (len(data) // piece + 1)))) == sent


class StallingPipe(Pipe):
    """Has nothing for every other read."""

    _is_stalled = False

    def recv_into(self, buffer: memoryview) -> int:
        self._is_stalled = not self._is_stalled
        if self._is_stalled:
            raise BlockingIOError
        return super().recv_into(buffer)


SIZES = st.sampled_from(
    [
        FRAME_BYTES_MIN,
        PEEK_BYTES - 5,
        PEEK_BYTES - 4,
        PEEK_BYTES,
        LARGE_FRAME_BYTES,
        LARGE_FRAME_BYTES + 1,
        RECEIVE_BYTES + 1,
        700_000,
    ]
)


@settings(deadline=None, max_examples=60)
@given(
    sizes=st.lists(SIZES, min_size=1, max_size=8),
    pieces=st.lists(st.sampled_from([1, 4, PEEK_BYTES - 1, PEEK_BYTES, 100_000]), max_size=12),
)
def test_large_and_small_frames_in_any_order_come_out_as_they_went_in(
    sizes: list[int], pieces: list[int]
) -> None:
    sent = [body(size, seed) for seed, size in enumerate(sizes)]
    pipe = StallingPipe(framed(*sent), pieces)
    inbox = Inbox(Scratch(), MIB)
    found: list[bytes] = []
    while len(found) < len(sent):
        try:
            found += frames_of(inbox, pipe)
        except BlockingIOError:
            continue
    assert found == sent


def test_an_expected_large_frame_is_read_into_its_own_memory() -> None:
    size = 700_000
    pipe = Pipe(framed(body(size, 1), body(size, 2)), [])
    inbox = Inbox(Scratch(), MIB)
    assert list(frames_of(inbox, pipe)) == [body(size, 1), body(size, 2)]
    # The first came as a surprise; of the second only the beginning was read to be copied.
    assert pipe.asked[0] == RECEIVE_BYTES
    second = pipe.asked.index(PEEK_BYTES)
    assert pipe.asked[second + 1] == size + 4 - PEEK_BYTES


def test_a_read_that_finds_nothing_keeps_what_came_before() -> None:
    sent = framed(body(100))
    inbox = Inbox(Scratch(), MIB)
    pipe = StallingPipe(sent, [50])
    with pytest.raises(BlockingIOError):
        inbox.receive(pipe)  # type: ignore[arg-type]
    assert inbox.receive(pipe) == 50  # type: ignore[arg-type]
    assert inbox.take() is None
    inbox.stash()
    with pytest.raises(BlockingIOError):  # As after a wake-up without a reason.
        inbox.receive(pipe)  # type: ignore[arg-type]
    inbox._view[:] = b"\xee" * len(inbox._view)  # Another connection reads.
    inbox.receive(pipe)  # type: ignore[arg-type]
    frame = inbox.take()
    assert frame is not None
    assert bytes(frame) == body(100)


def test_memory_grows_only_with_what_has_come() -> None:
    inbox = Inbox(Scratch(), 100 * MIB)
    pipe = Pipe(struct.pack(">i", 90 * MIB) + bytes(1024), [])
    assert list(frames_of(inbox, pipe)) == []
    assert inbox.partial_bytes <= RECEIVE_BYTES
    more = Pipe(bytes(2 * MIB), [65_536] * 32)
    assert list(frames_of(inbox, more)) == []
    assert inbox.partial_bytes <= 2 * (2 * MIB + 1024)


def test_a_connection_that_sent_large_frames_gets_their_size_at_once() -> None:
    inbox = Inbox(Scratch(), 100 * MIB)
    assert len(list(frames_of(inbox, Pipe(framed(body(MIB)), [])))) == 1
    assert list(frames_of(inbox, Pipe(framed(body(MIB))[:100], []))) == []
    assert inbox.partial_bytes == MIB


@pytest.mark.parametrize(
    ("start", "reason"),
    [
        (struct.pack(">i", -1), "announces -1 bytes"),
        (struct.pack(">i", 0), "announces 0 bytes"),
        (struct.pack(">i", FRAME_BYTES_MIN - 1), "announces 7 bytes"),
        (struct.pack(">i", 2**31 - 1), "a request of 2147483647 bytes; the limit is 1048576"),
        (struct.pack(">i", MIB + 1), "a request of 1048577 bytes"),
        (b"GET / HTTP/1.1\r\n\r\n", "an HTTP request"),
        (b"POST / HTTP/1.1\r\n\r\n", "an HTTP request"),
        (b"\x16\x03\x01\x02\x00\x01", "a TLS greeting"),
    ],
)
def test_what_is_no_frame_is_refused_before_memory_is_taken(start: bytes, reason: str) -> None:
    inbox = Inbox(Scratch(), MIB)
    with pytest.raises(ProtocolError, match=reason):
        list(frames_of(inbox, Pipe(start, [])))
    assert inbox.partial_bytes <= len(start)


def test_what_was_set_aside_is_found_again_without_a_read() -> None:
    inbox = Inbox(Scratch(), MIB)
    inbox.receive(Pipe(framed(body(10), body(11), body(12)), []))  # type: ignore[arg-type]
    assert inbox.take() == body(10)
    inbox.stash()
    inbox._view[:] = bytes(len(inbox._view))
    assert inbox.may_have_frames
    inbox.resume()
    assert inbox.take() == body(11)
    assert inbox.take() == body(12)
    assert inbox.take() is None
    inbox.stash()
    assert not inbox.may_have_frames


def test_the_end_of_the_stream_is_a_read_of_nothing() -> None:
    one, other = socket.socketpair()
    with one, other:
        other.close()
        assert Inbox(Scratch(), MIB).receive(one) == 0
