"""The leader gives batches their topic's codec, large ones beside the loop.

Source: Kafka's compression.type and compression.*.level (KIP-390)."""

import random

import pytest
from tests.broker.broker_world import NOW_MS, BrokerWorld, ObedientReplica, Sink, batch_of
from tests.broker.test_produce_handler import VERSION, ask_one, produce, results
from tests.broker.test_produced_contents import LaterWorker, WaitingSink

from strandline.broker.server import batch_validation
from strandline.broker.server.batch_validation import ANEW_INLINE_BYTES_MAX
from strandline.broker.server.recompression import INLINE_BYTES_MAX, compression_of
from strandline.config.topic import TopicConfig
from strandline.protocol.errors import Error
from strandline.records.batch import HEADER_BYTES, BatchHeader, crc_matches, iterate_headers, seal
from strandline.records.codec import GZIP, LZ4, NONE, SNAPPY, ZSTD
from strandline.records.recompress import Compression
from strandline.records.record import decode_records

CODECS = {"uncompressed": NONE, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
NOISE = random.Random(1).randbytes(2 * INLINE_BYTES_MAX)


def stored(replica: ObedientReplica) -> tuple[list[BatchHeader], list[bytes | None]]:
    """The batches of the log, and the values in them."""
    data = replica.read(0, 1 << 24).bytes()  # type: ignore[arg-type]
    headers = [one for one in iterate_headers(data) if not one.is_marker]
    assert all(crc_matches(data, one) for one in headers)
    return headers, [
        record.value for one in headers for record in decode_records(data, one.position)
    ]


@pytest.mark.parametrize("sent", range(5))
@pytest.mark.parametrize("kind", CODECS)
def test_whatever_codec_comes_the_topics_is_stored(
    world: BrokerWorld, kind: str, sent: int
) -> None:
    (replica,) = world.add_topic("t", compression_type=kind)
    batch = batch_of(b"x" * 500, b"y", codec=sent, producer_id=5, producer_epoch=1, base_sequence=0)
    assert ask_one(world, produce(batch)).error_code == 0
    (header,), values = stored(replica)
    assert header.codec == CODECS[kind]
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 1, 0)
    assert values == [b"x" * 500, b"y"]


def test_a_topic_may_set_its_own_times_too(world: BrokerWorld) -> None:
    (replica,) = world.add_topic(
        "t", compression_type="gzip", message_timestamp_type="LogAppendTime"
    )
    result = ask_one(world, produce(batch_of(b"a", timestamp=5)))
    (header,), values = stored(replica)
    assert (header.codec, header.max_timestamp) == (GZIP, NOW_MS)
    assert header.has_append_time and result.log_append_time_ms == NOW_MS
    assert values == [b"a"]


