"""Replies between simulated brokers, treated as real ones are (`accepted`, `peer_processes`).

Why:    a reply is lost with the connection that the peer opened, and what a dead process replied
        may arrive after its next process has been seen.
How:    each pipe has one for replies, with the same faults (`Pipe.replies`). A reply goes to the
        newest connection of which a message has come; once the end of that connection has reached
        this side, there is none. The first message of a connection stands for its greeting. No two
        processes of one broker run at once, so none is refused.
Owns:   for one endpoint: the newest connection and process of each peer.
Source: docs/decisions/0072-replies.md."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from strandline.base.network import Lane
from strandline.model.ids import BrokerId
from strandline.network.incoming import REPLIES_QUEUED_BYTES_MAX
from strandline.network.replies import REPLY_BYTES_MAX
from strandline.simulation.network.link import Pipe
from strandline.simulation.world.process import Process
from strandline.simulation.world.scheduler import Scheduler


class Fabric(Protocol):
    """What joins the endpoints; see `network.SimFabric`."""

    scheduler: Scheduler

    def is_powered(self, broker: BrokerId) -> bool:
        """Whether the host's kernel answers."""

    def break_pipe(self, pipe: Pipe, detected_after_us: int) -> None:
        """End a connection."""


class Opened(Protocol):
    """A connection as the process sees it that opened it."""

    def receive_reply(self, pipe: Pipe, data: bytes) -> None:
        """A reply has come on `pipe`."""

    def expect_process(self, process: Process) -> None:
        """Only this process may reply; end the connection if it is another's."""


class _Reader:
    """The opener's end of a pipe for replies."""

    def __init__(self, pipe: Pipe, opened: Opened) -> None:
        self.process = pipe.opener
        self._pipe = pipe
        self._opened = opened

    def receive(self, _replies: Pipe, data: bytes) -> None:
        """See `link.Receiver`."""
        self._opened.receive_reply(self._pipe, data)


def add_replies(pipe: Pipe, fabric: Fabric, *, acceptor: BrokerId, opened: Opened) -> None:
    """Give a pipe its way back, from the broker to which it leads."""
    pipe.replies = Pipe(
        scheduler=pipe.scheduler,
        rng=pipe.rng,
        sender=acceptor,
        opener=pipe.receiver.process,
        lane=pipe.lane,
        link=pipe.link_back,
        link_back=pipe.link,
        receiver=_Reader(pipe, opened),
        receiver_is_powered=partial(fabric.is_powered, pipe.sender),
        on_room=_ignore,
        on_broken=partial(_on_replies_broken, pipe),
    )


def _ignore() -> None:
    """A reply never waits for room: see `Replies.reply`."""


def _on_replies_broken(pipe: Pipe) -> None:
    """The side that replies has given up the connection: its kernel says so, if it can."""
    assert pipe.replies is not None
    if not pipe.replies.is_given_up:
        return
    if pipe.link_back.is_cut or pipe.is_swallowed:
        pipe.swallow()
    else:
        pipe.break_now(pipe.link_back.latency_us)


class Replies:
    """See the module. `opened_to`: the connections that this endpoint has opened to a peer."""

    def __init__(self, fabric: Fabric, opened_to: Callable[[BrokerId], list[Opened]]) -> None:
        self._fabric = fabric
        self._opened_to = opened_to
        self._newest: dict[tuple[BrokerId, Lane], Pipe] = {}
        self._processes: dict[BrokerId, Process] = {}

    def on_accepted(self, pipe: Pipe) -> None:
        """A message has come on a connection of a peer."""
        way = pipe.sender, pipe.lane
        newest = self._newest.get(way)
        if newest is pipe or (newest is not None and newest.number > pipe.number):
            return
        self._newest[way] = pipe
        self.on_process(pipe.sender, pipe.opener)

    def on_process(self, peer: BrokerId, process: Process) -> None:
        """See `network.peer_processes.PeerProcesses.admit`."""
        opened = self._opened_to(peer)
        if not opened or self._processes.get(peer) is process:
            return
        self._processes[peer] = process
        for connection in opened:
            connection.expect_process(process)

    def forget(self, peer: BrokerId) -> None:
        """No connection to it is open."""
        self._processes.pop(peer, None)

    def reply(self, peer: BrokerId, lane: Lane, data: bytes) -> Pipe | None:
        """Send one reply on its way; the connection that has it, or None."""
        pipe = self._newest.get((peer, lane))
        if pipe is None or len(data) > REPLY_BYTES_MAX or self._is_found_broken(pipe):
            return None
        replies = pipe.replies
        if replies is None or pipe.is_broken or replies.is_broken:
            return pipe  # It is lost: the end of the connection has not reached this side.
        if replies.inflight_bytes > REPLIES_QUEUED_BYTES_MAX + replies.link.buffer_bytes:
            self._fabric.break_pipe(pipe, replies.link.latency_us)
            return None
        replies.transmit(data)
        return pipe

    def _is_found_broken(self, pipe: Pipe) -> bool:
        if pipe.replies is not None and pipe.replies.is_given_up:
            return True
        if not pipe.is_broken or pipe.link.is_cut or not self._fabric.is_powered(pipe.sender):
            return False
        return self._fabric.scheduler.now_us >= pipe.broken_at_us + pipe.link.latency_us
