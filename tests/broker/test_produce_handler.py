"""Produce: each acks level; each refusal with the code on which clients act correctly.

Source: KIP-98, KIP-951, KIP-516; reliability reference 1b (error codes are part of safety)."""

import pytest
from tests.broker.broker_world import (
    NOW_MS,
    OTHER,
    BrokerWorld,
    Pending,
    Sink,
    batch_of,
    near_broker,
)

from strandline.model.ids import NO_BROKER
from strandline.protocol.errors import Error
from strandline.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from strandline.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT, read_header, seal
from strandline.records.codec import GZIP, LZ4, SNAPPY, ZSTD
from strandline.records.record import Record, build_batch, decode_records
from strandline.security.session import Session

VERSION = 9


def produce(
    *batches: bytes | bytearray | None, topic: str = "t", acks: int = -1, timeout_ms: int = 1_000
) -> ProduceRequest:
    """One batch for each of the partitions 0, 1, ..."""
    data = [PartitionProduceData(index=index, records=batch) for index, batch in enumerate(batches)]
    return ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[TopicProduceData(name=topic, partition_data=data)],
    )


def results(pending: Pending) -> list[PartitionProduceResponse]:
    answer = pending.answer(ProduceResponse)
    return [one for topic in answer.responses for one in topic.partition_responses]


def ask_one(
    world: BrokerWorld, request: ProduceRequest, version: int = VERSION
) -> PartitionProduceResponse:
    (result,) = results(world.send(request, version))
    return result


@pytest.mark.parametrize("version", range(3, 13))
def test_batches_are_stamped_in_order_in_every_version(world: BrokerWorld, version: int) -> None:
    (replica,) = world.add_topic("t")
    first = ask_one(world, produce(batch_of(b"a", b"b")), version)
    second = ask_one(world, produce(batch_of(b"c")), version)
    assert (first.error_code, first.base_offset) == (0, 0)
    assert (second.error_code, second.base_offset) == (0, 2)
    data = replica.read(0, 10_000).bytes()  # type: ignore[arg-type]
    header = read_header(data)
    assert header is not None
    assert (header.base_offset, header.partition_leader_epoch) == (0, 1)
    assert [one.value for one in decode_records(data)] == [b"a", b"b"]


def test_version_13_names_topics_by_id(world: BrokerWorld) -> None:
    world.add_topic("t")
    request = produce(batch_of(b"a"))
    request.topic_data[0].topic_id = world.cluster.topics["t"].id
    answer = world.ask(request, ProduceResponse, 13)
    assert answer.responses[0].topic_id == world.cluster.topics["t"].id
    assert answer.responses[0].partition_responses[0].error_code == 0
    request.topic_data[0].topic_id = type(answer.responses[0].topic_id)(int=9)
    assert ask_one(world, request, 13).error_code == Error.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("codec", [0, GZIP, SNAPPY, LZ4, ZSTD])
def test_every_codec_is_kept_as_it_came(world: BrokerWorld, codec: int) -> None:
    (replica,) = world.add_topic("t")
    batch = batch_of(b"x" * 500, b"y", codec=codec)
    assert ask_one(world, produce(batch)).error_code == 0
    stored = replica.read(0, 10_000).bytes()  # type: ignore[arg-type]
    assert stored[17:] == bytes(batch)[17:]


