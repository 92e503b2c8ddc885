"""One direction between two hosts, and the connections that run over it.

Why:    TCP hides loss, duplicates and reordering and shows delay, silence and resets instead: that
        is what the transport of a broker meets, so that is what is simulated. Duplicates and
        reordering come back where there are two connections: see `break_late`.
How:    a `Pipe` is one connection as the kernels know it. A message arrives after the link's time,
        never before an earlier one of the same pipe. While the link is cut, messages stall; when it
        heals they arrive late, in order, unless the pipe broke first: nothing acknowledged for
        `UNACKNOWLEDGED_MAX_MS`, a reset, or the death of the receiver. When a pipe breaks, the
        first messages under way may still arrive, even after a new connection is up; the rest is
        lost. A cut of the way back stops acknowledgements and handshakes only.
        `swallow`: whatever keeps state between the two hosts has forgotten the connection. What is
        sent on it vanishes, and nobody says so; a new connection works.
        `break_late`: the sender has given the connection up, and what it had sent comes all the
        same, after what it sends again on the next one.
        Replies have a pipe of their own, back to the opener of the connection (`Pipe.replies`).
Owns:   what is under way.
Source: design section 10; base/network.py."""

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from strandline.base.network import Lane
from strandline.model.ids import BrokerId
from strandline.network.opening import UNACKNOWLEDGED_MAX_MS
from strandline.simulation.world.process import Process
from strandline.simulation.world.scheduler import US_PER_MS, ScheduledEvent, Scheduler

SOCKET_BUFFER_BYTES = 256 * 1024
RETRANSMIT_LEAST_US = 200 * US_PER_MS
RETRANSMIT_MAX_US = 3_000 * US_PER_MS
LATE_ARRIVAL_MAX_US = 500 * US_PER_MS


@dataclass(slots=True)
class Link:
    """From one host to another. Times are one way."""

    latency_us: int
    jitter_us: int
    bytes_per_ms: int
    loss_ratio: float = 0.0
    """The share of messages that need a retransmission: late, and so is all behind them."""
    slow_factor: int = 1
    buffer_bytes: int = SOCKET_BUFFER_BYTES
    """What the sender's kernel takes before it arrives: this bounds a long link's speed."""
    is_cut: bool = False
    cut_at_us: int = 0

    def travel_us(self, rng: random.Random) -> int:
        """How long the next message is under way."""
        travel_us = self.latency_us
        if self.jitter_us:
            travel_us += int(rng.random() * self.jitter_us)
        if self.loss_ratio and rng.random() < self.loss_ratio:
            travel_us += max(RETRANSMIT_LEAST_US, 3 * self.latency_us)
        return travel_us * self.slow_factor


class Receiver(Protocol):
    """The endpoint at the far side, as long as its process lives."""

    process: Process

    def receive(self, pipe: "Pipe", data: bytes) -> None:
        """One message, inside the process."""


class _Segment:
    __slots__ = ("data", "event")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.event: ScheduledEvent | None = None


