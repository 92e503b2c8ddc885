"""What a log ought to be: a list of batches."""

import random
from dataclasses import dataclass, field

from strandline.model.ids import Epoch, Index, Offset
from strandline.records.batch import BatchHeader, read_header
from strandline.records.marker import (
    build_configuration_marker,
    build_deletion_marker,
    build_epoch_marker,
    build_tier_marker,
    parse_marker,
)
from strandline.records.record import Record, build_batch
from strandline.storage.log.log import Log
from strandline.storage.producers.producers import SEQUENCE_COUNT, ProducerStates

FIRST_SEQUENCE = SEQUENCE_COUNT - 10
"""Of every producer: sequences soon wrap to 0."""


@dataclass(frozen=True)
class ModelBatch:
    """One batch and where it is."""

    data: bytes
    header: BatchHeader
    first_index: int
    configuration: bytes | None = None

    @property
    def end_index(self) -> int:
        return self.first_index + self.header.index_count


@dataclass
class ModelLog:
    """The batches from the start on."""

    start_offset: int = 0
    start_index: int = 0
    previous_epoch: int = 0
    batches: list[ModelBatch] = field(default_factory=list)
    _evict_cache: list[ModelBatch] = field(default_factory=list)

    @property
    def end_offset(self) -> int:
        return self.batches[-1].header.next_offset if self.batches else self.start_offset

    @property
    def end_index(self) -> int:
        return self.batches[-1].end_index if self.batches else self.start_index

    @property
    def last_epoch(self) -> int:
        if self.batches:
            return self.batches[-1].header.partition_leader_epoch
        return self.previous_epoch

    def add(self, data: bytes, configuration: bytes | None = None) -> ModelBatch:
        header = read_header(data)
        assert header is not None
        batch = ModelBatch(data, header, self.end_index, configuration)
        self.batches.append(batch)
        return batch

    def truncate(self, from_index: int) -> None:
        self.batches = [batch for batch in self.batches if batch.first_index < from_index]

    def cut_start(self, start_index: int) -> None:
        gone = [batch for batch in self.batches if batch.first_index < start_index]
        if gone:
            self.start_index = gone[-1].end_index
            self.start_offset = gone[-1].header.next_offset
            self.previous_epoch = gone[-1].header.partition_leader_epoch
        self._evict_cache += gone
        del self.batches[: len(gone)]

    @property
    def has_removed(self) -> bool:
        """Whether producers wrote what is not there any more."""
        return any(batch.header.producer_id >= 0 for batch in self._evict_cache)

    def epochs(self) -> list[tuple[int, int]]:
        result: list[tuple[int, int]] = []
        for batch in self.batches:
            epoch = batch.header.partition_leader_epoch
            if not result or result[-1][0] != epoch:
                result.append((epoch, batch.first_index))
        return result

    def readable(self, offset: int, limit: int, max_bytes: int) -> bytes:
        """What a consumer gets."""
        result = b""
        raw = 0
        for batch in self.batches:
            if batch.header.next_offset <= offset:
                continue
            if not batch.header.is_marker and batch.header.next_offset > limit:
                break
            raw += len(batch.data)
            if raw > max_bytes and result:
                break
            if not batch.header.is_marker:
                result += batch.data
        return result

    def producers(self) -> ProducerStates:
        """Also of what was let go."""
        states = ProducerStates()
        for batch in (*self._evict_cache, *self.batches):
            states.update(batch.header, 0)
        return states