def test_acks_all_is_answered_on_commit_and_acks_one_on_append(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    replica.commits_at_once = False
    waiting = world.send(produce(batch_of(b"a"), acks=-1), VERSION)
    assert not waiting.is_answered
    world.run(replica.commit)
    assert results(waiting)[0].error_code == 0
    assert replica.acks_seen == [-1]


def test_a_request_waits_for_all_its_partitions(world: BrokerWorld) -> None:
    first, second = world.add_topic("t", 2)
    first.commits_at_once = second.commits_at_once = False
    pending = world.send(produce(batch_of(b"a"), batch_of(b"b")), VERSION)
    world.run(second.commit)
    assert not pending.is_answered
    world.run(first.commit)
    assert [one.error_code for one in results(pending)] == [0, 0]


@pytest.mark.parametrize("version", [3, 7, 8, 9, 12])
def test_every_topic_is_answered_also_one_without_a_partition(
    world: BrokerWorld, version: int
) -> None:
    world.add_topic("t")
    world.add_topic("u")
    request = produce(batch_of(b"a"), topic="u")
    request.topic_data.insert(0, TopicProduceData(name="t"))
    answer = world.ask(request, ProduceResponse, version)
    told = [(topic.name, len(topic.partition_responses)) for topic in answer.responses]
    assert told == [("t", 0), ("u", 1)]


def test_a_quorum_that_does_not_come_is_a_time_out_for_what_is_missing(world: BrokerWorld) -> None:
    first, second = world.add_topic("t", 2)
    second.commits_at_once = False
    pending = world.send(produce(batch_of(b"a"), batch_of(b"b"), timeout_ms=500), VERSION)
    world.advance(450)
    assert not pending.is_answered
    world.advance(300)
    assert [one.error_code for one in results(pending)] == [0, Error.REQUEST_TIMED_OUT]
    assert [one.base_offset for one in results(pending)] == [0, -1]
    world.run(second.commit)
    assert len(pending.sink.answered) == 1
    assert len(world.services.deadlines) == 0
    assert first.log_end_offset == second.log_end_offset == 1


def test_acks_zero_has_no_answer_and_an_error_closes(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    sink = Sink()
    quiet = world.send(produce(batch_of(b"a"), acks=0), VERSION, sink=sink)
    assert quiet.is_answered
    assert quiet.context.parts == ()
    assert sink.closed == []
    assert replica.log_end_offset == 1
    world.send(produce(batch_of(b"a"), topic="none", acks=0), VERSION, sink=sink)
    assert len(sink.closed) == 1
    assert "acks=0 failed" in sink.closed[0]


@pytest.mark.parametrize("acks", [2, -2, 32_767])
def test_acks_of_another_kind_are_refused(world: BrokerWorld, acks: int) -> None:
    (replica,) = world.add_topic("t")
    result = ask_one(world, produce(batch_of(b"a"), acks=acks))
    assert result.error_code == Error.INVALID_REQUIRED_ACKS
    assert replica.log_end_offset == 0


@pytest.mark.parametrize(
    ("wanted", "in_sync", "acks", "code"),
    [
        (3, 3, -1, 0),
        (3, 2, -1, Error.NOT_ENOUGH_REPLICAS),
        (5, 2, -1, Error.NOT_ENOUGH_REPLICAS),
        (3, 2, 1, 0),
        (2, 1, -1, 0),
    ],
)
def test_fewer_in_sync_than_the_topic_asks_for_is_told_before_anything_is_appended(
    world: BrokerWorld, wanted: int, in_sync: int, acks: int, code: int
) -> None:
    (replica,) = world.add_topic("t", min_insync_replicas=str(wanted))
    replica.in_sync_now = replica.in_sync_now[:in_sync]
    assert ask_one(world, produce(batch_of(b"a"), acks=acks)).error_code == code
    assert replica.log_end_offset == (0 if code else 1)


OF_THE_LOG = frozenset({"batch without records", "control batch", "codec", "in the future"})
"""Refusals that tell where the log begins, as Kafka's do: all but those before a log is found."""


def broken(batch: bytearray, position: int, value: int) -> bytearray:
    copy = bytearray(batch)
    copy[position] = value
    return copy


def of_codec(codec: int) -> bytearray:
    """A sound batch that claims to be compressed so."""
    batch = broken(batch_of(b"a"), 22, codec)
    header = read_header(batch)
    assert header is not None
    seal(batch, header)
    return batch


def empty_batch() -> bytearray:
    return build_batch([])


@pytest.mark.parametrize(
    ("what", "batch", "code"),
    [
        ("no records", None, Error.INVALID_RECORD),
        ("empty", b"", Error.INVALID_RECORD),
        ("crc", broken(batch_of(b"abc"), 66, 0xFF), Error.CORRUPT_MESSAGE),
        ("cut", batch_of(b"abc")[:-1], Error.INVALID_RECORD),
        ("old magic", broken(batch_of(b"abc"), 16, 1), Error.INVALID_RECORD),
        ("second batch broken", batch_of(b"a") + batch_of(b"b")[:-2], Error.INVALID_RECORD),
        ("batch without records", empty_batch(), Error.INVALID_RECORD),
        ("control batch", batch_of(b"a", attributes=CONTROL_BIT), Error.INVALID_RECORD),
        ("codec", of_codec(5), Error.UNSUPPORTED_COMPRESSION_TYPE),
        ("too large", batch_of(bytes(1_100_000)), Error.MESSAGE_TOO_LARGE),
        (
            "transaction",
            batch_of(
                b"a",
                attributes=TRANSACTIONAL_BIT,
                producer_id=1,
                producer_epoch=0,
                base_sequence=0,
            ),
            Error.INVALID_TXN_STATE,
        ),
        ("in the future", batch_of(b"a", timestamp=NOW_MS + 3_700_000), Error.INVALID_TIMESTAMP),
    ],
)
def test_a_bad_batch_is_refused_alone_and_nothing_is_stored(
    world: BrokerWorld, what: str, batch: bytes | bytearray | None, code: Error
) -> None:
    bad, good = world.add_topic("t", 2)
    pending = world.send(produce(batch, batch_of(b"fine")), VERSION)
    assert [one.error_code for one in results(pending)] == [code, 0]
    assert results(pending)[0].base_offset == -1
    assert (results(pending)[0].log_start_offset == 0) is (what in OF_THE_LOG)
    assert (bad.log_end_offset, good.log_end_offset) == (0, 1)


def test_zstd_needs_version_7(world: BrokerWorld) -> None:
    world.add_topic("t")
    batch = batch_of(b"x" * 100, codec=ZSTD)
    assert ask_one(world, produce(batch), 6).error_code == Error.UNSUPPORTED_COMPRESSION_TYPE
    assert ask_one(world, produce(batch), 7).error_code == 0


def test_max_message_bytes_is_the_topics(world: BrokerWorld) -> None:
    world.add_topic("t", max_message_bytes="200")
    result = ask_one(world, produce(batch_of(bytes(300))))
    assert result.error_code == Error.MESSAGE_TOO_LARGE
    assert "max.message.bytes is 200" in (result.error_message or "")
    world.cluster.topics["t"].configs["max.message.bytes"] = "1000"
    world.cluster.version += 1
    assert ask_one(world, produce(batch_of(bytes(300)))).error_code == 0


def test_log_append_time_is_the_leaders(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t", message_timestamp_type="LogAppendTime")
    world.advance(5_000)
    result = ask_one(world, produce(batch_of(b"a", timestamp=5)))
    assert (result.error_code, result.log_append_time_ms) == (0, NOW_MS + 5_000)
    header = read_header(replica.read(0, 10_000).bytes())  # type: ignore[arg-type]
    assert header is not None
    assert header.has_append_time
    assert header.max_timestamp == NOW_MS + 5_000


def test_a_compacted_topic_needs_keys(world: BrokerWorld) -> None:
    world.add_topic("t", cleanup_policy="compact")
    keyless = build_batch([Record(timestamp=NOW_MS, value=b"v")])
    assert ask_one(world, produce(keyless)).error_code == Error.INVALID_RECORD
    assert ask_one(world, produce(batch_of(b"a"))).error_code == 0


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        ("none", Error.UNKNOWN_TOPIC_OR_PARTITION),
        ("../../etc/passwd", Error.UNKNOWN_TOPIC_OR_PARTITION),
        ("a/b", Error.UNKNOWN_TOPIC_OR_PARTITION),
        ("__consumer_offsets", Error.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_topics_that_cannot_be_written_to_are_refused(
    world: BrokerWorld, topic: str, code: Error
) -> None:
    world.add_topic("__consumer_offsets")
    assert ask_one(world, produce(batch_of(b"a"), topic=topic)).error_code == code


@pytest.mark.parametrize("index", [-1, 1, 2**31 - 1])
def test_a_partition_that_is_not_there_is_refused(world: BrokerWorld, index: int) -> None:
    world.add_topic("t")
    request = produce(batch_of(b"a"))
    request.topic_data[0].partition_data[0].index = index
    result = ask_one(world, request)
    assert (result.index, result.error_code) == (index, Error.UNKNOWN_TOPIC_OR_PARTITION)


def test_the_wrong_broker_says_who_leads_and_where(world: BrokerWorld) -> None:
    world.add_remote_topic("elsewhere")
    (replica,) = world.add_topic("t")
    replica.follow(OTHER, epoch=7)
    for topic, epoch in (("elsewhere", 4), ("t", 7)):
        answer = world.ask(produce(batch_of(b"a"), topic=topic), ProduceResponse, 10)
        (result,) = answer.responses[0].partition_responses
        assert result.error_code == Error.NOT_LEADER_OR_FOLLOWER
        assert result.current_leader.leader_id == OTHER
        assert result.current_leader.leader_epoch == epoch
        (node,) = answer.node_endpoints
        assert (node.node_id, node.host, node.port, node.rack) == (OTHER, "host-2", 9_002, "west")


def test_the_next_leader_is_named_by_the_clients_network(world: BrokerWorld) -> None:
    world.add_remote_topic("t")
    world.cluster.brokers[OTHER] = near_broker(world.cluster.brokers[OTHER])
    for host, expected in (("10.1.2.3", "near-2"), ("192.0.2.7", "host-2")):
        world.session = Session(host=host)
        (node,) = world.ask(produce(batch_of(b"a")), ProduceResponse, 10).node_endpoints
        assert (node.node_id, node.host) == (OTHER, expected)


def test_nobody_is_named_while_no_living_leader_is_known(world: BrokerWorld) -> None:
    world.add_remote_topic("t")
    world.replication.silent.add(OTHER)
    answer = world.ask(produce(batch_of(b"a")), ProduceResponse, 10)
    (result,) = answer.responses[0].partition_responses
    assert result.error_code == Error.NOT_LEADER_OR_FOLLOWER
    assert result.current_leader.leader_id == NO_BROKER
    assert answer.node_endpoints == []


def test_a_replica_whose_disk_failed_says_so(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    replica.failed = OSError(5, "input/output error")
    assert ask_one(world, produce(batch_of(b"a"))).error_code == Error.KAFKA_STORAGE_ERROR


def test_a_client_that_went_away_is_not_answered(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    replica.commits_at_once = False
    pending = world.send(produce(batch_of(b"a")), VERSION)
    pending.context.abandon()
    world.run(replica.commit)
    assert pending.sink.answered == []
    assert len(world.services.deadlines) == 0


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_a_request_that_its_partition_holds_says_so_to_its_connection(
    world: BrokerWorld, acks: int
) -> None:
    """Design section 5: "the broker stops reading that producer's socket: back-pressure at every
    acks level"."""
    (replica,) = world.add_topic("t")
    replica.commits_at_once = False
    request = produce(batch_of(b"a"), acks=acks)
    assert world.send(request, VERSION).context.blocked_by is None
    replica.is_holding = True
    assert world.send(request, VERSION).context.blocked_by is replica