@dataclass(slots=True, eq=False)
class Pipe:
    """See the module. `on_room` and `on_broken` tell the sender's endpoint.

    opener: the process that sends here. replies: the way back on the same connection; what breaks
    or swallows one does the same to the other. A pipe for replies has none."""

    scheduler: Scheduler
    rng: random.Random
    sender: BrokerId
    opener: Process
    lane: Lane
    link: Link
    link_back: Link
    receiver: Receiver
    receiver_is_powered: Callable[[], bool]
    on_room: Callable[[], None]
    on_broken: Callable[[], None]
    replies: "Pipe | None" = None
    number: int = 0
    """Of the connection, of all in this run; 0 before it is up."""
    is_broken: bool = False
    broken_at_us: int = 0
    is_swallowed: bool = False
    is_given_up: bool = False
    """Nothing was acknowledged for so long that it was broken."""
    inflight_bytes: int = 0
    late_count: int = 0
    """Messages that came after the connection was broken."""
    lost_count: int = 0
    _under_way: "deque[_Segment]" = None  # type: ignore[assignment]
    _stalled: "deque[_Segment]" = None  # type: ignore[assignment]
    _free_at_us: int = 0
    _last_arrival_us: int = 0
    _unacknowledged_since_us: int = -1
    _watching: bool = False

    def __post_init__(self) -> None:
        self._under_way = deque()
        self._stalled = deque()

    @property
    def has_room(self) -> bool:
        """Whether the socket would take another message."""
        return self.inflight_bytes < self.link.buffer_bytes

    def transmit(self, data: bytes) -> None:
        """Send one message on its way."""
        self.inflight_bytes += len(data)
        if self._unacknowledged_since_us < 0:
            self._unacknowledged_since_us = self.scheduler.now_us
            self._watch()
        segment = _Segment(data)
        if self.link.is_cut or self._stalled or self.is_swallowed:
            self._stalled.append(segment)
        else:
            self._depart(segment, 0)

    def on_healed(self, cut_us: int) -> None:
        """The link works again after `cut_us`: what stalled is retransmitted, after a while."""
        pause_us = self.rng.randint(0, min(max(cut_us, 1), RETRANSMIT_MAX_US))
        if self.is_swallowed:
            return
        stalled, self._stalled = self._stalled, deque()
        for segment in stalled:
            self._depart(segment, pause_us)

    def on_acknowledgements_healed(self) -> None:
        """The way back works again: what has arrived is acknowledged now."""
        if not self.is_swallowed:
            self._acknowledge()

    def swallow(self) -> None:
        """From now on nothing that is sent here arrives, and neither side is informed."""
        if not self.is_broken and not self.is_swallowed:
            self.is_swallowed = True
            self._stall_all()
        if self.replies is not None:
            self.replies.swallow()

    def break_late(self, late_us: int) -> None:
        """The sender gives up the connection; what is under way comes, `late_us` later than due."""
        if self.is_broken:
            return
        self._mark_broken()
        if not self.is_swallowed:
            self.late_count += len(self._under_way)
            self._delay(late_us)
        self.lost_count += len(self._stalled)
        self._stalled.clear()
        self.scheduler.after(0, self.on_broken)

    def break_now(self, detected_after_us: int) -> None:
        """End the connection; the sender hears of it a little later."""
        if self.is_broken:
            return
        self._mark_broken()
        arriving_count = self.rng.randint(0, len(self._under_way))
        late_us = 0
        if self.rng.random() < 0.3:
            late_us = self.rng.randint(0, LATE_ARRIVAL_MAX_US)
        while len(self._under_way) > arriving_count:
            event = self._under_way.pop().event
            assert event is not None
            event.cancel()
            self.lost_count += 1
        if late_us:
            self._delay(late_us)
        self.lost_count += len(self._stalled)
        self._stalled.clear()
        self.scheduler.after(detected_after_us, self.on_broken)

    def _mark_broken(self) -> None:
        self.is_broken = True
        self.broken_at_us = self.scheduler.now_us
        if self.replies is not None:
            self.replies.break_now(0)

    def _delay(self, late_us: int) -> None:
        """What is under way comes so much later, in its order."""
        for segment in self._under_way:
            assert segment.event is not None
            segment.event.cancel()
            segment.event = self.scheduler.at(
                segment.event.time_us + late_us, partial(self._arrive, segment)
            )

    def _depart(self, segment: _Segment, pause_us: int) -> None:
        link = self.link
        start_us = self.scheduler.now_us + pause_us
        if start_us < self._free_at_us:
            start_us = self._free_at_us
        rate = link.bytes_per_ms // link.slow_factor or 1
        self._free_at_us = free_at_us = start_us + len(segment.data) * US_PER_MS // rate
        arrival_us = free_at_us + link.travel_us(self.rng)
        if arrival_us <= self._last_arrival_us:
            arrival_us = self._last_arrival_us + 1
        self._last_arrival_us = arrival_us
        self._under_way.append(segment)
        segment.event = self.scheduler.at(arrival_us, partial(self._arrive, segment))

    def _arrive(self, segment: _Segment) -> None:
        """At the far kernel. Order is kept: whatever is under way leaves at the front."""
        if self.link.is_cut and not self.is_broken:
            self._stall_all()
            return
        first = self._under_way.popleft()
        assert first is segment
        if self.link.is_cut:
            self.lost_count += 1
            return
        process = self.receiver.process
        if not process.alive:
            self._arrive_at_nobody(segment)
            return
        if not self.link_back.is_cut:
            self._acknowledge()
        process.enter(partial(self._deliver, segment.data))

    def _arrive_at_nobody(self, segment: _Segment) -> None:
        self.lost_count += 1
        if self.is_broken:
            return
        if self.receiver_is_powered():
            self.break_now(self.link_back.latency_us)
        else:
            self._stalled.append(segment)

    def _stall_all(self) -> None:
        for segment in self._under_way:
            if segment.event is not None:
                segment.event.cancel()
        self._stalled.extendleft(reversed(self._under_way))
        self._under_way.clear()

    def _deliver(self, data: bytes) -> None:
        self.inflight_bytes -= len(data)
        self.receiver.receive(self, data)
        if not self.is_broken:
            self.on_room()

    def _acknowledge(self) -> None:
        waiting = bool(self._under_way or self._stalled)
        self._unacknowledged_since_us = self.scheduler.now_us if waiting else -1

    def _watch(self) -> None:
        if not self._watching:
            self._watching = True
            due_us = self._unacknowledged_since_us + UNACKNOWLEDGED_MAX_MS * US_PER_MS
            self.scheduler.at(due_us, self._on_watch)

    def _on_watch(self) -> None:
        self._watching = False
        if self.is_broken or self._unacknowledged_since_us < 0:
            return
        silent_us = self.scheduler.now_us - self._unacknowledged_since_us
        if silent_us >= UNACKNOWLEDGED_MAX_MS * US_PER_MS:
            self.is_given_up = True
            self.break_now(0)
        else:
            self._watch()