def test_a_batch_that_is_too_large_with_the_codec_is_refused(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t", compression_type="uncompressed", max_message_bytes="5000")
    result = ask_one(world, produce(batch_of(b"x" * 10_000, codec=GZIP)))
    assert result.error_code == Error.MESSAGE_TOO_LARGE
    assert "compression.type" in (result.error_message or "")
    assert stored(replica) == ([], [])


def test_a_large_batch_is_compressed_beside_the_loop_and_not_overtaken(world: BrokerWorld) -> None:
    worker = LaterWorker()
    world.services.validation.worker = worker
    (replica,) = world.add_topic("t", compression_type="zstd")
    sink = WaitingSink()
    pending = world.send(produce(batch_of(NOISE)), VERSION, sink=sink)
    assert not pending.is_answered
    blocker = pending.context.blocked_by
    assert blocker is not None and blocker.is_holding
    worker.work()
    assert not blocker.is_holding and sink.unblocked_count == 1
    assert results(pending)[0].error_code == 0
    (header,), values = stored(replica)
    assert (header.codec, values) == (ZSTD, [NOISE])


def test_a_small_batch_of_much_is_compressed_beside_the_loop(world: BrokerWorld) -> None:
    worker = LaterWorker()
    world.services.validation.worker = worker
    (replica,) = world.add_topic("t", compression_type="zstd")
    text = bytes(4 << 20)
    batch = batch_of(text, codec=LZ4)
    assert len(batch) < INLINE_BYTES_MAX
    pending = world.send(produce(batch), VERSION)
    worker.work()
    blocker = pending.context.blocked_by
    assert blocker is not None and blocker.is_holding, "it is valid, and not compressed yet"
    assert stored(replica) == ([], [])
    worker.work()
    assert results(pending)[0].error_code == 0
    (header,), values = stored(replica)
    assert (header.codec, values) == (ZSTD, [text])


def test_a_large_batch_that_ends_too_large_is_refused(world: BrokerWorld) -> None:
    worker = LaterWorker()
    world.services.validation.worker = worker
    size = str(len(NOISE) + 200)
    (replica,) = world.add_topic("t", compression_type="uncompressed", max_message_bytes=size)
    text = bytes(8 * len(NOISE))
    pending = world.send(produce(batch_of(NOISE, codec=LZ4), batch_of(text, codec=LZ4)), VERSION)
    while worker.queue:
        worker.work()
    codes = [one.error_code for one in results(pending)]
    assert codes == [0, Error.UNKNOWN_TOPIC_OR_PARTITION]
    refused = world.send(produce(batch_of(NOISE, text, codec=GZIP)), VERSION)
    while worker.queue:
        worker.work()
    assert results(refused)[0].error_code == Error.MESSAGE_TOO_LARGE
    assert len(stored(replica)[0]) == 1


def test_a_time_out_while_it_is_compressed_stores_nothing(world: BrokerWorld) -> None:
    worker = LaterWorker()
    world.services.validation.worker = worker
    (replica,) = world.add_topic("t", compression_type="zstd")
    pending = world.send(produce(batch_of(NOISE), timeout_ms=50), VERSION, sink=Sink())
    world.advance(100)
    assert results(pending)[0].error_code == Error.REQUEST_TIMED_OUT
    worker.work()
    assert stored(replica) == ([], [])


def test_a_batch_that_is_not_read_never_decompresses_on_the_loop(world: BrokerWorld) -> None:
    worker = LaterWorker()
    world.services.validation.worker = worker
    (replica,) = world.add_topic("t", compression_type="gzip", compressed_validation_enable="false")
    text = bytes(4 << 20)
    pending = world.send(produce(batch_of(text, codec=ZSTD)), VERSION)
    assert len(worker.queue) == 1 and stored(replica) == ([], [])
    worker.work()
    assert results(pending)[0].error_code == 0
    assert stored(replica)[1] == [text]
    garbled = batch_of(NOISE[:1_000], codec=ZSTD)
    garbled[HEADER_BYTES:] = NOISE[: len(garbled) - HEADER_BYTES]
    (header,) = iterate_headers(garbled)
    seal(garbled, header)
    pending = world.send(produce(garbled), VERSION)
    worker.work()
    assert results(pending)[0].error_code == Error.INVALID_RECORD, "it would come again"


def test_the_loop_compresses_so_much_of_one_request(world: BrokerWorld) -> None:
    worker = LaterWorker()
    world.services.validation.worker = worker
    count = 2 * ANEW_INLINE_BYTES_MAX // INLINE_BYTES_MAX
    replicas = world.add_topic("t", count, compression_type="gzip")
    batch = batch_of(NOISE[: INLINE_BYTES_MAX - 200])
    pending = world.send(produce(*[batch] * count), VERSION)
    assert len(worker.queue) == count - ANEW_INLINE_BYTES_MAX // len(batch)
    while worker.queue:
        worker.work()
    assert {one.error_code for one in results(pending)} == {0}
    assert all(len(stored(replica)[0]) == 1 for replica in replicas)


def test_what_a_request_takes_with_the_codec_is_bounded(
    world: BrokerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few bytes of zeros may be many where the topic wants them uncompressed."""
    monkeypatch.setattr(batch_validation, "STORED_BYTES_ALLOWED", 350_000)
    (replica,) = world.add_topic("t", compression_type="uncompressed")
    batch = bytes(batch_of(bytes(100_000), codec=ZSTD))
    assert ask_one(world, produce(batch * 3)).error_code == 0
    refused = ask_one(world, produce(batch * 4))
    assert refused.error_code == Error.MESSAGE_TOO_LARGE
    assert "compression.type" in (refused.error_message or "")
    assert len(stored(replica)[0]) == 3


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        (TopicConfig(), None),
        (TopicConfig(compression_type="uncompressed"), Compression(NONE)),
        (TopicConfig(compression_type="gzip"), Compression(GZIP)),
        (TopicConfig(compression_type="gzip", compression_gzip_level=9), Compression(GZIP, 9)),
        (TopicConfig(compression_type="lz4"), Compression(LZ4)),
        (TopicConfig(compression_type="lz4", compression_lz4_level=12), Compression(LZ4, 12)),
        (TopicConfig(compression_type="zstd"), Compression(ZSTD, 3)),
        (TopicConfig(compression_type="zstd", compression_zstd_level=-5), Compression(ZSTD, -5)),
        (TopicConfig(compression_type="snappy"), Compression(SNAPPY)),
    ],
)
def test_the_level_is_the_codecs_own(config: TopicConfig, wanted: Compression | None) -> None:
    assert compression_of(config) == wanted
