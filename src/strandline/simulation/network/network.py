"""The network between simulated brokers: `base.network.Network` over links with latency and faults.

Why:    replication must hold its promises over links that are slow, silent, half open or cut.
How:    `SimFabric` knows the links, who listens, and every pipe; the world cuts, heals and resets.
        `SimNetwork` is the endpoint of one process: it connects, queues and reconnects as
        `network/outgoing.py` does. A message is copied when it is sent; at the moment when its
        memory is said to be free it is compared with the copy, and the receiver's view is
        overwritten after the call: code that reuses or keeps what is not its own is found out.
Owns:   links, pipes, queues, counters.
Source: design section 10; base/network.py."""

import random
import zlib
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from strandline.base.disk import Buffer
from strandline.base.network import Lane, PeerEvents
from strandline.model.ids import BrokerId
from strandline.network.outgoing import (
    CONNECT_TIMEOUT_MS,
    RECONNECT_FIRST_MS,
    RECONNECT_MAX_MS,
)
from strandline.simulation.network.link import Link, Pipe, Receiver
from strandline.simulation.network.replies import Opened, Replies, add_replies
from strandline.simulation.world.process import Process
from strandline.simulation.world.scheduler import US_PER_MS, Scheduler

OVERWRITTEN = b"\xdd"


@dataclass(slots=True)
class NetworkCounters:
    """What went over the network since the start of the run."""

    sent_count: Counter[tuple[BrokerId, BrokerId, Lane]] = field(default_factory=Counter)
    """{(from, to, lane): messages}."""
    way_bytes: Counter[tuple[BrokerId, BrokerId]] = field(default_factory=Counter)
    """{(from, to): bytes}, of both lanes."""
    sent_bytes: int = 0
    delivered_count: int = 0
    connected_count: int = 0
    broken_count: int = 0
    checksum: int = 0
    """Over every message delivered, with its moment: equal for equal runs."""


class Recorder(Protocol):
    """Sees every message; see `traffic_recorder`."""

    def on_sent(
        self, sender: BrokerId, peer: BrokerId, lane: Lane, *, connection: int, data: bytes
    ) -> None:
        """A message was given to a connection."""

    def on_delivered(self, sender: BrokerId, receiver: BrokerId, lane: Lane, data: bytes) -> None:
        """A message has arrived."""

    def on_way_changed(self, here: BrokerId, peer: BrokerId) -> None:
        """A connection from `here` to `peer` came up or broke."""


