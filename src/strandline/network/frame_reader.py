"""Reads the frames of one connection and hands them on without a copy.

Why:    a follower writes batches to its log straight from this buffer.
How:    `recv_into` one buffer that grows to the largest frame seen and shrinks again after a large
        one. A frame may announce at most `frame_bytes_max`, which is small until the owner knows
        the peer; the buffer grows only with the bytes that have arrived.
Owns:   the buffer, and the watch for readable bytes.
Source: design section 4 (data plane); `frame_writer.py` for the framing; reliability reference 4 (a
        small cap before authentication)."""

import asyncio
import logging
import struct
from collections.abc import Callable

from strandline.network.greeting import GREETING_BYTES_MAX
from strandline.network.streams import Stream, TlsStream

READ_AGAIN_BYTES = 64 * 1024

_LENGTH = struct.Struct(">I")
_log = logging.getLogger("strandline.network")


class FrameReader:
    """See the module. `on_frame` gets each frame's payload; a ValueError from it ends the
    connection, and so does anything else, which is logged. `on_ended` is called once when there is
    nothing more to read, with the socket's error if it had one; the owner closes the stream.

    buffer_bytes: the buffer's size while no larger frame arrives."""

    def __init__(
        self,
        stream: Stream,
        *,
        buffer_bytes: int,
        on_frame: Callable[[memoryview], None],
        on_ended: Callable[[OSError | None], None],
    ) -> None:
        self._stream = stream
        # The same if it may hold bytes that the kernel does not report, else None.
        self._tls = stream if isinstance(stream, TlsStream) else None
        self._buffer_bytes = buffer_bytes
        self._on_frame = on_frame
        self._on_ended = on_ended
        # The owner raises it once it knows the peer.
        self.frame_bytes_max = GREETING_BYTES_MAX
        self._buffer = bytearray(_LENGTH.size + GREETING_BYTES_MAX)
        self._filled = 0
        self._is_stopped = False
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(stream.fileno(), self._on_readable)

    def stop(self) -> None:
        """Read nothing more; `on_ended` is not called. Before the stream is closed."""
        if not self._is_stopped:
            self._is_stopped = True
            self._loop.remove_reader(self._stream.fileno())

    def _end(self, error: OSError | None) -> None:
        self.stop()
        self._on_ended(error)

    def _on_readable(self) -> None:
        while True:
            try:
                count = self._stream.recv_into(memoryview(self._buffer)[self._filled :])
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                self._end(error)
                return
            if count == 0:
                self._end(None)
                return
            self._filled += count
            try:
                self._take_frames()
            except ValueError:
                if not self._is_stopped:
                    self._end(None)
                return
            except Exception:  # A connection's boundary: read on, and it would come again.
                _log.exception("a peer's message could not be dealt with; closing its connection")
                if not self._is_stopped:
                    self._end(None)
                return
            if self._is_stopped:
                return
            is_held = self._tls is not None and self._tls.pending_bytes > 0
            if count < READ_AGAIN_BYTES and not is_held:
                return

    def _take_frames(self) -> None:
        position = 0
        filled = self._filled
        needed = 0
        view = memoryview(self._buffer)
        while filled - position >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(view, position)
            if length > self.frame_bytes_max:
                raise ValueError(f"a frame of {length} bytes; the limit is {self.frame_bytes_max}")
            end = position + _LENGTH.size + length
            if end > filled:
                needed = _LENGTH.size + length
                break
            self._on_frame(view[position + _LENGTH.size : end])
            position = end
            if self._is_stopped:
                return
        if position == filled and len(self._buffer) == self._buffer_bytes:
            self._filled = 0  # All is taken, and the buffer has its usual size.
        else:
            self._make_room(view, position, needed)

    def _make_room(self, view: memoryview, position: int, needed: int) -> None:
        """Move the rest to the front; grow towards `needed`, at most doubling what has come in."""
        rest = self._filled - position
        capacity = len(self._buffer)
        usual = wanted = min(self._buffer_bytes, _LENGTH.size + self.frame_bytes_max)
        if needed > usual:
            wanted = min(needed, max(2 * rest, 2 * self._buffer_bytes))
        if wanted > capacity or (wanted < capacity and rest < usual):
            grown = bytearray(wanted)
            grown[:rest] = view[position : self._filled]
            self._buffer = grown
        elif position:
            view[:rest] = bytes(view[position : self._filled])
        self._filled = rest
