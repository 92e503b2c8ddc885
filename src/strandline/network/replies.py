"""The replies that arrive on one connection that this broker opened.

Why:    they are the peer's own words, so they must be of the process that the connection was opened
        to (`peer_processes`).
How:    the first frame is the peer's greeting, with the number of its process.
Owns:   nothing.
Source: docs/decisions/0072-replies.md."""

from __future__ import annotations

import logging
from collections.abc import Callable

from strandline.base.network import Lane
from strandline.model.ids import BrokerId
from strandline.network.frame_reader import FrameReader
from strandline.network.greeting import GREETING_BYTES_MAX, read_greeting
from strandline.network.streams import Stream

REPLY_BYTES_MAX = 4 * 1024 * 1024
"""A longer message is sent, and never a reply."""
BUFFER_BYTES = GREETING_BYTES_MAX

_log = logging.getLogger("strandline.network")


class Replies:
    """Reads the replies on one connection to `peer`.

    on_process: its process has greeted. on_ended: see `FrameReader`."""

    def __init__(
        self,
        stream: Stream,
        *,
        peer: BrokerId,
        lane: Lane,
        cluster: str,
        on_process: Callable[[BrokerId, int], None],
        on_message: Callable[[BrokerId, Lane, memoryview], None],
        on_ended: Callable[[OSError | None], None],
    ) -> None:
        # The only process that may reply here; None: whichever greets.
        self.process: int | None = None
        self._is_greeted = False
        self._peer = peer
        self._lane = lane
        self._cluster = cluster
        self._on_process = on_process
        self._on_message = on_message
        self._reader = FrameReader(
            stream, buffer_bytes=BUFFER_BYTES, on_frame=self._on_frame, on_ended=on_ended
        )

    def stop(self) -> None:
        """Read nothing more."""
        self._reader.stop()

    @property
    def is_greeted(self) -> bool:
        """Whether a process has replied here."""
        return self._is_greeted

    def expect(self, process: int) -> bool:
        """Accept only replies of this process; False if another one has greeted."""
        if self.process is None:
            self.process = process
        return self.process == process

    def _on_frame(self, frame: memoryview) -> None:
        if self._is_greeted:
            self._on_message(self._peer, self._lane, frame)
            return
        greeting = read_greeting(frame, self._cluster)
        if greeting.sender != self._peer or greeting.lane != self._lane:
            _log.warning(
                "broker %d is not where it should be: broker %d replies",
                self._peer,
                greeting.sender,
            )
            raise ValueError("another broker")
        if not self.expect(greeting.process):
            raise ValueError("an earlier process")
        self._is_greeted = True
        self._reader.frame_bytes_max = REPLY_BYTES_MAX
        self._on_process(self._peer, greeting.process)
