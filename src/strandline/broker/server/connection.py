"""One Kafka client's connection: frames in, answers out in the order of the requests.

Why:    a connection is never a queue of one: later requests are read and appended while earlier
        ones wait for their quorum. Memory bounds it, not turns.
How:    READING --no room--> PAUSED --room again--> READING;  either --error, end of stream, idle-->
        CLOSED. A paused connection does not read its socket: TCP slows the client down. A request
        that could not be appended (the followers of its partition do not take what was before)
        pauses the connection, too, and so does a client over its quota: it is muted for a while.
            Answers that become ready within one pass of the loop leave in one write.
Owns:   the stream, the session, the requests in work in order, the answers not yet written.
Source: design section 5; python-speed reference 9 (raw sockets on add_reader, a deque of slots)."""

from __future__ import annotations

import asyncio
import itertools
import logging
import socket
from collections import deque
from collections.abc import Callable
from typing import Protocol

from strandline.base.errors import ProtocolError, StorageError
from strandline.broker.context import AnswerSink, RequestContext
from strandline.broker.quotas.client_quotas import ClientLimits
from strandline.broker.server.inbox import Inbox, Scratch
from strandline.broker.server.limits import (
    UNKNOWN_BYTES_MAX,
    UNKNOWN_REQUESTS_MAX,
    ServerLimits,
)
from strandline.broker.server.outbox import Outbox
from strandline.network.streams import Stream, TlsStream
from strandline.protocol.apis import API_KEYS
from strandline.security.sasl.mechanism import Mechanism
from strandline.security.session import Session

PRODUCE_KEY = API_KEYS["Produce"]
FETCH_KEY = API_KEYS["Fetch"]
LOGIN_KEYS = (API_KEYS["SaslHandshake"], API_KEYS["SaslAuthenticate"])
KEY_BYTES = 2
"""The API's key, at the beginning of a request."""
TCP_CLOSED, TCP_CLOSE_WAIT = 7, 8
"""States of the kernel's connection: it is closed, or the client sends no more."""

_numbers = itertools.count(1)
_log = logging.getLogger("strandline.broker")


def is_of(frame: memoryview, *keys: int) -> bool:
    """Whether a frame is a request to an API of these keys."""
    return int.from_bytes(frame[:KEY_BYTES], "big") in keys


class RequestRouter(Protocol):
    """What a connection needs of `router.Router`."""

    def route(self, frame: memoryview, sink: AnswerSink) -> RequestContext:
        """Hand the request in a frame to its handler; raises ProtocolError."""


class ClientStream(Stream, Protocol):
    """What a connection needs of a client's socket."""

    def getsockopt(self, level: int, option: int, size_bytes: int, /) -> bytes:
        """An option of the socket."""


class ConnectionOwner(Protocol):
    """What a connection needs of its server."""

    limits: ServerLimits
    scratch: Scratch
    router: RequestRouter

    def now_ms(self) -> int:
        """Monotonic time."""

    def at_pass_end(self, callback: Callable[[], None]) -> None:
        """See `base.clock.Clock`."""

    def has_room(self, *, is_producer: bool) -> bool:
        """Whether another request may be taken in, by the whole broker's bounds."""

    def count_inflight(self, change_bytes: int) -> None:
        """Bytes of requests in work have changed."""

    def count_partial(self, change_bytes: int) -> None:
        """Memory of partial frames has changed."""

    def tell_closed(self, host: str, reason: str) -> None:
        """Log why a connection is closed."""

    def on_paused(self, connection: Connection) -> None:
        """The connection is not read until `resume`."""

    def on_resumed(self, connection: Connection) -> None:
        """The connection is read again."""

    def mute(self, connection: Connection, duration_ms: int) -> None:
        """Call its `unmute` after this time, and not before; it is `is_muted` until then."""

    def on_authenticated(self, connection: Connection, before: Session) -> None:
        """The client has logged in, for the first time or again; it had the session `before`."""

    def on_closed(self, connection: Connection) -> None:
        """The connection is no more."""


