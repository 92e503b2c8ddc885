"""Fetches of records that are in buckets only: as if they were local, whatever the store does.

Source: decision 0060; KIP-74, KIP-405."""

from collections.abc import Iterator

import pytest
from tests.broker.broker_world import OTHER, ObedientReplica, Pending
from tests.broker.remote_world import FAR, NEAR, RemoteWorld
from tests.broker.test_fetch_handler import VERSION, fetch, parts, values
from tests.tiered.reading.reading_world import fail, flip

from strandline.broker.fetch.remote_reads import CACHE_WAIT_MS, FAILED_WAIT_MS
from strandline.model.ids import Offset
from strandline.protocol.errors import Error
from strandline.protocol.messages.fetch import PartitionData
from strandline.records.batch import iterate_headers
from strandline.records.record import decode_records


@pytest.fixture
def world() -> Iterator[RemoteWorld]:
    made = RemoteWorld()
    yield made
    made.close()


def _fill(replica: ObedientReplica, count: int, *, value_bytes: int = 60) -> list[bytes]:
    """Batches of three records; every value."""
    written = [f"{at:04}".encode().ljust(value_bytes, b".") for at in range(3 * count)]
    for at in range(count):
        replica.write(*written[3 * at : 3 * at + 3])
    return written


def _ask(world: RemoteWorld, pending: Pending) -> PartitionData:
    """The answer about one partition; it needs no time but that of the cache."""
    world.advance(1)
    (one,) = parts(pending)
    return one


def _records(data: PartitionData) -> list[tuple[int, bytes | None]]:
    """(offset, value) of every record."""
    records = data.records
    assert isinstance(records, memoryview)
    return [
        (header.base_offset + record.offset_delta, record.value)
        for header in iterate_headers(records)
        for record in decode_records(records, header.position)
    ]


def test_each_offset_gives_the_right_first_record(world: RemoteWorld) -> None:
    (replica,) = world.add_topic("t")
    written = _fill(replica, 30)
    world.archive_below(replica, 60, objects=3)
    for offset in range(90):
        found = _records(_ask(world, world.send(fetch(offset, partition_bytes=600), VERSION)))
        assert found[0][0] <= offset
        assert [value for at, value in found if at >= offset] == written[offset:][
            : found[-1][0] + 1 - offset
        ]


@pytest.mark.parametrize("partition_bytes", [1, 700, 3_000, 1 << 20])
@pytest.mark.parametrize("min_bytes", [1, 2_000])
def test_a_consumer_from_the_beginning_goes_over_into_the_local_log(
    world: RemoteWorld, partition_bytes: int, min_bytes: int
) -> None:
    (replica,) = world.add_topic("t")
    written = _fill(replica, 40)
    world.archive_below(replica, 81, objects=4, buckets=f"{NEAR},{FAR}")
    seen: list[bytes | None] = []
    while len(seen) < len(written):
        request = fetch(len(seen), partition_bytes=partition_bytes, min_bytes=min_bytes)
        pending = world.send(request, VERSION)
        world.advance(500)
        (one,) = parts(pending)
        assert (one.error_code, one.log_start_offset, one.high_watermark) == (0, 0, 120)
        assert values(one), f"nothing at {len(seen)}"
        seen += values(one)
    assert seen == written


def test_a_fetch_waits_for_the_bucket_and_the_download_goes_on_without_it(
    world: RemoteWorld,
) -> None:
    (replica,) = world.add_topic("t")
    written = _fill(replica, 10)
    world.archive_below(replica, 15)
    store = world.archive.stores[NEAR]
    store.gate.clear()
    pending = world.send(fetch(0, max_wait_ms=500), VERSION)
    world.advance(499)
    assert not pending.is_answered
    world.advance(1)
    (one,) = parts(pending)
    assert (one.error_code, values(one)) == (0, [])
    world.run(store.gate.set)
    calls = len(store.calls)
    second = world.send(fetch(0, max_wait_ms=500), VERSION)
    world.advance(5)
    assert values(parts(second)[0])[:3] == written[:3]
    assert len(store.calls) <= calls + 1  # The chunk; the trailer has come meanwhile.


