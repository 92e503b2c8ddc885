"""Produce looks into batches: garbage is refused, times are the records', and a large batch is
validated beside the loop without being overtaken.

Source: Kafka's LogValidator; KIP-467; decision 0044."""

import random
from collections.abc import Callable
from queue import SimpleQueue

import pytest
from tests.broker.broker_world import NOW_MS, BrokerWorld, ObedientReplica, Sink, batch_of
from tests.broker.test_produce_handler import VERSION, ask_one, produce, results

from strandline.base.errors import ApiError
from strandline.broker.server import batch_validation
from strandline.broker.server.batch_validation import (
    INLINE_BYTES_MAX,
    SCRATCH_BYTES,
    Allowance,
    BatchValidation,
)
from strandline.broker.server.worker_thread import WorkerThread
from strandline.protocol.errors import Error
from strandline.records.batch import HEADER_BYTES, crc_matches, read_header, seal
from strandline.records.codec import GZIP, ZSTD
from strandline.records.record import Record, build_batch
from strandline.records.validate_contents import ContentRules

HOUR_MS = 3_600_000
LARGE = bytes(2 * SCRATCH_BYTES)


class LaterWorker:
    """A worker whose work is done when the test says so."""

    def __init__(self) -> None:
        self.queue: list[tuple[Callable[[], ApiError | None], Callable[..., None]]] = []

    def run(
        self, work: Callable[[], ApiError | None], done: Callable[[ApiError | None], None]
    ) -> None:
        self.queue.append((work, done))

    def work(self) -> None:
        """Do the first piece of work."""
        work, done = self.queue.pop(0)
        done(work())


class WaitingSink(Sink):
    """Counts how often it may read on."""

    unblocked_count = 0

    def on_unblocked(self) -> None:
        self.unblocked_count += 1


def garbage(codec: int = 0) -> bytearray:
    """A batch with a right CRC and no records in it."""
    batch = batch_of(b"x" * 500)
    batch[HEADER_BYTES:] = random.Random(codec).randbytes(len(batch) - HEADER_BYTES)
    batch[22] = codec
    header = read_header(batch)
    assert header is not None
    seal(batch, header)
    return batch


@pytest.fixture
def worker(world: BrokerWorld) -> LaterWorker:
    made = LaterWorker()
    world.services.validation.worker = made
    return made


def log_end(replica: ObedientReplica) -> int:
    return replica.log.end_offset


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("codec", range(5))
def test_garbage_is_refused_at_the_door(world: BrokerWorld, codec: int, acks: int) -> None:
    (replica,) = world.add_topic("t")
    result = ask_one(world, produce(garbage(codec), acks=acks))
    assert (result.error_code, result.base_offset) == (Error.INVALID_RECORD, -1)
    assert result.error_message
    assert log_end(replica) == 0


