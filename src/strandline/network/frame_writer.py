"""Writes frames to one connection: its queue, and the injected delay.

Why:    what is sent in one pass of the loop leaves in one segment, where it fits into one.
How:    a frame is `u32 length, payload`. Frames wait for the end of the pass, then leave by
        gathering writes, as far as the socket takes them. With an injected delay, a frame first
        waits in the delay line.
Owns:   everything queued, and the watch for a socket that takes more; one per connection.
Source: design section 5."""

import asyncio
import struct
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import NamedTuple

from strandline.base.disk import Buffer
from strandline.network.pass_end import PassEnd
from strandline.network.streams import Stream

IOVEC_COUNT_MAX = 256
DELAY_EARLY_MAX_S = 0.000_2
"""How long before its time a delayed frame may leave: with the one before it, not by a timer."""
JOINED_BYTES_MAX = 4096
"""The parts of a smaller frame are joined: copying them costs less than gathering them."""

_LENGTH = struct.Struct(">I")


class _Delayed(NamedTuple):
    """A frame that waits for the injected delay. `due_s`: by the loop's clock."""

    due_s: float
    parts: Sequence[Buffer]
    size_bytes: int
    on_handed: Callable[[], None] | None


class FrameWriter:
    """See the module. `on_error` is called when the socket can take nothing any more; the owner
    closes the writer, and then the stream."""

    def __init__(
        self,
        stream: Stream,
        *,
        one_way_delay_ms: float,
        on_error: Callable[[OSError], None],
    ) -> None:
        # Bytes queued and not yet taken by the socket, with those that are delayed.
        self.backlog_bytes = 0
        self._stream = stream
        self._delay_s = one_way_delay_ms / 1000
        self._on_error = on_error
        self._loop = asyncio.get_running_loop()
        self._at_pass_end = PassEnd.of(self._loop).add
        self._queue: deque[Buffer] = deque()
        # Bytes that went into the queue, and into the socket.
        self._queued_bytes = 0
        self._written_bytes = 0
        # Callbacks to run once this many bytes are written.
        self._handed: deque[tuple[int, Callable[[], None]]] = deque()
        self._delayed: deque[_Delayed] = deque()
        self._delay_timer: asyncio.TimerHandle | None = None
        self._is_watching = False
        self._flush_scheduled = False
        self._is_closed = False

    def greet(self, payload: bytes) -> None:
        """Queue the first frame; it is not delayed."""
        frame = _LENGTH.pack(len(payload)) + payload
        self.backlog_bytes += len(frame)
        self._enqueue((frame,), len(frame), None)

    def send(self, parts: Sequence[Buffer], on_handed: Callable[[], None] | None = None) -> None:
        """Queue one frame; see `base.network.Network.send`."""
        size = sum(map(len, parts))
        framed: Sequence[Buffer] = (_LENGTH.pack(size), *parts)
        if size < JOINED_BYTES_MAX:
            framed = (b"".join(framed),)
        size += _LENGTH.size
        self.backlog_bytes += size
        if self._delay_s:
            due_s = self._loop.time() + self._delay_s
            self._delayed.append(_Delayed(due_s, framed, size, on_handed))
            if self._delay_timer is None:
                self._delay_timer = self._loop.call_at(
                    self._delayed[0].due_s, self._release_delayed
                )
            return
        self._enqueue(framed, size, on_handed)

    def close(self) -> None:
        """Drop all that is queued. Before the stream is closed."""
        if self._is_closed:
            return
        self._is_closed = True
        self._watch_writable(watch=False)
        if self._delay_timer is not None:
            self._delay_timer.cancel()
            self._delay_timer = None
        callbacks = [on_handed for _, on_handed in self._handed]
        callbacks += [one.on_handed for one in self._delayed if one.on_handed is not None]
        self._queue.clear()
        self._handed.clear()
        self._delayed.clear()
        self.backlog_bytes = 0
        for callback in callbacks:
            callback()

    def _release_delayed(self) -> None:
        now = self._loop.time()
        while self._delayed and self._delayed[0].due_s <= now + DELAY_EARLY_MAX_S:
            _, framed, size, on_handed = self._delayed.popleft()
            self._enqueue(framed, size, on_handed)
        self._delay_timer = (
            self._loop.call_at(self._delayed[0].due_s, self._release_delayed)
            if self._delayed
            else None
        )

    def _enqueue(
        self, framed: Sequence[Buffer], size: int, on_handed: Callable[[], None] | None
    ) -> None:
        self._queue.extend(framed)
        self._queued_bytes += size
        if on_handed is not None:
            self._handed.append((self._queued_bytes, on_handed))
        if not self._is_watching and not self._flush_scheduled:
            self._flush_scheduled = True
            self._at_pass_end(self._flush)

    def _flush(self) -> None:
        self._flush_scheduled = False
        try:
            while self._queue and not self._is_closed:
                if not self._write_some(self._stream):
                    self._watch_writable(watch=not self._is_closed)
                    return
        except OSError as error:
            self._on_error(error)
            return
        if self._is_watching:
            self._watch_writable(watch=False)

    def _write_some(self, stream: Stream) -> bool:
        """One gathering write; False when the socket took less than it was offered."""
        queue = self._queue
        is_all = len(queue) <= IOVEC_COUNT_MAX
        parts = list(queue if is_all else islice(queue, IOVEC_COUNT_MAX))
        try:
            written = stream.sendmsg(parts)
        except (BlockingIOError, InterruptedError):
            return False
        self._written_bytes += written
        self.backlog_bytes -= written
        if self._written_bytes == self._queued_bytes:
            queue.clear()
            took_all = True
        else:
            took_all = not is_all and written == sum(map(len, parts))
            self._remove(written)
        handed = self._handed
        while handed and handed[0][0] <= self._written_bytes:
            handed.popleft()[1]()
        return took_all

    def _remove(self, written: int) -> None:
        """Remove `written` bytes from the queue's head."""
        queue = self._queue
        while len(queue[0]) <= written:
            written -= len(queue.popleft())
        if written:
            queue[0] = memoryview(queue[0])[written:]

    def _watch_writable(self, *, watch: bool) -> None:
        if watch == self._is_watching:
            return
        self._is_watching = watch
        if watch:
            self._loop.add_writer(self._stream.fileno(), self._flush)
        else:
            self._loop.remove_writer(self._stream.fileno())