def test_a_fetch_is_answered_as_soon_as_the_records_come(world: RemoteWorld) -> None:
    (replica,) = world.add_topic("t")
    written = _fill(replica, 10)
    world.archive_below(replica, 15)
    store = world.archive.stores[NEAR]
    store.gate.clear()
    pending = world.send(fetch(0, max_wait_ms=30_000), VERSION)
    world.advance(7_000)
    assert not pending.is_answered
    world.run(store.gate.set)
    assert values(parts(pending)[0])[:3] == written[:3]


def test_partitions_are_read_side_by_side(world: RemoteWorld) -> None:
    replicas = world.add_topic("t", partitions=5)
    for replica in replicas:
        _fill(replica, 4)
        world.archive_below(replica, 9)
    store = world.archive.stores[NEAR]
    store.gate.clear()
    pending = world.send(fetch(0, 0, 0, 0, 0, min_bytes=2_000), VERSION)
    world.advance(5)
    assert len({name for name, _, _ in store.calls}) == 5
    world.run(store.gate.set)
    world.advance(5)
    assert [len(values(one)) for one in parts(pending)] == [9] * 5


def test_without_a_wait_the_cache_is_still_asked(world: RemoteWorld) -> None:
    (replica,) = world.add_topic("t")
    _fill(replica, 10)
    world.archive_below(replica, 15)
    first = world.send(fetch(0, max_wait_ms=0), VERSION)
    world.advance(CACHE_WAIT_MS)
    assert first.is_answered
    assert values(_ask(world, world.send(fetch(0, max_wait_ms=0), VERSION)))


def test_a_busy_partition_does_not_starve_an_old_one(world: RemoteWorld) -> None:
    old, busy = world.add_topic("t", partitions=2)
    _fill(old, 10)
    _fill(busy, 100)
    world.archive_below(old, 30)
    seen = [0, 0]
    for _ in range(60):
        pending = world.send(fetch(*seen, partition_bytes=400), VERSION)
        world.advance(1)
        for at, one in enumerate(parts(pending)):
            seen[at] += len(values(one))
        if seen[0] == 30:
            break
    assert seen[0] == 30
    assert seen[1] > 30


def test_a_failure_is_an_error_after_a_pause_that_clients_retry(world: RemoteWorld) -> None:
    (replica,) = world.add_topic("t")
    _fill(replica, 10)
    world.archive_below(replica, 15)
    world.archive.stores[NEAR].fault = fail  # type: ignore[assignment]
    pending = world.send(fetch(0, max_wait_ms=30_000), VERSION)
    world.advance(FAILED_WAIT_MS - 1)
    assert not pending.is_answered
    world.advance(1)
    (one,) = parts(pending)
    assert one.error_code == Error.KAFKA_STORAGE_ERROR
    assert values(one) == []


def test_a_failure_keeps_no_other_partition_waiting(world: RemoteWorld) -> None:
    broken, fine = world.add_topic("t", partitions=2)
    _fill(broken, 10)
    _fill(fine, 10)
    world.archive_below(broken, 15)
    world.archive.stores[NEAR].fault = fail  # type: ignore[assignment]
    pending = world.send(fetch(0, 0), VERSION)
    world.advance(1)
    first, second = parts(pending)
    assert values(second)
    assert (first.error_code, values(first)) in (
        (Error.KAFKA_STORAGE_ERROR, []),
        (Error.NONE, []),
    )


def test_wrong_bytes_come_from_another_bucket_or_not_at_all(world: RemoteWorld) -> None:
    (replica,) = world.add_topic("t")
    written = _fill(replica, 10)
    world.archive_below(replica, 15, buckets=f"{NEAR},{FAR}")
    world.archive.stores[NEAR].fault = flip  # type: ignore[assignment]
    pending = world.send(fetch(0, min_bytes=1_500), VERSION)
    assert values(_ask(world, pending)) == written[:15]
    assert world.reader.counters.wrong_bytes.total() == 1


def test_without_buckets_in_its_file_a_broker_says_so(world: RemoteWorld) -> None:
    (replica,) = world.add_topic("t")
    _fill(replica, 10)
    world.archive_below(replica, 15)
    world.services.remote_log = None
    pending = world.send(fetch(0), VERSION)
    world.advance(500)
    assert parts(pending)[0].error_code == Error.KAFKA_STORAGE_ERROR


