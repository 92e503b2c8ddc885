"""Copies of one log that ask each other for what they have lost, without a cluster around them.

Why:    what is written into the middle of a log meets whatever else happens to it; a history of
        whole brokers takes too long for the thousands that show where two of these meet.
How:    each copy is a log of `tests.storage` with the product's own scrub, questions, answers and
        mending; calls are answered at once."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

from tests.storage.test_log_compaction import DIRECTORY, World
from tests.storage.test_mending import newest, scrubbed

from strandline.base.errors import ApiError
from strandline.model.ids import BrokerId, GroupId, Index, Offset
from strandline.network.calls import CallError
from strandline.records.batch import BatchHeader, read_header
from strandline.records.record import decode_records
from strandline.replication.repair.gap_fetch import RepairAttempt
from strandline.replication.repair.log_repair import LogRepair
from strandline.storage.config import LogConfig
from strandline.storage.log.segment import Segment
from strandline.storage.recovery.scrubbing import Gap
from strandline.storage.recovery.verification import verify_log

GROUP = GroupId(1)
Handler = Callable[[BrokerId, bytes], Awaitable[bytes]]
Written = dict[Offset, tuple[bytes | None, bytes | None]]
"""{offset: (key, value)}."""


@dataclass
class Copy:
    """One replica's log, and what mends it."""

    broker: BrokerId
    world: World
    repairs: LogRepair
    replica: SimpleNamespace
    written: Written = field(default_factory=dict)

    def append(self, batch: bytes) -> None:
        """Append a batch, whatever it is."""
        header = header_of(batch)
        self.world.log.append([batch], [header])
        for record in () if header.is_marker else decode_records(batch):
            offset = Offset(header.base_offset + record.offset_delta)
            self.written[offset] = record.key, record.value

    def reopen(self) -> None:
        """The process is started anew."""
        self.world.clock.forget()
        self.world.log = self.replica.log = self.world.open()

    def gaps(self) -> list[Gap]:
        """What is damaged, by a whole pass of the scrub."""
        return scrubbed(self.world.log)

    def sound(self) -> set[Index]:
        """The indexes of which nothing is damaged."""
        log = self.world.log
        lost = {
            index
            for gap in self.gaps()
            for index in range(gap.start.raft_index, gap.end.raft_index)
        }
        return {Index(n) for n in range(log.start_index, log.last_index + 1)} - lost

    async def mend(self, meanwhile: Callable[[], None]) -> None:
        """Mend what can be mended, a segment after the other; `meanwhile` runs at each turn."""
        gaps = self.gaps()
        segments = list(dict.fromkeys(gap.segment for gap in gaps))
        for segment in segments:
            own = [gap for gap in gaps if gap.segment is segment]
            task = asyncio.ensure_future(
                self.repairs._mend_segment(self.replica, own, RepairAttempt())  # type: ignore[arg-type]
            )
            try:
                while not task.done():
                    meanwhile()
                    self.world.disk.run()
                    self.world.clock.run()
                    await asyncio.sleep(0)
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            known = {gap.start.position for gap in task.result()}
            # What is left has to be known, else nobody tries again.
            found = [gap for gap in self.gaps() if gap.segment is segment]
            assert all(gap.start.position in known for gap in found)

    def rows(self) -> Sequence[Segment]:
        """The segments of the log."""
        return self.world.log._row.segments

    def check(self, expected: dict[bytes | None, bytes | None] | None) -> None:
        """See that nothing here says what was never written, or where it is not. `expected`: the
        newest value of each key, where all of the log is sound."""
        log, gaps = self.world.log, self.gaps()
        self.world.flush()
        for segment in self.rows():
            own = [gap for gap in gaps if gap.segment is segment]
            headers = _sound_headers(segment, own)
            for header in headers:
                if header.is_marker:
                    continue
                batch = segment.file.pread(header.size, header.position)
                for record in decode_records(batch):
                    offset = Offset(header.base_offset + record.offset_delta)
                    assert self.written[offset] == (record.key, record.value)
            if not own:
                _check_knowledge(segment, headers)
        if gaps:
            return
        index = log.start_index
        while index <= log.last_index:
            entries = log.read_entries(index, 300)
            assert entries.first_index <= index <= entries.last_index
            index = Index(entries.last_index + 1)
        report = verify_log(self.world.disk, DIRECTORY)
        assert not report.is_damaged, [finding.reason for finding in report.findings]
        if expected is not None:
            found = newest(log)
            assert {key: value for key, (_, value) in found.items()} == expected


def header_of(batch: bytes) -> BatchHeader:
    """What a whole batch says of itself."""
    header = read_header(batch)
    assert header is not None
    return header


def _sound_headers(segment: Segment, gaps: Sequence[Gap]) -> list[BatchHeader]:
    found: list[BatchHeader] = []
    position = 0
    for gap in sorted(gaps, key=lambda gap: gap.start.position):
        found += segment.headers(position, gap.start.position)
        position = gap.end.position
    return [*found, *segment.headers(position, segment.size_bytes)]


def _check_knowledge(segment: Segment, headers: Sequence[BatchHeader]) -> None:
    """See that what is known of a sound segment is so."""
    assert [one.position for one in headers if one.is_marker] == [
        marker.position for marker in segment.markers
    ]
    batches = {one.position: one for one in headers if not one.is_marker}
    index = segment.index
    for position, relative_offset, before in zip(
        index.positions, index.offsets, index.timestamps, strict=True
    ):
        assert batches[position].base_offset == segment.name.base_offset + relative_offset
        earlier = [one.max_timestamp for at, one in batches.items() if at < position]
        assert before >= max(earlier, default=-1)
    latest = segment.max_timestamp
    assert all(one.max_timestamp <= latest for one in batches.values())
    reaching = (one.base_offset for one in batches.values() if one.max_timestamp == latest)
    assert segment.max_timestamp_offset <= next(reaching, segment.end_offset)


def make_copies(config: LogConfig, count: int) -> list[Copy]:
    """So many empty copies; the first one leads."""
    handlers: dict[BrokerId, Handler] = {}
    brokers = [BrokerId(number) for number in range(count)]
    return [_make_copy(config, broker, brokers, handlers) for broker in brokers]


def _make_copy(
    config: LogConfig,
    broker: BrokerId,
    brokers: Sequence[BrokerId],
    handlers: dict[BrokerId, Handler],
) -> Copy:
    world = World(config)

    def register(_method: str, handler: Handler) -> None:
        handlers[broker] = handler

    async def call(peer: BrokerId, _method: str, question: bytes, *, timeout_ms: int) -> bytes:
        try:
            return await handlers[peer](broker, question)
        except ApiError as error:
            raise CallError(str(error), was_answered=True) from error

    replica = SimpleNamespace(
        log=world.log,
        is_leader=broker == brokers[0],
        leader_id=brokers[0],
        self_id=broker,
        configuration=SimpleNamespace(members=tuple(brokers)),
        raft=SimpleNamespace(
            knows_configuration=True,
            is_compacted=config.has_been_compacted,
        ),
        set_compacted=lambda: replica.raft.__setattr__("is_compacted", True),
        name=f"copy {broker}",
        group=GROUP,
        failed=None,
        is_busy=False,
        damage=Mock(),
        on_unreadable=lambda error: None,
        flush=lambda: None,
        tell_compacted=lambda: None,
    )
    calls: Any = SimpleNamespace(register=register, call=call)
    replicas: Any = {GROUP: replica}
    return Copy(broker, world, LogRepair(replicas, calls, world.clock), replica)
