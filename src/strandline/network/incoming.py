"""One accepted connection: reads the peer's messages, and writes replies to them.

Why:    a reply on the connection of what it answers carries the acknowledgement of TCP as well.
How:    the first reply follows a greeting, which says who replies. Replies that the peer does not
        read would fill the memory: beyond `REPLIES_QUEUED_BYTES_MAX` the connection is closed, and
        the peer opens another one.
Owns:   the socket and the replies queued.
Source: docs/decisions/0072-replies.md."""

from collections.abc import Callable, Sequence
from functools import partial

from strandline.base.disk import Buffer
from strandline.base.network import Lane
from strandline.model.ids import BrokerId
from strandline.network.frame_reader import FrameReader
from strandline.network.frame_writer import FrameWriter
from strandline.network.greeting import Greeting
from strandline.network.streams import Stream

FRAME_BYTES_MAX = 128 * 1024 * 1024
BUFFER_BYTES = 256 * 1024
REPLIES_QUEUED_BYTES_MAX = 8 * 1024 * 1024


class Incoming:
    """See the module. `on_frame` gets each frame: see `FrameReader`."""

    def __init__(
        self,
        stream: Stream,
        host: str,
        *,
        peer: BrokerId | None = None,
        on_frame: Callable[["Incoming", memoryview], None],
        on_closed: Callable[["Incoming"], None],
    ) -> None:
        # From where it was made.
        self.host = host
        # The broker that its certificate names; None without TLS.
        self.peer = peer
        # None until it has greeted.
        self.greeting: Greeting | None = None
        self.lane = Lane.CONTROL
        self._stream = stream
        self._on_closed = on_closed
        self._own_greeting = b""
        self._delay_ms = 0.0
        # None before the first reply.
        self._writer: FrameWriter | None = None
        self._is_paused = False
        self._reader = FrameReader(
            stream,
            buffer_bytes=BUFFER_BYTES,
            on_frame=partial(on_frame, self),
            on_ended=lambda _: self.close(),
        )

    def on_greeted(self, greeting: Greeting, *, own_greeting: bytes, delay_ms: float) -> None:
        """The peer is known: accept its messages.

        own_greeting: goes before the first reply. delay_ms: of replies, injected, one way."""
        self.greeting = greeting
        self.lane = Lane(greeting.lane)
        self._own_greeting = own_greeting
        self._delay_ms = delay_ms
        self._reader.frame_bytes_max = FRAME_BYTES_MAX

    def reply(self, parts: Sequence[Buffer]) -> bool:
        """Queue one reply to a peer that has greeted; False if the connection is over."""
        assert self.greeting is not None
        if self._is_paused or self._stream.fileno() < 0:
            return False
        writer = self._writer
        if writer is None:
            writer = self._writer = FrameWriter(
                self._stream, one_way_delay_ms=self._delay_ms, on_error=lambda _: self.close()
            )
            writer.greet(self._own_greeting)
        elif writer.backlog_bytes > REPLIES_QUEUED_BYTES_MAX:
            self.close()
            return False
        writer.send(parts)
        return True

    def close(self) -> None:
        """Stop reading and writing; `on_closed` is called once."""
        if self._stream.fileno() < 0:
            return
        self._stop()
        self._stream.close()
        self._on_closed(self)

    def pause(self) -> None:
        """Stop reading and writing, without telling the peer."""
        self._is_paused = True
        self._stop()

    def _stop(self) -> None:
        self._reader.stop()
        if self._writer is not None:
            self._writer.close()