class SimFabric:
    """See the module. `make_link` says what the way from one broker to another is like."""

    def __init__(
        self,
        scheduler: Scheduler,
        rng: random.Random,
        make_link: Callable[[BrokerId, BrokerId], Link],
    ) -> None:
        self.scheduler = scheduler
        self.rng = rng
        self.counters = NetworkCounters()
        self.recorder: Recorder | None = None
        self._make_link = make_link
        self._links: dict[tuple[BrokerId, BrokerId], Link] = {}
        self._endpoints: dict[BrokerId, SimNetwork] = {}
        self._without_power: set[BrokerId] = set()
        self._silent: set[SimNetwork] = set()
        self._pipes: dict[Pipe, BrokerId] = {}
        """{pipe: where it leads}, without the broken ones."""

    def link(self, source: BrokerId, target: BrokerId) -> Link:
        """The way from one broker to another."""
        link = self._links.get((source, target))
        if link is None:
            link = self._links[source, target] = self._make_link(source, target)
        return link

    # ---- faults ------------------------------------------------------------------------------

    def cut(self, source: BrokerId, target: BrokerId) -> None:
        """Nothing that `source` sends reaches `target` any more; neither is informed."""
        link = self.link(source, target)
        if not link.is_cut:
            link.is_cut = True
            link.cut_at_us = self.scheduler.now_us

    def heal(self, source: BrokerId, target: BrokerId) -> None:
        """It works again; connections that survived go on."""
        link = self.link(source, target)
        if not link.is_cut:
            return
        link.is_cut = False
        cut_us = self.scheduler.now_us - link.cut_at_us
        for pipe in list(self._pipes):
            replies = pipe.replies
            if pipe.link is link:
                pipe.on_healed(cut_us)
                if replies is not None:
                    replies.on_acknowledgements_healed()
            elif pipe.link_back is link:
                pipe.on_acknowledgements_healed()
                if replies is not None:
                    replies.on_healed(cut_us)

    def reset(self, source: BrokerId, target: BrokerId) -> None:
        """Break the connections that `source` has to `target`."""
        for pipe, leads_to in list(self._pipes.items()):
            if pipe.sender == source and leads_to == target:
                self.break_pipe(pipe, self.rng.randint(0, pipe.link.latency_us))

    def process_died(self, broker: BrokerId, *, powered: bool) -> None:
        """The process of `broker` is gone. On a powered host the kernel ends the connections to it;
        a dark host says nothing."""
        if not powered:
            self._without_power.add(broker)
        for pipe, leads_to in list(self._pipes.items()):
            if pipe.sender == broker:
                self.break_pipe(pipe, 0)
            elif leads_to == broker and powered and not pipe.link_back.is_cut:
                self.break_pipe(pipe, pipe.link_back.latency_us)
            elif leads_to == broker and pipe.replies is not None:
                pipe.replies.break_now(0)

    def swallow(self, one: BrokerId, other: BrokerId) -> None:
        """The connections between the two that are up are dead from now on; neither is informed."""
        for pipe, leads_to in self._pipes.items():
            if {pipe.sender, leads_to} == {one, other}:
                pipe.swallow()

    def deliver_late(self, source: BrokerId, target: BrokerId, late_us: int) -> int:
        """`source` loses its connections to `target`; what it had sent comes later all the same.
        Returns how many messages that are."""
        late_count = 0
        for pipe, leads_to in list(self._pipes.items()):
            if pipe.sender == source and leads_to == target:
                pipe.break_late(late_us)
                late_count += pipe.late_count
        return late_count

    # ---- for endpoints -----------------------------------------------------------------------

    def silence(self, endpoint: "SimNetwork", *, is_silent: bool) -> None:
        """A process reads nothing any more, and its kernel goes on; or it closes what it has not
        read, and listens again."""
        if is_silent:
            self._silent.add(endpoint)
        else:
            self._silent.discard(endpoint)
        for pipe in list(self._pipes):
            if pipe.receiver is endpoint:
                if is_silent:
                    pipe.swallow()
                else:
                    self.break_pipe(pipe, pipe.link_back.latency_us)

    def is_silent(self, receiver: Receiver) -> bool:
        """Whether that process reads nothing."""
        return receiver in self._silent

    def listen(self, broker: BrokerId, endpoint: "SimNetwork") -> None:
        """A new process of `broker` listens; what leads to an earlier one is reset soon."""
        self._endpoints[broker] = endpoint
        self._without_power.discard(broker)
        for pipe, leads_to in list(self._pipes.items()):
            if leads_to == broker and pipe.receiver is not endpoint and not pipe.link_back.is_cut:
                self.break_pipe(pipe, self.rng.randint(0, 1_000 * US_PER_MS))

    def is_powered(self, broker: BrokerId) -> bool:
        """Whether the host's kernel answers."""
        return broker not in self._without_power

    def endpoint(self, broker: BrokerId) -> "SimNetwork | None":
        """The endpoint there, alive or dead."""
        return self._endpoints.get(broker)

    def add_pipe(self, pipe: Pipe, target: BrokerId) -> None:
        """A connection is up."""
        self._pipes[pipe] = target
        self.counters.connected_count += 1
        pipe.number = self.counters.connected_count

    def break_pipe(self, pipe: Pipe, detected_after_us: int) -> None:
        """End a connection; its sender hears of it after `detected_after_us`."""
        pipe.break_now(detected_after_us)

    def pipes_of(self, sender: BrokerId) -> list[Pipe]:
        """The connections that `sender` has opened and that are up."""
        return [pipe for pipe in self._pipes if pipe.sender == sender]

    def forget_pipe(self, pipe: Pipe) -> None:
        """It is broken or closed."""
        if self._pipes.pop(pipe, None) is not None:
            self.counters.broken_count += 1


@dataclass(slots=True)
class _Queued:
    parts: Sequence[Buffer]
    data: bytes
    on_handed: Callable[[], None] | None