def random_batch(model: ModelLog, rng: random.Random, *, epoch: int, size_max: int = 400) -> bytes:
    """A batch that may be appended next."""
    producer_id = rng.choice((-1, -1, 1, 2, 3))
    count = rng.randint(1, 5)
    timestamp = rng.randint(1_000, 100_000)
    entry = model.producers().get(producer_id)
    sequence = -1
    producer_epoch = -1
    if producer_id >= 0:
        producer_epoch = 0
        before = FIRST_SEQUENCE - 1 if entry is None else entry.window[-1].last_sequence
        sequence = (before + 1) % SEQUENCE_COUNT
    records = [
        Record(n, timestamp + rng.randint(0, 50), b"k%d" % rng.randint(0, 9), rng.randbytes(size))
        for n, size in enumerate(rng.randint(0, size_max // count) for _ in range(count))
    ]
    return bytes(
        build_batch(
            records,
            base_offset=model.end_offset,
            epoch=epoch,
            codec=rng.choice((0, 0, 0, 2, 4)),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=sequence,
        )
    )


def random_marker(model: ModelLog, rng: random.Random, *, epoch: int) -> tuple[bytes, bytes | None]:
    """(a marker, its configuration) that may be appended next."""
    if rng.random() < 0.5:
        return build_epoch_marker(Offset(model.end_offset), Epoch(epoch), 5), None
    if rng.random() < 0.5:
        before = rng.randint(0, model.end_offset)
        offset = Offset(model.end_offset)
        return build_deletion_marker(offset, Epoch(epoch), Offset(before), 5), None
    if rng.random() < 0.5:
        tier = bytes([rng.randint(0, 99)])
        return build_tier_marker(Offset(model.end_offset), Epoch(epoch), tier, 5), None
    payload = b'{"voters":[%d]}' % rng.randint(0, 99)
    return build_configuration_marker(Offset(model.end_offset), Epoch(epoch), payload, 5), payload


def append_batches(log: Log, batches: list[ModelBatch], rng: random.Random) -> None:
    """Append what the model has already taken in, in one write of several buffers."""
    buffers = [batch.data for batch in batches]
    if len(buffers) > 1 and rng.random() < 0.5:
        buffers = [b"".join(buffers)]
    log.append(buffers, [batch.header for batch in batches])


def check_equal(log: Log, model: ModelLog) -> None:
    """The log is what the model says, from every side."""
    assert log.start_offset == model.start_offset
    assert log.start_index == model.start_index
    assert log.previous_epoch == model.previous_epoch
    assert log.end_offset == model.end_offset
    assert log.last_index == model.end_index - 1
    assert log.last_epoch == model.last_epoch
    assert log.epochs == model.epochs()
    assert log.size_bytes() == sum(len(batch.data) for batch in model.batches)
    assert log.configurations == [
        (batch.first_index, batch.configuration)
        for batch in model.batches
        if batch.configuration is not None
    ]
    assert log.deletions == [
        (batch.first_index, before)
        for batch in model.batches
        if batch.header.is_marker
        and (before := parse_marker(batch.data).deleted_before) is not None
    ]
    assert log.tier_markers == [
        (batch.first_index, tier)
        for batch in model.batches
        if batch.header.is_marker and (tier := parse_marker(batch.data).tier) is not None
    ]
    check_positions(log, model)
    check_entries(log, model)
    producers = {key: entry.window for key, entry in log.producers.checkpoint().producers.items()}
    expected = model.producers().checkpoint()
    assert producers == {key: entry.window for key, entry in expected.producers.items()}


def check_positions(log: Log, model: ModelLog) -> None:
    """Index, offset and epoch of every entry."""
    for batch in model.batches:
        header = batch.header
        assert log.batch_start(Index(batch.end_index - 1)) == batch.first_index
        for at in range(header.index_count):
            index = Index(batch.first_index + at)
            offset = Offset(header.base_offset + at)
            assert log.epoch_of(index) == header.partition_leader_epoch
            assert log.offset_of(index) == offset
            if not header.is_marker:
                assert log.index_of(offset) == index


def check_entries(log: Log, model: ModelLog, max_bytes: int = 700) -> None:
    """All entries, read in pieces."""
    by_index = {batch.first_index: batch for batch in model.batches}
    index = log.start_index
    data = b""
    while index <= log.last_index:
        entries = log.read_entries(index, max_bytes)
        assert entries.first_index == index
        assert entries.runs[-1][1] == entries.last_index
        first = index
        for epoch, last in entries.runs:
            epochs = {
                batch.header.partition_leader_epoch
                for start, batch in by_index.items()
                if first <= start <= last
            }
            assert epochs == {epoch}
            first = Index(last + 1)
        assert entries.configurations == [
            (start, batch.configuration)
            for start, batch in by_index.items()
            if batch.configuration is not None and index <= start <= entries.last_index
        ]
        assert len(entries.data) <= max_bytes or entries.data == by_index[index].data
        data += entries.data
        index = Index(entries.last_index + 1)
    assert data == b"".join(batch.data for batch in model.batches)
