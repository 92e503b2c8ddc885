"""The flushes of one replica's log: one at a time, and those that may wait together.

Why:    a flush costs the same for one entry as for all that were written meanwhile.
How:    while one flush is under way, all requests become one more flush after it. Entries that are
        acknowledged before they are flushed may wait, within the topic's `flush.ms` and
        `flush.messages`. When the disk is done, the log calls `_on_flushed`, which steps the core.
        The event carries the generation that the core's log had when the flush began: the core
        ignores entries that were cut meanwhile.
Owns:   whether a flush is under way, is wanted again, or has a timer.
Source: Redpanda RFC 20220119; design section 5."""

from typing import Protocol

from strandline.base.clock import Clock, Timer
from strandline.model.ids import Index
from strandline.raft.events import LogFlushed
from strandline.replication.replica.state import ReplicaState


class FlushListener(Protocol):
    """The replica whose log is flushed."""

    def step(self, event: LogFlushed) -> None:
        """The log is durable up to an index."""

    def on_flushed(self) -> None:
        """The same, after that step."""

    def fail(self, error: Exception) -> None:
        """The log could not be made durable."""


class Flushes:
    """See the module."""

    def __init__(self, replica: ReplicaState, clock: Clock, listener: FlushListener) -> None:
        self._replica = replica
        self._clock = clock
        self._listener = listener
        self.is_under_way = False
        """Whether the log is being flushed."""
        self._is_wanted_again = False
        # `Raft.log.generation` when the flush under way began.
        self._generation = 0
        self._timer: Timer | None = None

    def request(self, *, may_wait: bool) -> None:
        """Make what is written durable and tell the core.

        With `may_wait` within the topic's `flush.ms`: entries that are acknowledged before they are
        flushed share one flush with all that come meanwhile, but for `flush.messages` of them."""
        replica = self._replica
        log = replica.log
        if may_wait and log.last_index - log.flushed_index < log.config.flush_messages:
            if self._timer is None and not self._is_wanted_again:
                self._timer = self._clock.call_later(log.config.flush_ms, self._flush_now)
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if replica.failed is not None:
            return
        if self.is_under_way:
            self._is_wanted_again = True
            return
        self.is_under_way = True
        self._is_wanted_again = False
        self._generation = replica.raft.state.log.generation
        log.flush_soon(self._on_flushed)

    def close(self) -> None:
        """No flush begins by itself any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _flush_now(self) -> None:
        self.request(may_wait=False)

    def _on_flushed(self, result: Index | OSError) -> None:
        assert self.is_under_way, "one flush at a time"
        self.is_under_way = False
        replica = self._replica
        if isinstance(result, OSError):
            self._listener.fail(result)
            return
        if replica.failed is not None:
            return
        self._listener.step(LogFlushed(result, self._generation))
        self._listener.on_flushed()
        if self._is_wanted_again:
            self._flush_now()