class _Outgoing:
    """One connection to one peer on one lane, as the sender's process sees it."""

    def __init__(self, network: "SimNetwork", peer: BrokerId, lane: Lane) -> None:
        self.peer = peer
        self.lane = lane
        self.is_up = False
        self.backlog_bytes = 0
        self._network = network
        self._process = network.process
        self._fabric = network.fabric
        self._queue: deque[_Queued] = deque()
        self._pipe: Pipe | None = None
        self._pump_scheduled = False
        self._backoff_ms = RECONNECT_FIRST_MS
        self._closed = False
        self._process.after(0, self._connect)

    def send(self, parts: Sequence[Buffer], on_handed: Callable[[], None] | None) -> bool:
        """See `base.network.Network.send`."""
        if not self.is_up:
            return False
        data = b"".join(parts)
        recorder = self._fabric.recorder
        if recorder is not None:
            here = self._network.self_id
            connection = 0 if self._pipe is None else self._pipe.number
            recorder.on_sent(here, self.peer, self.lane, connection=connection, data=data)
        pipe = self._pipe
        if pipe is not None and not self._queue and pipe.has_room and not pipe.is_broken:
            pipe.transmit(data)
            if on_handed is not None:
                message = _Queued(parts, data, on_handed)
                self._process.after(0, lambda: self._hand_over(message))
            return True
        self.backlog_bytes += len(data)
        self._queue.append(_Queued(parts, data, on_handed))
        self._pump_soon()
        return True

    def renew(self) -> None:
        """See `network.outgoing.Outgoing.renew`."""
        if self._pipe is not None:
            self._fabric.break_pipe(self._pipe, 0)

    def receive_reply(self, pipe: Pipe, data: bytes) -> None:
        """See `replies.Opened`: nothing comes any more once the loss has been told."""
        if pipe is self._pipe and not self._closed:
            self._network.receive_reply(pipe, data)

    def expect_process(self, process: Process) -> None:
        """See `replies.Opened`."""
        pipe = self._pipe
        if pipe is not None and pipe.receiver.process is not process:
            self._fabric.break_pipe(pipe, 0)
            self._lose(pipe)

    def close(self) -> None:
        """Drop the connection and all that is queued, for good."""
        self._closed = True
        if self._pipe is not None:
            self._fabric.break_pipe(self._pipe, 0)
        self._drop()

    # ---- connecting --------------------------------------------------------------------------

    def _connect(self) -> None:
        if self._closed:
            return
        fabric, here = self._fabric, self._network.self_id
        there, back = fabric.link(here, self.peer), fabric.link(self.peer, here)
        endpoint = fabric.endpoint(self.peer)
        if there.is_cut or back.is_cut or not fabric.is_powered(self.peer):
            self._process.after(CONNECT_TIMEOUT_MS * US_PER_MS, self._fail_to_connect)
            return
        round_trip_us = there.travel_us(fabric.rng) + back.travel_us(fabric.rng)
        if endpoint is None or not endpoint.process.alive:
            self._process.after(round_trip_us, self._fail_to_connect)
            return
        pipe = Pipe(
            scheduler=fabric.scheduler,
            rng=fabric.rng,
            sender=here,
            opener=self._process,
            lane=self.lane,
            link=there,
            link_back=back,
            receiver=endpoint,
            receiver_is_powered=partial(fabric.is_powered, self.peer),
            on_room=self._on_room,
            on_broken=lambda: self._on_pipe_broken(pipe),
        )
        add_replies(pipe, fabric, acceptor=self.peer, opened=self)
        self._process.after(round_trip_us, partial(self._on_established, pipe))

    def _fail_to_connect(self) -> None:
        if self._closed:
            return
        self._backoff_ms = min(self._backoff_ms * 2, RECONNECT_MAX_MS)
        self._network.report_lost(self.peer, self.lane)
        self._process.after(self._backoff_ms * US_PER_MS, self._connect)

    def _on_established(self, pipe: Pipe) -> None:
        if self._closed:
            return
        if not pipe.receiver.process.alive:
            self._fail_to_connect()
            return
        self._backoff_ms = RECONNECT_FIRST_MS
        self._pipe = pipe
        self.is_up = True
        self._fabric.add_pipe(pipe, self.peer)
        if self._fabric.is_silent(pipe.receiver):
            pipe.swallow()
        self._network.report_connected(self.peer, self.lane)

    def _on_pipe_broken(self, pipe: Pipe) -> None:
        self._fabric.forget_pipe(pipe)
        self._process.after(0, lambda: self._lose(pipe))

    def _lose(self, pipe: Pipe) -> None:
        if pipe is not self._pipe or self._closed:
            return
        self._drop()
        self._network.report_lost(self.peer, self.lane)
        self._process.after(self._backoff_ms * US_PER_MS, self._connect)
        if pipe.is_given_up:
            self._network.on_silence(self.peer, self.lane)

    def _drop(self) -> None:
        self.is_up = False
        self._pipe = None
        queue, self._queue = self._queue, deque()
        self.backlog_bytes = 0
        for message in queue:
            if message.on_handed is not None:
                message.on_handed()

    # ---- sending -----------------------------------------------------------------------------

    def _on_room(self) -> None:
        if self._queue:
            self._pump_soon()

    def _pump_soon(self) -> None:
        if not self._pump_scheduled:
            self._pump_scheduled = True
            self._process.after(0, self._pump)

    def _pump(self) -> None:
        self._pump_scheduled = False
        pipe = self._pipe
        while self._queue and pipe is not None and pipe is self._pipe:
            if pipe.is_broken:
                self._lose(pipe)
                return
            if not pipe.has_room:
                return
            message = self._queue.popleft()
            self.backlog_bytes -= len(message.data)
            pipe.transmit(message.data)
            self._hand_over(message)

    def _hand_over(self, message: _Queued) -> None:
        assert b"".join(message.parts) == message.data, (
            f"broker {self._network.self_id} changed a message to {self.peer} too early"
        )
        if message.on_handed is not None:
            message.on_handed()