def test_a_segment_that_goes_while_a_fetch_waits_is_read_from_the_bucket(
    world: RemoteWorld,
) -> None:
    (replica,) = world.add_topic("t")
    written = _fill(replica, 10)
    pending = world.send(fetch(6, min_bytes=100_000, max_wait_ms=500), VERSION)
    world.advance(100)
    world.archive_below(replica, 15)
    world.run(replica.watchers.notify)
    world.advance(400)
    assert values(parts(pending)[0]) == written[6:15]


def test_local_fetches_and_the_end_of_the_log_ask_no_bucket(world: RemoteWorld) -> None:
    (replica,) = world.add_topic("t")
    written = _fill(replica, 10)
    world.archive_below(replica, 15)
    assert values(_ask(world, world.send(fetch(15), VERSION))) == written[15:]
    at_end = world.send(fetch(30), VERSION)
    world.advance(500)
    assert values(parts(at_end)[0]) == []
    assert world.reader.counters.requests.total() == 0


def test_a_follower_reads_from_buckets_too(world: RemoteWorld) -> None:
    (replica,) = world.add_topic("t")
    written = _fill(replica, 10)
    world.archive_below(replica, 15)
    world.run(lambda: replica.follow(OTHER, epoch=2))
    pending = world.send(fetch(3, min_bytes=1_200), VERSION)
    assert values(_ask(world, pending)) == written[3:15]


def test_a_client_that_goes_leaves_nothing_behind_but_the_download(world: RemoteWorld) -> None:
    (replica,) = world.add_topic("t")
    _fill(replica, 10)
    world.archive_below(replica, 15)
    store = world.archive.stores[NEAR]
    store.gate.clear()
    pending = world.send(fetch(0), VERSION)
    world.advance(5)
    world.run(pending.context.abandon)
    world.run(store.gate.set)
    world.advance(5)
    assert world.reader.counters.requests.total() >= 1
    assert values(_ask(world, world.send(fetch(0, max_wait_ms=0), VERSION)))


def test_an_answer_holds_no_more_than_the_client_takes(world: RemoteWorld) -> None:
    replicas = world.add_topic("t", partitions=3)
    for replica in replicas:
        _fill(replica, 10)
        world.archive_below(replica, 30)
    seen = [0, 0, 0]
    for _ in range(40):
        pending = world.send(fetch(*seen, max_bytes=700, partition_bytes=500), VERSION)
        world.advance(500)
        answers = parts(pending)
        total = sum(len(one.records) for one in answers if isinstance(one.records, memoryview))
        assert total <= 700
        for at, one in enumerate(answers):
            seen[at] += len(values(one))
    assert seen == [30, 30, 30]


def test_a_batch_larger_than_the_limit_comes_alone(world: RemoteWorld) -> None:
    (replica,) = world.add_topic("t")
    _fill(replica, 3, value_bytes=4_000)
    world.archive_below(replica, 9)
    pending = world.send(fetch(3, max_bytes=100, partition_bytes=100), VERSION)
    found = _records(_ask(world, pending))
    assert [offset for offset, _ in found] == [3, 4, 5]


def test_offsets_before_the_partition_are_out_of_range(world: RemoteWorld) -> None:
    (replica,) = world.add_topic("t")
    _fill(replica, 10)
    world.archive_below(replica, 15)
    pending = world.send(fetch(31), VERSION)
    world.advance(1)
    assert parts(pending)[0].error_code == Error.OFFSET_OUT_OF_RANGE
    assert Offset(0) == replica.log_start_offset


def test_a_store_that_takes_a_minute_holds_up_no_local_consumer(world: RemoteWorld) -> None:
    """In virtual time: what waits for the store takes a minute, everything else no time."""
    old, new = world.add_topic("t", partitions=2)
    written = _fill(old, 10)
    _fill(new, 200)
    world.archive_below(old, 30)
    store = world.archive.stores[NEAR]
    store.gate.clear()
    waiting = world.send(fetch(0, max_wait_ms=120_000), VERSION)
    for second in range(60):
        local = world.send(fetch(0, 3 * second, partition_bytes=300), VERSION)
        world.advance(0)
        assert values(parts(local)[1]), "a local partition waits for the store"
        world.advance(1_000)
        assert not waiting.is_answered
    # However many fetches asked, the store was asked once.
    assert len(store.calls) == 1
    world.run(store.gate.set)
    assert values(parts(waiting)[0])[:3] == written[:3]
