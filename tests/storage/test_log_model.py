"""A log behaves like a list of batches under any operations, power failures included.

Source: design section 4; the invariants are those of `log_model.check_equal`."""

import random
from collections.abc import Iterator
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.storage.log_model import (
    ModelLog,
    append_batches,
    check_equal,
    random_batch,
    random_marker,
)
from tests.storage.storage_world import ForgetfulDisk, ManualClock

from strandline.model.ids import Epoch, Index, Offset
from strandline.records.record import decode_records
from strandline.storage.config import LogConfig
from strandline.storage.layout import LOG, PRODUCERS, SegmentName, parse_name
from strandline.storage.log.log import Log
from strandline.storage.recovery.survey import survey_log
from strandline.storage.recovery.verification import FindingKind, verify_log

DIRECTORY = "/data/topic-0.1"
SEEDS = st.integers(min_value=0, max_value=2**32)


class LogMachine(RuleBasedStateMachine):
    """Random appends, truncations, flushes, rolls, retention, resets, crashes and reads."""

    @initialize(seed=SEEDS, preallocate=st.booleans())
    def start(self, seed: int, preallocate: bool) -> None:
        self.rng = random.Random(seed)
        self.disk = ForgetfulDisk()
        self.disk.make_directories("/data")
        self.clock = ManualClock()
        self.model = ModelLog()
        self.epoch = 1
        self.durable_index = -1
        """What `flush_soon` has promised."""
        self.config = LogConfig(
            segment_bytes=self.rng.choice((600, 1500, 5000)),
            index_interval_bytes=self.rng.choice((1, 150, 600)),
            retention_ms=-1,
            preallocate=preallocate,
        )
        self.log = self.open()

    def open(self) -> Log:
        return Log.open(self.disk, DIRECTORY, config=self.config, clock=self.clock)

    def findings(self) -> list[FindingKind]:
        """What somebody who only looks finds wrong; nothing is changed by that."""
        survey = survey_log(self.disk, DIRECTORY)
        assert [one.segment.name for one in survey.segments] <= survey.files.names
        fuse, self.disk.fuse = self.disk.fuse, 0
        found = verify_log(self.disk, DIRECTORY).findings
        self.disk.fuse = fuse
        return [one.kind for one in found]

    def forget_callbacks(self) -> None:
        """Those of the process that ended."""
        self.disk.flushes.clear()
        self.clock.forget()

    @rule(count=st.integers(1, 4))
    def append(self, count: int) -> None:
        batches = []
        if self.begins_epoch:
            data, configuration = random_marker(self.model, self.rng, epoch=self.epoch)
            batches.append(self.model.add(data, configuration))
        batches += [
            self.model.add(random_batch(self.model, self.rng, epoch=self.epoch))
            for _ in range(count)
        ]
        append_batches(self.log, batches, self.rng)

    @property
    def begins_epoch(self) -> bool:
        """Each one begins with a marker, as leaders write it."""
        last = self.model.batches[-1].header if self.model.batches else None
        return last is None or last.partition_leader_epoch != self.epoch

    @rule()
    def append_with_markers(self) -> None:
        self.epoch += self.rng.randint(0, 2)
        batches = []
        for _ in range(self.rng.randint(1, 4)):
            if self.rng.random() < 0.5 or self.begins_epoch:
                data, configuration = random_marker(self.model, self.rng, epoch=self.epoch)
                batches.append(self.model.add(data, configuration))
            else:
                data = random_batch(self.model, self.rng, epoch=self.epoch)
                batches.append(self.model.add(data))
        append_batches(self.log, batches, self.rng)

    @rule(back=st.integers(1, 12))
    def truncate(self, back: int) -> None:
        if not self.model.batches:
            return
        batch = self.model.batches[-min(back, len(self.model.batches))]
        self.log.truncate(Index(batch.first_index))
        self.model.truncate(batch.first_index)
        self.epoch += 1
        self.durable_index = min(self.durable_index, batch.first_index - 1)

    @rule()
    def flush(self) -> None:
        def done(result: Index | OSError) -> None:
            assert isinstance(result, int)
            assert result <= self.log.flushed_index
            self.durable_index = max(self.durable_index, result)

        self.log.flush_soon(done)

    @rule()
    def finish_flushes(self) -> None:
        self.clock.advance(3_000)
        self.disk.run()
        self.clock.run()

    @rule()
    def roll(self) -> None:
        self.clock.advance(self.config.segment_ms)
        self.log.roll_if_due()

    @precondition(lambda self: self.model.batches)
    @rule(share=st.floats(0, 1))
    def remove_first(self, share: float) -> None:
        span = self.model.end_offset - self.model.start_offset
        limit = Offset(self.model.start_offset + int(span * share))
        self.log.remove_segments_before(limit)
        assert (
            self.model.start_offset <= self.log.start_offset <= max(limit, self.model.start_offset)
        )
        self.model.cut_start(self.log.start_index)

    @rule(records=st.integers(-1, 40), uncommitted=st.integers(0, 10))
    def retain(self, records: int, uncommitted: int) -> None:
        """Retention by records keeps so many committed ones, and no segment more than it must."""
        self.log.config = replace(self.config, retention_records=records)
        self.log.roll_if_due()
        limit = max(self.model.start_offset, self.model.end_offset - uncommitted)
        starts = [name.base_offset for name in self.segment_names()]
        start = self.log.apply_retention(Offset(limit))
        may_go = [one for one in starts if records >= 0 and limit - one >= records]
        assert start == max([self.model.start_offset, *may_go])
        self.model.cut_start(self.log.start_index)
        self.log.config = self.config

    def segment_names(self) -> list[SegmentName]:
        """Of the segments that have files, in order."""
        found = map(parse_name, self.disk.list_directory(DIRECTORY))
        names = [one[0] for one in found if one is not None and one[1] == LOG]
        return sorted(names, key=lambda name: name.base_index)

    @rule(gap=st.integers(0, 50), markers=st.integers(0, 5))
    def reset(self, gap: int, markers: int) -> None:
        offset = self.model.end_offset + gap
        index = max(self.model.end_index + gap, offset) + markers
        self.log.reset_to(Index(index), Offset(offset), previous_epoch=Epoch(self.epoch))
        self.model = ModelLog(offset, index, self.epoch)
        self.durable_index = index - 1

    @rule()
    def restart(self) -> None:
        self.log.close()
        self.forget_callbacks()
        assert set(self.findings()) <= {FindingKind.STALE}
        self.log = self.open()
        self.durable_index = self.model.end_index - 1

    @rule(drop=st.booleans())
    def kill(self, drop: bool) -> None:
        """The process dies, the page cache lives; files may be lost that can be made anew."""
        self.forget_callbacks()
        if drop:
            for name in self.disk.list_directory(DIRECTORY):
                if not self.is_the_only_source(name) and self.rng.random() < 0.3:
                    self.disk.remove(f"{DIRECTORY}/{name}")
            self.disk.flush_directory(DIRECTORY)
        assert set(self.findings()) <= {FindingKind.STALE}
        self.log = self.open()
        self.durable_index = self.model.end_index - 1

    def is_the_only_source(self, name: str) -> bool:
        """Whether nothing else says what is in that file: records, and what producers wrote in
        segments that were let go."""
        if name.endswith(LOG):
            return True
        return self.model.has_removed and parse_name(name) == (self.segment_names()[0], PRODUCERS)

    @rule()
    def lose_power(self) -> None:
        self.forget_callbacks()
        self.disk.crash(self.rng)
        assert FindingKind.DAMAGE not in self.findings(), "a torn tail is no damage"
        self.log = self.open()
        assert self.log.last_index >= self.durable_index, "lost what was flushed"
        assert self.log.last_index < self.model.end_index
        self.model.truncate(self.log.last_index + 1)
        self.model.cut_start(self.log.start_index)
        self.durable_index = self.model.end_index - 1

    @rule(offset=st.floats(0, 1), limit=st.floats(0, 1), max_bytes=st.integers(1, 3000))
    def read(self, offset: float, limit: float, max_bytes: int) -> None:
        span = self.model.end_offset - self.model.start_offset
        first = self.model.start_offset + int(span * offset)
        last = first + int((self.model.end_offset - first) * limit)
        found = self.log.read_records(Offset(first), max_bytes, Offset(last))
        data = found.bytes()
        assert len(data) == found.size_bytes
        assert data == self.model.readable(first, last, max_bytes) or is_shorter(
            data, self.model.readable(first, last, 1 << 30)
        )

    @rule(timestamp=st.integers(900, 101_000), share=st.floats(0, 1), hidden=st.floats(0, 1))
    def find_time(self, timestamp: int, share: float, hidden: float) -> None:
        span = self.model.end_offset - self.model.start_offset
        limit = Offset(self.model.start_offset + int(span * share))
        start = Offset(self.model.start_offset + int(span * hidden * hidden))
        expected = first_record_at(self.model, timestamp, limit, start)
        assert self.log.offset_for_time(timestamp, limit, start_offset=start) == expected
        newest = self.log.max_timestamp(start_offset=start)
        assert newest == newest_record(self.model, start)

    @invariant()
    def is_the_model(self) -> None:
        if hasattr(self, "log"):
            check_equal(self.log, self.model)


def is_shorter(data: bytes, whole: bytes) -> bool:
    """A read may end early, at a batch, but not be empty."""
    return bool(data) and whole.startswith(data)


def records_from(model: ModelLog, start: int) -> Iterator[tuple[int, int]]:
    """(timestamp, offset) of each record, in order."""
    for batch in model.batches:
        if not batch.header.is_marker:
            for record in decode_records(batch.data):
                offset = batch.header.base_offset + record.offset_delta
                if offset >= start:
                    yield record.timestamp, offset


def first_record_at(
    model: ModelLog, timestamp: int, limit: int, start: int
) -> tuple[int, int] | None:
    """ListOffsets by timestamp, the slow way."""
    for found in records_from(model, start):
        if found[0] >= timestamp:
            return found if found[1] < limit else None
    return None


def newest_record(model: ModelLog, start: int) -> tuple[int, int] | None:
    """The first one with the highest timestamp."""
    return max(records_from(model, start), key=lambda one: (one[0], -one[1]), default=None)


LogMachine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, derandomize=True
)
test_log_is_a_list_of_batches = LogMachine.TestCase
