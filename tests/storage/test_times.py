"""A record is found by its time with a bounded read, however long the log is.

Source: Kafka's ListOffsets; design section 4 (a time index beside each segment)."""

from collections.abc import Iterator

import pytest
from tests.storage.log_world import World
from tests.storage.storage_world import ForgetfulFile

from strandline.model.ids import Offset
from strandline.records.batch import read_header
from strandline.records.record import Record, build_batch
from strandline.storage.log.log import Log

SEGMENT_BYTES = 100_000
INTERVAL_BYTES = 2_000
BATCH_BYTES = 1_500
STEP_MS = 10
WALK_BYTES = 16 * 1024
READS_MAX = 6
"""A walk from the index, the proof of what it passed, and the batch itself."""


@pytest.fixture
def read_bytes(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """{kind of file: bytes read since it was cleared}."""
    counts: dict[str, int] = {}
    pread = ForgetfulFile.pread

    def counting(self: ForgetfulFile, length: int, position: int) -> bytes:
        data = pread(self, length, position)
        suffix = self.path.rpartition(".")[2]
        counts[suffix] = counts.get(suffix, 0) + len(data)
        return data

    monkeypatch.setattr(ForgetfulFile, "pread", counting)
    yield counts


def long_log(segment_count: int, *, is_closed: bool = True) -> Log:
    """One record every `STEP_MS` from 0 on, in so many segments."""
    world = World(segment_bytes=SEGMENT_BYTES, index_interval_bytes=INTERVAL_BYTES)
    while len(world.files()) < segment_count:
        world.append(timestamp=STEP_MS * world.log.end_offset, size=BATCH_BYTES)
        if len(world.files()) % 10 == 0:
            world.flush()
    if not is_closed:
        return world.log
    world.log.close()
    return world.open()


@pytest.mark.parametrize("segment_count", [4, 24])
@pytest.mark.parametrize("is_closed", [True, False])
def test_a_look_up_by_time_reads_a_few_pages_of_one_segment(
    read_bytes: dict[str, int], segment_count: int, is_closed: bool
) -> None:
    log = long_log(segment_count, is_closed=is_closed)
    records = log.end_offset
    assert log.size_bytes() > (segment_count - 1) * SEGMENT_BYTES * 0.9
    index_bytes_max = 2 * 20 * (SEGMENT_BYTES // INTERVAL_BYTES)
    for number in range(0, records, max(1, records // 23)):
        read_bytes.clear()
        timestamp = STEP_MS * number - 3
        found = log.offset_for_time(timestamp, log.end_offset)
        assert found == (STEP_MS * number, number)
        assert read_bytes.pop("log") <= READS_MAX * WALK_BYTES
        assert sum(read_bytes.values()) <= index_bytes_max


def test_neither_does_the_newest_record_cost_more(read_bytes: dict[str, int]) -> None:
    log = long_log(12)
    last = log.end_offset - 1
    read_bytes.clear()
    assert log.max_timestamp() == (STEP_MS * last, last)
    assert log.offset_for_time(STEP_MS * last + 1, log.end_offset) is None
    assert read_bytes.pop("log") <= READS_MAX * WALK_BYTES


def test_a_start_within_the_log_costs_no_more(
    read_bytes: dict[str, int],
) -> None:
    log = long_log(12)
    start = Offset(log.end_offset // 2)
    read_bytes.clear()
    assert log.offset_for_time(0, log.end_offset, start_offset=start) == (STEP_MS * start, start)
    assert read_bytes["log"] <= READS_MAX * WALK_BYTES


# ---- headers whose `maxTimestamp` is none of their records' ----


def append_claiming(world: World, *timestamps: int, claimed: int) -> None:
    """A batch as a producer may have left it on the disk before its records were read."""
    records = [Record(at, time, b"k", b"v" * 100) for at, time in enumerate(timestamps)]
    batch = build_batch(records, base_offset=world.log.end_offset, epoch=1, max_timestamp=claimed)
    header = read_header(batch)
    assert header is not None
    world.log.append([batch], [header])


def test_the_newest_record_is_found_beside_a_header_that_promises_more() -> None:
    world = World()
    for time in (100, 200, 400, 300):
        append_claiming(world, time - 5, time, claimed=time)
    append_claiming(world, 150, claimed=9_999)
    append_claiming(world, 400, 390, claimed=8_888)
    assert world.log.max_timestamp() == (400, 5)
    assert world.log.max_timestamp(start_offset=Offset(6)) == (400, 9)
    assert world.log.offset_for_time(399, world.log.end_offset) == (400, 5)
    assert world.log.offset_for_time(401, world.log.end_offset) is None


def test_no_record_is_the_newest_where_none_has_a_timestamp() -> None:
    world = World()
    append_claiming(world, -1, -1, claimed=7_777)
    assert world.log.max_timestamp() is None
