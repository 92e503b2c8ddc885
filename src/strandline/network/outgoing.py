"""One connection to one peer on one lane: connects, greets, writes the queue, reconnects.

Why:    a broker sends on the connections that it opened and receives on those it accepted. So each
        direction and each lane has its own queue, and none waits for another.
How:    DOWN --connect--> CONNECTING --established--> UP --error, end of file--> DOWN (backoff, then
        again). If the peer acknowledges no sent bytes for `UNACKNOWLEDGED_MAX_MS` of `opening`, the
        connection counts as dead and its owner is told (`on_silence`).
        With an injected delay, a message first waits in the delay line for half the round trip.
Owns:   the socket and everything queued; one per (peer, lane).
Source: design section 5; frames are `u32 length, payload`, the first one is the greeting."""

import asyncio
import errno
import socket
import ssl
import struct
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice

from strandline.base.disk import Buffer
from strandline.base.network import Lane
from strandline.model.ids import BrokerId
from strandline.network.opening import open_connection
from strandline.network.sockets import drop_unsent
from strandline.network.streams import Stream, TlsStream
from strandline.security.peers import PeerTls

RECONNECT_FIRST_MS = 20
RECONNECT_MAX_MS = 500
LASTING_MS = 1_000
"""A connection that was up for so long was accepted."""
CONNECT_TIMEOUT_MS = 3_000
ENDED_ERRNOS = frozenset((errno.ECONNRESET, errno.EPIPE))
"""How the end of a connection is told that the peer's host has ended. TCP_USER_TIMEOUT ends one
with ETIMEDOUT, or with whatever was said on the way meanwhile."""
IOVEC_COUNT_MAX = 256
DELAY_EARLY_MAX_S = 0.000_2
"""How long before its time a delayed message may leave: with the one before it, not by a timer."""
JOINED_BYTES_MAX = 4096
"""The parts of a smaller message are joined: copying them costs less than gathering them."""

_LENGTH = struct.Struct(">I")
_Delayed = tuple[float, Sequence[Buffer], int, Callable[[], None] | None]
"""When it is due, its parts, its size, whom to tell."""


