"""The reading half of a connection: from socket reads to frames that own their memory.

Why:    record batches are stamped in place and kept until every replica has them, so a frame owns
        its memory. And no client may make the broker allocate memory for bytes that have not come.
How:    Each read goes into a buffer that all connections share. Small frames are copied out of it.
            A large frame that is incomplete gets a buffer of its own, which grows with what arrives
        (at most doubling), is read into directly, and becomes the request's memory. After a large
        frame the next one is expected to be large: only its beginning is read into the shared
        buffer. Left-over bytes are kept until the next read.

            u32 length | frame ...         length: 8 .. request_bytes_max, or the connection ends
Owns:   the partial frame of one connection.
Source: python-speed reference 2 and 9; reliability reference 4; kafka-protocol reference 8.4."""

import struct

from strandline.base.errors import ProtocolError
from strandline.base.memory import unset_bytes
from strandline.broker.server.limits import (
    FRAME_BYTES_MIN,
    LARGE_FRAME_BYTES,
    PEEK_BYTES,
    RECEIVE_BYTES,
    TRUSTED_BYTES_MAX,
)
from strandline.network.streams import Stream

_LENGTH = struct.Struct(">i")
_HTTP_METHODS = (b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI", b"DELE", b"PATC", b"CONN", b"PRI ")


class Scratch:
    """The buffer that all connections of a server read into, one at a time."""

    __slots__ = ("view",)

    def __init__(self) -> None:
        self.view = memoryview(bytearray(RECEIVE_BYTES + LARGE_FRAME_BYTES + _LENGTH.size))


class Inbox:
    """See the module. Between two calls of `receive` or `resume`, take all frames, then `stash`."""

    __slots__ = (
        "_end",
        "_expects_large",
        "_filled",
        "_frame_bytes_max",
        "_large",
        "_large_size",
        "_position",
        "_rest",
        "_trusted_bytes",
        "_view",
    )

    def __init__(self, scratch: Scratch, frame_bytes_max: int) -> None:
        self._view = scratch.view
        self._frame_bytes_max = frame_bytes_max
        # The part of the shared buffer that this connection uses until `stash`: [position, end).
        self._position = 0
        self._end = 0
        # Left-over bytes, while other connections use the shared buffer.
        self._rest = b""
        # A large frame under way: its buffer (no longer than the frame), bytes come in, its size.
        self._large: bytearray | None = None
        self._filled = 0
        self._large_size = 0
        # Whether the last frame was a large one.
        self._expects_large = False
        # The largest frame that came in whole, within TRUSTED_BYTES_MAX.
        self._trusted_bytes = RECEIVE_BYTES

    def allow(self, frame_bytes_max: int) -> None:
        """Take frames up to this length from now on."""
        self._frame_bytes_max = frame_bytes_max

    @property
    def partial_bytes(self) -> int:
        """Memory that a partial frame takes."""
        return len(self._rest) + (0 if self._large is None else len(self._large))

    @property
    def may_have_frames(self) -> bool:
        """Whether `resume` and `take` may find a frame without a read."""
        return bool(self._rest) or (self._large is not None and self._filled == len(self._large))

    def receive(self, stream: Stream) -> int:
        """Read once; the count of bytes, 0 at the end of the stream. Raises
        OSError, BlockingIOError included."""
        if self._large is not None:
            return self._receive_large(stream, self._large)
        start = self.resume()
        wanted = PEEK_BYTES if self._expects_large else self._room(start)
        try:
            count = stream.recv_into(self._view[start : start + wanted])
        except OSError:
            self.stash()  # Nothing came, and other connections use the shared buffer from here on.
            raise
        self._end = start + count
        if count == PEEK_BYTES and self._expects_large:
            count += self._receive_rest(stream)
        return count

    def _room(self, kept_bytes: int) -> int:
        """How much to read: of a client whose frames must be short, no more than one at a time."""
        return min(RECEIVE_BYTES, max(1, _LENGTH.size + self._frame_bytes_max - kept_bytes))

    def _receive_rest(self, stream: Stream) -> int:
        """Read on, into the large frame that has begun, if any; the count of further bytes."""
        (size,) = _LENGTH.unpack_from(self._view, 0)
        try:
            if LARGE_FRAME_BYTES < size <= self._frame_bytes_max:
                return self._receive_large(stream, self._begin_large(size))
            count = stream.recv_into(self._view[self._end : self._end + RECEIVE_BYTES])
        except (BlockingIOError, InterruptedError):
            return 0
        self._end += count
        return count

    def _receive_large(self, stream: Stream, large: bytearray) -> int:
        count = stream.recv_into(memoryview(large)[self._filled :])
        self._filled += count
        return count

    def resume(self) -> int:
        """Bring left-over bytes back into the shared buffer; their count."""
        rest = self._rest
        count = len(rest)
        if count:
            self._view[:count] = rest
            self._rest = b""
        self._position = 0
        self._end = count
        return count

    def take(self) -> memoryview | None:
        """The next whole frame without its length, writable, the caller's; None if there is none.

        Raises ProtocolError if the bytes are no frame."""
        if self._large is not None:
            return self._take_large(self._large)
        position = self._position
        available = self._end - position - 4
        if available < 0:
            return None
        (size,) = _LENGTH.unpack_from(self._view, position)
        if not FRAME_BYTES_MIN <= size <= self._frame_bytes_max:
            raise ProtocolError(self._explain(size, bytes(self._view[position : position + 4])))
        if available < size:
            if size > LARGE_FRAME_BYTES:
                self._begin_large(size)
            return None
        position += 4
        self._position = position + size
        self._expects_large = size > LARGE_FRAME_BYTES
        return memoryview(bytearray(self._view[position : position + size]))

    def stash(self) -> None:
        """Keep left-over bytes: other connections use the shared buffer now."""
        if self._position < self._end:
            self._rest = bytes(self._view[self._position : self._end])
        self._position = self._end = 0

    def _begin_large(self, size: int) -> bytearray:
        come = self._view[self._position + 4 : self._end]
        self._position = self._end
        self._large_size = size
        self._filled = len(come)
        self._large = large = unset_bytes(min(size, max(self._trusted_bytes, 2 * len(come))))
        large[: len(come)] = come
        return large

    def _take_large(self, large: bytearray) -> memoryview | None:
        if self._filled < len(large):
            return None
        if self._filled < self._large_size:
            grown = unset_bytes(min(self._large_size, 2 * self._filled))
            grown[: self._filled] = large
            self._large = grown
            return None
        self._large = None
        self._expects_large = True
        self._trusted_bytes = max(self._trusted_bytes, min(self._large_size, TRUSTED_BYTES_MAX))
        return memoryview(large)

    def _explain(self, size: int, start: bytes) -> str:
        if start in _HTTP_METHODS:
            return "an HTTP request came to the Kafka port"
        if start[0] == 0x16 and start[1] == 3:
            return "a TLS greeting came to the plaintext Kafka port"
        if size > self._frame_bytes_max:
            return f"a request of {size} bytes; the limit is {self._frame_bytes_max}"
        return f"a request that announces {size} bytes"