def test_garbage_with_acks_0_closes_the_connection(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    pending = world.send(produce(garbage(), acks=0), VERSION)
    assert len(pending.sink.closed) == 1
    assert log_end(replica) == 0


def test_each_partition_is_refused_for_itself(world: BrokerWorld) -> None:
    first, second = world.add_topic("t", 2)
    codes = [one.error_code for one in results(world.send(produce(garbage(), batch_of(b"a")), 9))]
    assert codes == [Error.INVALID_RECORD, 0]
    assert (log_end(first), log_end(second)) == (0, 1)


def test_the_time_of_a_batch_is_its_records(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    records = [Record(0, NOW_MS - 500, b"k"), Record(1, NOW_MS - 100, b"k")]
    for claimed in (-1, NOW_MS - 3_000_000, NOW_MS + 3_000_000):
        assert ask_one(world, produce(build_batch(records, max_timestamp=claimed))).error_code == 0
    data = replica.read(0, 10_000).bytes()  # type: ignore[arg-type]
    header = read_header(data)
    assert header is not None
    assert header.max_timestamp == NOW_MS - 100
    assert crc_matches(data, header)
    found = replica.log.offset_for_time(NOW_MS - 100, replica.log.end_offset)
    assert found == (NOW_MS - 100, 1)
    assert replica.log.max_timestamp() == (NOW_MS - 100, 1)


@pytest.mark.parametrize("version", (8, 9, 12))
def test_refused_records_are_named(world: BrokerWorld, version: int) -> None:
    world.add_topic("t", message_timestamp_before_max_ms=str(HOUR_MS))
    records = [
        Record(0, NOW_MS, b"k"),
        Record(1, NOW_MS - 2 * HOUR_MS, b"k"),
        Record(2, NOW_MS + 2 * HOUR_MS, b"k"),
    ]
    result = ask_one(world, produce(build_batch(records, max_timestamp=NOW_MS)), version)
    assert result.error_code == Error.INVALID_TIMESTAMP
    assert [one.batch_index for one in result.record_errors] == [1, 2]
    assert all(one.batch_index_error_message for one in result.record_errors)
    assert result.error_message


def test_records_without_a_timestamp_pass_the_bounds(world: BrokerWorld) -> None:
    world.add_topic("t", message_timestamp_before_max_ms=str(HOUR_MS))
    batch = build_batch([Record(0, -1, b"k")], base_timestamp=-1)
    assert ask_one(world, produce(batch)).error_code == 0


def test_missing_keys_are_named(world: BrokerWorld) -> None:
    world.add_topic("t", cleanup_policy="compact")
    records = [Record(0, NOW_MS, b"k"), Record(1, NOW_MS), Record(2, NOW_MS)]
    result = ask_one(world, produce(build_batch(records)))
    assert result.error_code == Error.INVALID_RECORD
    assert [one.batch_index for one in result.record_errors] == [1, 2]


# ---- large batches ----


def test_a_large_batch_is_validated_beside_the_loop(
    world: BrokerWorld, worker: LaterWorker
) -> None:
    (replica,) = world.add_topic("t")
    sink = WaitingSink()
    pending = world.send(produce(batch_of(LARGE, codec=ZSTD)), VERSION, sink=sink)
    blocker = pending.context.blocked_by
    assert blocker is not None
    assert blocker.is_holding, "what comes later must not overtake it"
    assert (pending.is_answered, log_end(replica)) == (False, 0)
    world.run(worker.work)
    assert (results(pending)[0].error_code, log_end(replica)) == (0, 1)
    assert not blocker.is_holding
    assert sink.unblocked_count == 1


def test_a_large_batch_that_is_refused_is_answered(world: BrokerWorld, worker: LaterWorker) -> None:
    (replica,) = world.add_topic("t")
    bomb = batch_of(bytes(64 << 20), codec=GZIP)
    pending = world.send(produce(bomb), VERSION)
    world.run(worker.work)
    assert results(pending)[0].error_code == Error.INVALID_RECORD
    assert log_end(replica) == 0


@pytest.mark.parametrize("size", [1 << 10, 17 << 20])
def test_a_refusal_of_the_worker_keeps_no_buffer_alive(size: int) -> None:
    """A traceback would: its frames refer to their callers, and these to the refusal."""
    batch = batch_of(bytes(size), codec=GZIP)
    batch[70:75] = bytes(5)
    header = read_header(batch)
    assert header is not None
    refusals: list[ApiError | None] = []
    BatchValidation().validate_aside(
        memoryview(batch), [header], ContentRules(), Allowance(0), done=refusals.append
    )
    (refusal,) = refusals
    assert refusal is not None
    assert refusal.__traceback__ is None
    assert refusal.__context__ is None or refusal.__context__.__traceback__ is None


def test_the_worker_thread_hands_results_back_in_order() -> None:
    posted: SimpleQueue[Callable[[], None]] = SimpleQueue()
    thread = WorkerThread(posted.put, name="test")
    results: list[int] = []
    for number in range(3):
        thread.run(lambda number=number: number * number, results.append)  # type: ignore[misc]
    for _ in range(3):
        posted.get(timeout=10)()
    assert results == [0, 1, 4]


def test_a_request_that_was_told_of_a_time_out_appends_nothing_later(
    world: BrokerWorld, worker: LaterWorker
) -> None:
    (replica,) = world.add_topic("t")
    pending = world.send(produce(batch_of(LARGE, codec=ZSTD), timeout_ms=200), VERSION)
    world.advance(1_000)
    assert results(pending)[0].error_code == Error.REQUEST_TIMED_OUT
    world.run(worker.work)
    assert log_end(replica) == 0


def test_acks_0_waits_for_the_validation_too(world: BrokerWorld, worker: LaterWorker) -> None:
    (replica,) = world.add_topic("t")
    pending = world.send(produce(batch_of(LARGE, codec=ZSTD), acks=0), VERSION)
    assert not pending.sink.answered
    world.run(worker.work)
    assert pending.sink.answered
    assert log_end(replica) == 1


def test_many_batches_of_one_request_go_beside_the_loop_too(
    world: BrokerWorld, worker: LaterWorker
) -> None:
    count = INLINE_BYTES_MAX // SCRATCH_BYTES + 2
    world.add_topic("t", count)
    batch = batch_of(bytes(SCRATCH_BYTES - 100), codec=ZSTD)
    pending = world.send(produce(*[batch] * count), VERSION)
    assert 0 < len(worker.queue) < count
    while worker.queue:
        world.run(worker.work)
    assert {one.error_code for one in results(pending)} == {0}


def test_what_a_request_may_decompress_is_bounded(world: BrokerWorld, worker: LaterWorker) -> None:
    """Each batch is within its bound, all together are not."""
    world.add_topic("t", 6)
    batch = batch_of(bytes(15 << 20), codec=ZSTD)
    pending = world.send(produce(*[batch] * 6), VERSION)
    while worker.queue:
        world.run(worker.work)
    codes = [one.error_code for one in results(pending)]
    assert codes == [0, 0, 0, 0, Error.INVALID_RECORD, Error.INVALID_RECORD]


def test_batches_of_closed_connections_do_not_pile_up(
    world: BrokerWorld, worker: LaterWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_validation, "QUEUED_BYTES_MAX", 3 * INLINE_BYTES_MAX)
    (replica,) = world.add_topic("t", max_message_bytes=str(8 << 20))
    batch = batch_of(bytes(2 * INLINE_BYTES_MAX))
    first, second, third = [world.send(produce(batch), VERSION) for _ in range(3)]
    assert (first.sink.closed, second.sink.closed, len(worker.queue)) == ([], [], 2)
    assert "wait to be validated" in third.sink.closed[0]
    while worker.queue:
        world.run(worker.work)
    assert results(first)[0].error_code == results(second)[0].error_code == 0
    assert log_end(replica) == 2
    last = world.send(produce(batch), VERSION)
    assert last.sink.closed == [] and len(worker.queue) == 1


def test_without_a_worker_large_batches_are_validated_at_once(world: BrokerWorld) -> None:
    world.services.validation = BatchValidation()
    (replica,) = world.add_topic("t")
    assert ask_one(world, produce(batch_of(LARGE, codec=ZSTD))).error_code == 0
    assert log_end(replica) == 1