class Outgoing:
    """See the module. All methods run on the loop's thread."""

    def __init__(
        self,
        *,
        peer: BrokerId,
        lane: Lane,
        address: tuple[str, int],
        greeting: bytes,
        one_way_delay_ms: float,
        tls: PeerTls | None = None,
        on_connected: Callable[[BrokerId, Lane], None],
        on_lost: Callable[[BrokerId, Lane], None],
        on_silence: Callable[[BrokerId, Lane], None],
    ) -> None:
        self.peer = peer
        self.lane = lane
        self.is_up = False
        self.backlog_bytes = 0
        self._address = address
        self._greeting = greeting
        self._tls = tls
        self._delay_s = one_way_delay_ms / 1000
        self._on_connected = on_connected
        self._on_lost = on_lost
        self._on_silence = on_silence
        self._loop = asyncio.get_running_loop()
        self._socket: socket.socket | None = None
        # What the socket is written through: itself, or TLS over it.
        self._stream: Stream | None = None
        self._up_since_s = 0.0
        self._queue: deque[Buffer] = deque()
        # Bytes that went into the queue, and into the socket, since the connection is up.
        self._queued_bytes = 0
        self._written_bytes = 0
        # Callbacks to run once this many bytes are written.
        self._handed: deque[tuple[int, Callable[[], None]]] = deque()
        self._delayed: deque[_Delayed] = deque()
        self._delay_timer: asyncio.TimerHandle | None = None
        self._writing = False
        self._flush_scheduled = False
        self._backoff_ms = RECONNECT_FIRST_MS
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._connect_soon(0)

    def send(self, parts: Sequence[Buffer], on_handed: Callable[[], None] | None) -> bool:
        """Queue one message; see `base.network.Network.send`."""
        if not self.is_up:
            return False
        size = sum(map(len, parts))
        framed: Sequence[Buffer] = (_LENGTH.pack(size), *parts)
        if size < JOINED_BYTES_MAX:
            framed = (b"".join(framed),)
        size += _LENGTH.size
        self.backlog_bytes += size
        if self._delay_s:
            self._delayed.append((self._loop.time() + self._delay_s, framed, size, on_handed))
            if self._delay_timer is None:
                self._delay_timer = self._loop.call_at(self._delayed[0][0], self._release_delayed)
            return True
        self._enqueue(framed, size, on_handed)
        return True

    def renew(self) -> None:
        """Give up the connection that is up, with all that has not arrived, for another one."""
        if self._socket is not None:
            drop_unsent(self._socket)
            self._lose()

    def close(self) -> None:
        """Drop the connection and all that is queued, for good."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
        self._drop()

    # ---- connecting ------------------------------------------------------------------------------

    def _connect_soon(self, delay_ms: int) -> None:
        if not self._closed:
            self._task = self._loop.create_task(self._connect(delay_ms))

    async def _connect(self, delay_ms: int) -> None:
        await asyncio.sleep(delay_ms / 1000)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_MS / 1000):
                sock = await open_connection(self._address, tls=self._tls, peer=self.peer)
        except (OSError, TimeoutError):
            self._backoff_ms = min(self._backoff_ms * 2, RECONNECT_MAX_MS)
            self._on_lost(self.peer, self.lane)
            self._connect_soon(self._backoff_ms)
            return
        self._socket = sock
        self._stream = TlsStream(sock) if isinstance(sock, ssl.SSLSocket) else sock
        self._up_since_s = self._loop.time()
        self.is_up = True
        self._loop.add_reader(sock.fileno(), self._on_readable)
        greeting = _LENGTH.pack(len(self._greeting)) + self._greeting
        self.backlog_bytes += len(greeting)
        self._enqueue((greeting,), len(greeting), None)
        self._on_connected(self.peer, self.lane)

    def _on_readable(self) -> None:
        """The peer never writes here: readable means that it is gone."""
        assert self._stream is not None
        try:
            if self._stream.recv_into(bytearray(64)):
                return
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._lose(error)
            return
        self._lose()

    def _lose(self, error: OSError | None = None) -> None:
        """Connect again: at once after a connection that lasted, later and later after those that
        the peer ends at the greeting."""
        lasted_s = self._loop.time() - self._up_since_s
        if lasted_s * 1000 >= LASTING_MS:
            self._backoff_ms = RECONNECT_FIRST_MS
        else:
            self._backoff_ms = min(self._backoff_ms * 2, RECONNECT_MAX_MS)
        self._drop()
        self._on_lost(self.peer, self.lane)
        self._connect_soon(self._backoff_ms)
        if error is not None and error.errno not in ENDED_ERRNOS:
            self._on_silence(self.peer, self.lane)

    def _drop(self) -> None:
        self.is_up = False
        if self._socket is not None:
            self._loop.remove_reader(self._socket.fileno())
            if self._writing:
                self._loop.remove_writer(self._socket.fileno())
            assert self._stream is not None
            self._stream.close()
            self._socket = self._stream = None
        self._writing = False
        if self._delay_timer is not None:
            self._delay_timer.cancel()
            self._delay_timer = None
        callbacks = [on_handed for _, on_handed in self._handed]
        callbacks += [on_handed for *_, on_handed in self._delayed if on_handed is not None]
        self._queue.clear()
        self._handed.clear()
        self._delayed.clear()
        self._queued_bytes = self._written_bytes = 0
        self.backlog_bytes = 0
        for callback in callbacks:
            callback()

    # ---- writing ---------------------------------------------------------------------------------

    def _release_delayed(self) -> None:
        now = self._loop.time()
        while self._delayed and self._delayed[0][0] <= now + DELAY_EARLY_MAX_S:
            _, framed, size, on_handed = self._delayed.popleft()
            self._enqueue(framed, size, on_handed)
        self._delay_timer = (
            self._loop.call_at(self._delayed[0][0], self._release_delayed)
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
        if not self._writing and not self._flush_scheduled:
            self._flush_scheduled = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_scheduled = False
        try:
            while self._queue and self._stream is not None:
                if not self._write_some(self._stream):
                    self._watch_writable(watch=True)
                    return
        except OSError as error:
            self._lose(error)
            return
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
        if watch == self._writing or self._socket is None:
            return
        self._writing = watch
        if watch:
            self._loop.add_writer(self._socket.fileno(), self._flush)
        else:
            self._loop.remove_writer(self._socket.fileno())
