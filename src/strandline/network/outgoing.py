"""One connection to one peer on one lane: connects, greets, writes and reads, reconnects.

Why:    each direction and each lane has its own queue, and none waits for another. Replies of the
        peer come on this connection; what it sends of its own accord comes on those it opened.
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
from collections.abc import Callable

from strandline.base.network import Lane
from strandline.model.ids import BrokerId
from strandline.network.frame_writer import FrameWriter
from strandline.network.opening import open_connection
from strandline.network.replies import Replies
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


class Outgoing:
    """See the module. All methods run on the loop's thread.

    read_replies: reads the replies on a connection that is up; it gets the stream, and what to call
    when that ends."""

    def __init__(
        self,
        *,
        peer: BrokerId,
        lane: Lane,
        address: tuple[str, int],
        greeting: bytes,
        one_way_delay_ms: float,
        tls: PeerTls | None = None,
        read_replies: Callable[[Stream, Callable[[OSError | None], None]], Replies],
        on_connected: Callable[[BrokerId, Lane], None],
        on_lost: Callable[[BrokerId, Lane], None],
        on_silence: Callable[[BrokerId, Lane], None],
    ) -> None:
        self.peer = peer
        self.lane = lane
        self.address = address
        self._greeting = greeting
        self._tls = tls
        self._one_way_delay_ms = one_way_delay_ms
        self._read_replies = read_replies
        self._on_connected = on_connected
        self._on_lost = on_lost
        self._on_silence = on_silence
        self._loop = asyncio.get_running_loop()
        # These four are set while the connection is up. The stream is what the socket is written
        # through: itself, or TLS over it.
        self._socket: socket.socket | None = None
        self._stream: Stream | None = None
        self.writer: FrameWriter | None = None
        self._replies: Replies | None = None
        self._up_since_s = 0.0
        self._backoff_ms = RECONNECT_FIRST_MS
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._connect_soon(0)

    @property
    def backlog_bytes(self) -> int:
        """Bytes queued and not yet taken by the socket."""
        return 0 if self.writer is None else self.writer.backlog_bytes

    @property
    def is_answered(self) -> bool:
        """See `peer_processes.Connection`."""
        return self._replies is not None and self._replies.is_greeted

    def expect_process(self, process: int) -> None:
        """See `peer_processes.Connection`."""
        if self._replies is not None and not self._replies.expect(process):
            self.renew()

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

    def _connect_soon(self, delay_ms: int) -> None:
        if not self._closed:
            self._task = self._loop.create_task(self._connect(delay_ms))

    async def _connect(self, delay_ms: int) -> None:
        await asyncio.sleep(delay_ms / 1000)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_MS / 1000):
                sock = await open_connection(self.address, tls=self._tls, peer=self.peer)
        except (OSError, TimeoutError):
            self._backoff_ms = min(self._backoff_ms * 2, RECONNECT_MAX_MS)
            self._on_lost(self.peer, self.lane)
            self._connect_soon(self._backoff_ms)
            return
        self._socket = sock
        self._stream = TlsStream(sock) if isinstance(sock, ssl.SSLSocket) else sock
        self._up_since_s = self._loop.time()
        self._replies = self._read_replies(self._stream, self._lose)
        self.writer = FrameWriter(
            self._stream, one_way_delay_ms=self._one_way_delay_ms, on_error=self._lose
        )
        self.writer.greet(self._greeting)
        self._on_connected(self.peer, self.lane)

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
        writer, self.writer = self.writer, None
        if writer is None:
            return
        assert self._stream is not None and self._replies is not None
        self._replies.stop()
        writer.close()
        self._stream.close()
        self._socket = self._stream = self._replies = None
