"""A producer at full speed that stops where its connection would, and who counts what is sent."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from strandline.model.ids import BrokerId, Epoch, GroupId, Index
from strandline.records.batch import iterate_headers
from strandline.records.record import Record, build_batch
from strandline.replication.leader.requests import AppendResult
from strandline.replication.replica.replica import Replica
from strandline.replication.wire import APPENDS, decode_append
from strandline.simulation.network.link import Pipe
from strandline.simulation.world.world import World

MS = 1_000
PENDING_COUNT_MAX = 128
"""As `limits.connection_requests_max`."""
REQUESTS_PER_PASS = 4


class FullSpeedProducer:
    """Sends as long as its broker would read its socket: see `broker.connection`."""

    def __init__(
        self,
        world: World,
        replica: Replica,
        *,
        acks: int,
        batch_bytes: int,
        requests_per_pass: int = REQUESTS_PER_PASS,
        pass_us: int = MS,
    ) -> None:
        self._requests_per_pass = requests_per_pass
        self._pass_us = pass_us
        self._world = world
        self._replica = replica
        self._acks = acks
        self._value = bytes(batch_bytes)
        self.sent_bytes = 0
        self.answered_bytes = 0
        self.pending_count = 0
        self.blocked_grant_count = 0
        self.errors: list[int] = []
        self.is_stopped = False
        # The most that the replication of its broker held at any time.
        self.highest_memory_bytes = 0
        self.highest_queued_bytes = 0
        # How far the log was ahead of what a quorum had written.
        self.highest_lead_count = 0
        self._pass()

    def _pass(self) -> None:
        if self.is_stopped or not self._replica.is_leader:
            return
        process = self._world.hosts[self._replica.self_id].process
        assert process is not None
        process.run_now(self._send)
        self._world.scheduler.after(self._pass_us, self._pass)

    def _send(self) -> None:
        host = self._replica.host
        for _ in range(self._requests_per_pass):
            if (
                self.pending_count >= PENDING_COUNT_MAX
                or self._replica.appender.is_holding
                or not host.memory.has_room
            ):
                self.blocked_grant_count += 1
                break
            self._send_one()
        memory = host.memory.used_bytes + host.memory.kept_bytes
        self.highest_memory_bytes = max(self.highest_memory_bytes, memory)
        self.highest_queued_bytes = max(self.highest_queued_bytes, host.queues.queued_bytes)
        lead = self._replica.log.last_index - self._replica.raft.visible
        self.highest_lead_count = max(self.highest_lead_count, lead)

    def _send_one(self) -> None:
        batch = build_batch([Record(offset_delta=0, key=None, value=self._value)])
        size = len(batch)
        self.pending_count += 1
        self.sent_bytes += size

        def done(result: AppendResult) -> None:
            self.pending_count -= 1
            if result.error_code:
                self.errors.append(result.error_code)
            else:
                self.answered_bytes += size

        self._replica.replicate([batch], list(iterate_headers(batch)), acks=self._acks, done=done)


class SentEntries:
    """What went over each connection: entries sent, sent again, and sent out of order."""

    def __init__(self) -> None:
        # {(connection, group, epoch): the last entry that was sent}
        self._last: dict[tuple[int, GroupId, Epoch], Index] = {}
        self._pipes: list[Pipe] = []
        self.entry_count: dict[BrokerId, int] = {}
        self.repeated: list[str] = []
        self.skipped: list[str] = []

    def add(self, pipe: Pipe, data: bytes) -> None:
        head, _ = decode_append(memoryview(data))
        request = head.request
        if pipe not in self._pipes:
            self._pipes.append(pipe)
        if not request.runs:
            return
        key = (self._pipes.index(pipe), head.group, request.epoch)
        first, last = request.prev_index + 1, request.runs[-1].last_index
        to = pipe.receiver.self_id  # type: ignore[attr-defined]
        self.entry_count[to] = self.entry_count.get(to, 0) + last - first + 1
        before = self._last.get(key)
        if before is not None and first <= before:
            self.repeated.append(f"{key}: {first}..{last} after {before}")
        elif before is not None and first != before + 1:
            self.skipped.append(f"{key}: {first}..{last} after {before}")
        self._last[key] = last


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[SentEntries]:
    """Count every append of every connection."""
    sent = SentEntries()
    transmit = Pipe.transmit

    def counting(pipe: Pipe, data: bytes) -> None:
        if data[0] in APPENDS:
            sent.add(pipe, data)
        transmit(pipe, data)

    with monkeypatch.context() as patch:
        patch.setattr(Pipe, "transmit", counting)
        yield sent


def run_for(world: World, duration_ms: int) -> None:
    world.scheduler.run_until(world.scheduler.now_us + duration_ms * MS)


def leader_of(world: World) -> Replica:
    return next(iter(world.cluster.leading_replicas()))


def slow_down(world: World, *brokers: BrokerId, bytes_per_ms: int) -> None:
    """Make every way to these brokers so slow."""
    for other in world.scenario.brokers:
        for broker in brokers:
            if broker != other:
                world.fabric.link(other, broker).bytes_per_ms = bytes_per_ms