class SimNetwork:
    """`base.network.Network` for one process; see the module."""

    def __init__(self, fabric: SimFabric, process: Process, self_id: BrokerId) -> None:
        self.fabric = fabric
        self.process = process
        self.self_id = self_id
        self._events: PeerEvents | None = None
        self._outgoing: dict[tuple[BrokerId, Lane], _Outgoing] = {}
        self._peers: dict[BrokerId, None] = {}
        self._is_silent = False
        self._replies = Replies(fabric, self._opened_to)

    def start(self) -> None:
        """Listen."""
        self.fabric.listen(self.self_id, self)

    def bind(self, events: PeerEvents) -> None:
        """See `base.network.Network`."""
        self._events = events

    def set_peer(self, peer: BrokerId, host: str, port: int) -> None:
        """See `base.network.Network`; the address does not matter here."""
        if peer != self.self_id:
            self._peers[peer] = None
            if not self._is_silent:
                self._connect(peer)

    def _connect(self, peer: BrokerId) -> None:
        for lane in Lane:
            if (peer, lane) not in self._outgoing:
                self._outgoing[peer, lane] = _Outgoing(self, peer, lane)

    def silence(self, *, is_silent: bool) -> None:
        """As `network.tcp.TcpNetwork.silence`: nothing is sent or read, or is again."""
        if is_silent == self._is_silent:
            return
        self._is_silent = is_silent
        self.fabric.silence(self, is_silent=is_silent)
        if is_silent:
            ended, self._outgoing = self._outgoing, {}
            for outgoing in ended.values():
                outgoing.close()
            for peer, lane in ended:
                self.report_lost(peer, lane)
            return
        for peer in self._peers:
            self._connect(peer)

    def remove_peer(self, peer: BrokerId) -> None:
        """See `base.network.Network`."""
        self._peers.pop(peer, None)
        for lane in Lane:
            outgoing = self._outgoing.pop((peer, lane), None)
            if outgoing is not None:
                outgoing.close()
        self._replies.forget(peer)

    def send(
        self,
        peer: BrokerId,
        lane: Lane,
        parts: Sequence[Buffer],
        on_handed: Callable[[], None] | None = None,
    ) -> bool:
        """See `base.network.Network`."""
        outgoing = self._outgoing.get((peer, lane))
        if not self.process.is_usable or outgoing is None or not outgoing.send(parts, on_handed):
            return False
        self._count(peer, lane, sum(map(len, parts)))
        return True

    def reply(self, peer: BrokerId, lane: Lane, parts: Sequence[Buffer]) -> bool:
        """See `base.network.Network`."""
        if not self.process.is_usable or self._is_silent:
            return False
        data = b"".join(parts)
        pipe = self._replies.reply(peer, lane, data)
        if pipe is None:
            return False
        recorder = self.fabric.recorder
        if recorder is not None:
            recorder.on_sent(self.self_id, peer, lane, connection=pipe.number, data=data)
        self._count(peer, lane, len(data))
        return True

    def renew(self, peer: BrokerId) -> None:
        """See `base.network.Network`."""
        for lane in Lane:
            outgoing = self._outgoing.get((peer, lane))
            if outgoing is not None:
                outgoing.renew()

    def backlog_bytes(self, peer: BrokerId, lane: Lane) -> int:
        """See `base.network.Network`."""
        outgoing = self._outgoing.get((peer, lane))
        return 0 if outgoing is None else outgoing.backlog_bytes

    def is_connected(self, peer: BrokerId, lane: Lane) -> bool:
        """See `base.network.Network`."""
        outgoing = self._outgoing.get((peer, lane))
        return outgoing is not None and outgoing.is_up

    def _count(self, peer: BrokerId, lane: Lane, size: int) -> None:
        counters = self.fabric.counters
        counters.sent_count[self.self_id, peer, lane] += 1
        counters.sent_bytes += size
        counters.way_bytes[self.self_id, peer] += size

    def _opened_to(self, peer: BrokerId) -> list[Opened]:
        found = (self._outgoing.get((peer, lane)) for lane in Lane)
        return [outgoing for outgoing in found if outgoing is not None]

    # ---- for pipes and connections -----------------------------------------------------------

    def receive(self, pipe: Pipe, data: bytes) -> None:
        """See `link.Receiver`."""
        self._replies.on_accepted(pipe)
        self._hand_on(pipe.sender, pipe.lane, data)

    def receive_reply(self, pipe: Pipe, data: bytes) -> None:
        """A reply has come on a connection that this endpoint opened."""
        assert pipe.replies is not None
        peer = pipe.replies.sender
        self._replies.on_process(peer, pipe.receiver.process)
        self._hand_on(peer, pipe.lane, data)

    def _hand_on(self, sender: BrokerId, lane: Lane, data: bytes) -> None:
        """Hand one message on, in memory that is taken back afterwards."""
        counters = self.fabric.counters
        counters.delivered_count += 1
        mark = (self.fabric.scheduler.now_us << 16) ^ (sender << 9) ^ (self.self_id << 1) ^ lane
        counters.checksum = zlib.crc32(data, counters.checksum ^ (mark & 0xFFFFFFFF))
        if self.fabric.recorder is not None:
            self.fabric.recorder.on_delivered(sender, self.self_id, lane, data)
        if self._events is not None:
            memory = bytearray(data)
            self._events.on_message(sender, lane, memoryview(memory))
            memory[:] = OVERWRITTEN * len(memory)

    def report_connected(self, peer: BrokerId, lane: Lane) -> None:
        """Pass on that a connection is up."""
        if self.fabric.recorder is not None:
            self.fabric.recorder.on_way_changed(self.self_id, peer)
        if self._events is not None:
            self._events.on_peer_connected(peer, lane)

    def on_silence(self, peer: BrokerId, lane: Lane) -> None:
        """As `network.tcp.TcpNetwork._on_silence`."""
        outgoing = self._outgoing.get((peer, Lane.BULK))
        if lane is Lane.CONTROL and outgoing is not None:
            outgoing.renew()

    def report_lost(self, peer: BrokerId, lane: Lane) -> None:
        """Pass on that a connection broke, or could not be made."""
        if self.fabric.recorder is not None:
            self.fabric.recorder.on_way_changed(self.self_id, peer)
        if self._events is not None:
            self._events.on_peer_lost(peer, lane)