class Connection:
    """See the module; an `AnswerSink`."""

    def __init__(
        self,
        stream: ClientStream,
        owner: ConnectionOwner,
        session: Session,
        *,
        only_key: int | None = None,
    ) -> None:
        """`only_key`: the one API whose requests it takes, beside logins; any other request closes
        it."""
        self.session = session
        self.exchange: Mechanism | None = None
        self.is_logging_in = False
        self.opened_ms = owner.now_ms()
        self.client_host = f"/{session.host}"
        self.only_key = only_key
        self.number = next(_numbers)
        self.is_closed = False
        self.is_paused = False
        # The client is over a quota, so the server does not read this connection (`muting`).
        self.is_muted = False
        # Whether it has ever produced: then it also pauses for replication's memory.
        self.is_producer = False
        self.last_active_ms = owner.now_ms()
        # Since when a partial frame has been coming in; -1 for none.
        self.partial_since_ms = -1
        self.is_flush_due = False
        self._stream = stream
        # The same if it may hold bytes that the kernel does not report, else None.
        self._tls = stream if isinstance(stream, TlsStream) else None
        self._fd = stream.fileno()
        self._owner = owner
        frame_bytes_max = owner.limits.request_bytes_max
        self._requests_max = owner.limits.connection_requests_max
        if not session.is_authenticated:
            frame_bytes_max = min(frame_bytes_max, UNKNOWN_BYTES_MAX)
            self._requests_max = UNKNOWN_REQUESTS_MAX
        self._inbox = Inbox(owner.scratch, frame_bytes_max)
        self._outbox = Outbox(stream)
        self._pending: deque[RequestContext] = deque()
        # The last request that could not be appended, until its partition takes requests again.
        self._blocked: RequestContext | None = None
        self._inflight_bytes = 0
        # How many of these bytes were reported to the owner.
        self._counted_bytes = 0
        self._partial_bytes = 0
        # The quotas of the last request's client: reading and writing take the loop's time, too.
        self._limits: ClientLimits | None = None
        self._is_taking = False
        self._is_writing = False
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._fd, self._on_readable)

    def authenticate(self, session: Session) -> None:
        """See `context.AnswerSink`."""
        before, self.session = self.session, session
        self.exchange = None
        self._requests_max = self._owner.limits.connection_requests_max
        self._inbox.allow(self._owner.limits.request_bytes_max)
        self._owner.on_authenticated(self, before)

    @property
    def is_idle(self) -> bool:
        """Whether no request is in work, or the client takes no answers."""
        return not self._pending or not self._outbox.is_empty

    def close_if_left(self) -> None:
        """Close the connection if the client has gone; for a connection that is not read."""
        info = self._stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)
        if info[0] in (TCP_CLOSED, TCP_CLOSE_WAIT):
            self.close()

    def close(self, reason: str = "") -> None:
        """Close it, and log the reason if there is one. Requests in work are abandoned."""
        if self.is_closed:
            return
        self.is_closed = True
        if reason:
            self._owner.tell_closed(self.client_host[1:], reason)
        if not self.is_paused:
            self._loop.remove_reader(self._fd)
        if self._is_writing:
            self._loop.remove_writer(self._fd)
        self._stream.close()
        self._outbox.clear()
        pending, self._pending = self._pending, deque()
        for context in pending:
            context.abandon()
        self._inflight_bytes = 0
        self._note_inflight()
        self._owner.count_partial(-self._partial_bytes)
        self._partial_bytes = 0
        self._owner.on_closed(self)

    # ---- reading -------------------------------------------------------------------------------

    def _on_readable(self) -> None:
        if not self._has_room():
            self._pause()
            return
        limits = self._limits
        begin_ns = 0 if limits is None else limits.now_ns()
        try:
            count = self._inbox.receive(self._stream)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            count = 0
        if limits is not None:
            limits.note_time(begin_ns)
        if count == 0:
            self.close()
            return
        self.last_active_ms = max(self.last_active_ms, self._owner.now_ms())
        self._take_frames()
        if self._tls is not None and self._tls.pending_bytes:
            self._loop.call_soon(self._read_pending)

    def _read_pending(self) -> None:
        """Read what TLS has taken off the socket: the kernel does not report it."""
        if not self.is_closed and not self.is_paused:
            self._on_readable()

    def resume(self) -> None:
        """Read again, if there is room."""
        if self.is_closed or not self.is_paused or self.is_muted:
            return
        if not self._has_room():
            self._owner.on_paused(self)  # What it waits for may be another bound by now.
            return
        self.is_paused = False
        self._owner.on_resumed(self)
        self._loop.add_reader(self._fd, self._on_readable)
        if self._inbox.may_have_frames:
            self._inbox.resume()
            self._take_frames()
        if self._tls is not None and not self.is_paused and self._tls.pending_bytes:
            self._loop.call_soon(self._read_pending)

    def _take_frames(self) -> None:
        """Start every complete request, as long as there is room.

        There was room before the read, which brings in little beside the owner's bounds."""
        router = self._owner.router
        inbox = self._inbox
        pending = self._pending
        self._is_taking = True
        try:
            while (frame := inbox.take()) is not None:
                if self.only_key is not None and not is_of(frame, self.only_key, *LOGIN_KEYS):
                    self.close()
                    return
                self.partial_since_ms = -1
                context = router.route(frame, self)
                if self.is_closed:
                    context.abandon()
                    return
                pending.append(context)
                self._limits = context.limits
                key = context.api.key
                if key == PRODUCE_KEY:
                    self.is_producer = True
                if key == FETCH_KEY and not context.is_answered:
                    context.size_bytes = 0  # Parked, perhaps for long, and without its frame.
                self._inflight_bytes += context.size_bytes
                if context.blocked_by is not None:
                    self._blocked = context
                if not self._has_own_room():
                    self._collect_answers()
                    if self._is_closed_now():
                        return
                    if not self._has_room():
                        self._pause()
                        break
        except ProtocolError as error:
            self._collect_answers()
            self.close(str(error))
            return
        except Exception:  # A task boundary: one connection may fail, the broker may not.
            _log.exception("the connection from %s failed", self.client_host[1:])
            self.close("a request could not be taken in")
            return
        finally:
            self._is_taking = False
            inbox.stash()
        self._note_partial()
        if pending and pending[0].is_answered:
            self._collect_answers()
        self._note_inflight()

    def _is_closed_now(self) -> bool:
        """As a call, because type checkers take `is_closed` for what it was before an answer."""
        return self.is_closed

    def _note_inflight(self) -> None:
        """Report to the owner the bytes of requests that came and of answers that left, once for
        all."""
        change = self._inflight_bytes - self._counted_bytes
        if change:
            self._counted_bytes = self._inflight_bytes
            self._owner.count_inflight(change)

    def _note_partial(self) -> None:
        blocked = self._inbox.partial_bytes
        if blocked != self._partial_bytes:
            change = blocked - self._partial_bytes
            if blocked and self.partial_since_ms < 0:
                self.partial_since_ms = self.last_active_ms
            self._partial_bytes = blocked
            self._owner.count_partial(change)

    def _has_room(self) -> bool:
        return self._has_own_room() and self._owner.has_room(is_producer=self.is_producer)

    def mute(self, duration_ms: int) -> None:
        """See `context.AnswerSink`."""
        if not self.is_closed:
            self._owner.mute(self, duration_ms)

    def unmute(self) -> None:
        """Read again, if there is room: the client has waited."""
        self.is_muted = False
        if self.is_paused:
            self.resume()

    def _has_own_room(self) -> bool:
        if self.is_muted:
            return False
        blocked = self._blocked
        if blocked is not None:
            if (
                not blocked.is_answered
                and blocked.blocked_by is not None
                and blocked.blocked_by.is_holding
            ):
                return False
            self._blocked = None
        limits = self._owner.limits
        return (
            len(self._pending) < self._requests_max
            and self._inflight_bytes < limits.connection_bytes_max
            and self._outbox.backlog_bytes < limits.connection_backlog_bytes_max
        )

    def _pause(self) -> None:
        if not self.is_paused:
            self.is_paused = True
            self._loop.remove_reader(self._fd)
            if not self.is_muted:
                self._owner.on_paused(self)

    # ---- writing -------------------------------------------------------------------------------

    def on_answered(self, context: RequestContext) -> None:
        """See `context.AnswerSink`."""
        if self._is_taking or self.is_flush_due or not self._pending:
            return  # Without pending requests the connection was closed meanwhile.
        if context is self._pending[0]:
            self.is_flush_due = True
            self._owner.at_pass_end(self._flush_answers)

    def on_unblocked(self) -> None:
        """See `context.AnswerSink`."""
        if self.is_paused:
            self._loop.call_soon(self.resume)

    def _flush_answers(self) -> None:
        """Write the answers whose turn it is, and read on if that made room."""
        self.is_flush_due = False
        if self.is_closed:
            return
        self._collect_answers()
        self._note_inflight()
        if self.is_paused:
            self.resume()

    def _collect_answers(self) -> None:
        pending = self._pending
        outbox = self._outbox
        while pending and pending[0].is_answered:
            context = pending.popleft()
            outbox.add(context.parts)
            self._inflight_bytes -= context.size_bytes
        if not self._is_writing:
            self._write()

    def _on_writable(self) -> None:
        self._write()
        if self.is_paused:
            self.resume()

    def _write(self) -> None:
        outbox = self._outbox
        if outbox.is_empty:
            return
        limits = self._limits
        begin_ns = 0 if limits is None else limits.now_ns()
        try:
            if outbox.write():
                self.last_active_ms = max(self.last_active_ms, self._owner.now_ms())
        except ConnectionError:
            self.close()
            return
        except (OSError, StorageError) as error:
            self.close(f"cannot write an answer: {error}")
            return
        if limits is not None:
            limits.note_time(begin_ns)
        if outbox.is_empty == self._is_writing:
            self._is_writing = not self._is_writing
            if self._is_writing:
                self._loop.add_writer(self._fd, self._on_writable)
            else:
                self._loop.remove_writer(self._fd)
