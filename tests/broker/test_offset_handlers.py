"""ListOffsets, OffsetForLeaderEpoch and InitProducerId.

Source: spark reference 2 (ListOffsets is hot); kafka-peer reference (stale reads); KIP-320."""

import pytest
from tests.broker.broker_world import NOW_MS, OTHER, BrokerWorld

from strandline.controller.commands import ProducerIds, Refused
from strandline.protocol.errors import Error
from strandline.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from strandline.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from strandline.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

LATEST, EARLIEST, GREATEST, LOCAL, TIERED, PENDING = -1, -2, -3, -4, -5, -6


def list_one(
    world: BrokerWorld,
    timestamp: int,
    *,
    topic: str = "t",
    version: int = 9,
    leader_epoch: int = -1,
    index: int = 0,
) -> ListOffsetsPartitionResponse:
    request = question(timestamp, topic=topic, leader_epoch=leader_epoch, index=index)
    answer = world.ask(request, ListOffsetsResponse, version)
    assert answer.topics[0].name == topic
    return only(answer, index=index)


def question(
    timestamp: int, *, topic: str = "t", leader_epoch: int = -1, index: int = 0
) -> ListOffsetsRequest:
    asked = ListOffsetsPartition(
        partition_index=index, timestamp=timestamp, current_leader_epoch=leader_epoch
    )
    return ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[asked])]
    )


def only(answer: ListOffsetsResponse, *, index: int = 0) -> ListOffsetsPartitionResponse:
    (one,) = answer.topics[0].partitions
    assert one.partition_index == index
    return one


@pytest.mark.parametrize("version", range(1, 12))
def test_the_ends_are_numbers_in_memory_in_every_version(world: BrokerWorld, version: int) -> None:
    (replica,) = world.add_topic("t")
    replica.write(b"a", b"b")
    latest = list_one(world, LATEST, version=version)
    earliest = list_one(world, EARLIEST, version=version)
    assert (latest.offset, latest.timestamp, latest.error_code) == (2, -1, 0)
    assert (earliest.offset, earliest.timestamp, earliest.error_code) == (0, -1, 0)
    if version >= 4:
        assert (latest.leader_epoch, earliest.leader_epoch) == (1, 1)
    assert replica.read_count == 0


def test_latest_is_the_high_watermark_and_not_the_end_of_the_log(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    replica.write(b"a", b"b")
    replica.high_watermark = type(replica.high_watermark)(1)
    assert list_one(world, LATEST).offset == 1


def test_the_first_record_at_or_after_a_time_is_found(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    replica.write(b"a", timestamp=NOW_MS)
    replica.write(b"b", timestamp=NOW_MS + 10)
    replica.lead(epoch=3)
    replica.write(b"c", timestamp=NOW_MS + 20)
    for asked, found in ((0, (NOW_MS, 0, 1)), (NOW_MS + 11, (NOW_MS + 20, 2, 3))):
        one = list_one(world, asked)
        assert (one.timestamp, one.offset, one.leader_epoch) == found
    beyond = list_one(world, NOW_MS + 21)
    assert (beyond.error_code, beyond.timestamp, beyond.offset) == (0, -1, -1)
    greatest = list_one(world, GREATEST)
    assert (greatest.timestamp, greatest.offset) == (NOW_MS + 20, 2)
    replica.high_watermark = type(replica.high_watermark)(2)
    assert list_one(world, NOW_MS + 11).offset == -1
    assert list_one(world, GREATEST).offset == -1


def test_tiered_storage_holds_nothing_and_the_local_start_is_the_start(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    replica.write(b"a")
    assert list_one(world, LOCAL).offset == 0
    for kind in (TIERED, PENDING):
        one = list_one(world, kind, version=11)
        assert (one.error_code, one.offset, one.leader_epoch) == (0, -1, -1)
    assert list_one(world, -7).error_code == Error.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("kind", "since"),
    [(LATEST, 1), (GREATEST, 7), (LOCAL, 8), (TIERED, 9), (PENDING, 11), (-7, 12)],
)
def test_what_stands_for_a_time_is_known_since_its_version(
    world: BrokerWorld, kind: int, since: int
) -> None:
    (replica,) = world.add_topic("t")
    replica.write(b"a")
    for version in range(1, 12):
        code = list_one(world, kind, version=version).error_code
        assert code == (0 if version >= since else Error.UNSUPPORTED_VERSION), version


def test_an_empty_log_begins_and_ends_at_the_same_offset(world: BrokerWorld) -> None:
    world.add_topic("t")
    assert [list_one(world, kind).offset for kind in (LATEST, EARLIEST)] == [0, 0]
    assert [list_one(world, kind).offset for kind in (GREATEST, 0)] == [-1, -1]


@pytest.mark.parametrize(
    ("version", "code"), [(4, Error.LEADER_NOT_AVAILABLE), (5, Error.OFFSET_NOT_AVAILABLE)]
)
def test_a_leader_without_its_lease_does_not_answer_from_the_past(
    world: BrokerWorld, version: int, code: Error
) -> None:
    (replica,) = world.add_topic("t")
    replica.can_serve_reads = False
    asked = world.send(question(LATEST), version)
    world.advance(world.services.config.replication.election_timeout_ms + 100)
    one = only(asked.answer(ListOffsetsResponse))
    assert (one.error_code, one.offset) == (code, -1)


def test_a_leader_that_has_its_lease_again_soon_answers_then(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    replica.write(b"a")
    replica.can_serve_reads = False
    asked = world.send(question(LATEST), 9)
    world.advance(world.services.config.replication.election_timeout_ms // 2)
    assert not asked.is_answered
    replica.write(b"b")
    replica.can_serve_reads = True
    world.advance(world.services.config.replication.heartbeat_interval_ms)
    one = only(asked.answer(ListOffsetsResponse))
    assert (one.error_code, one.offset) == (Error.NONE, 2)


def test_a_leader_that_is_deposed_meanwhile_says_so(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    replica.can_serve_reads = False
    asked = world.send(question(LATEST), 9)
    replica.follow(OTHER, epoch=2)
    world.advance(world.services.config.replication.heartbeat_interval_ms)
    one = only(asked.answer(ListOffsetsResponse))
    assert one.error_code == Error.NOT_LEADER_OR_FOLLOWER


def test_who_leaves_while_the_lease_is_missing_is_forgotten(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    replica.can_serve_reads = False
    asked = world.send(question(LATEST), 9)
    asked.context.abandon()
    replica.can_serve_reads = True
    world.advance(world.services.config.replication.election_timeout_ms + 100)
    assert not asked.is_answered


def test_only_the_leader_in_the_present_epoch_answers(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    world.add_remote_topic("elsewhere")
    replica.lead(epoch=2)
    assert list_one(world, LATEST, leader_epoch=1).error_code == Error.FENCED_LEADER_EPOCH
    assert list_one(world, LATEST, leader_epoch=3).error_code == Error.UNKNOWN_LEADER_EPOCH
    assert list_one(world, LATEST, leader_epoch=2).error_code == 0
    replica.follow(OTHER, epoch=3)
    for topic in ("t", "elsewhere"):
        assert list_one(world, LATEST, topic=topic).error_code == Error.NOT_LEADER_OR_FOLLOWER
    for topic, index in (("none", 0), ("t", 1), ("t", -1)):
        one = list_one(world, LATEST, topic=topic, index=index)
        assert one.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION


def end_of(world: BrokerWorld, epoch: int, *, leader_epoch: int = -1) -> EpochEndOffset:
    asked = OffsetForLeaderPartition(
        partition=0, current_leader_epoch=leader_epoch, leader_epoch=epoch
    )
    request = OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderTopic(topic="t", partitions=[asked])]
    )
    answer = world.ask(request, OffsetForLeaderEpochResponse, 4)
    return answer.topics[0].partitions[0]


def test_no_epoch_has_no_end(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    replica.write(b"a")
    none = end_of(world, -1)
    assert (none.error_code, none.leader_epoch, none.end_offset) == (0, -1, -1)


def test_where_an_epoch_ended_is_known(world: BrokerWorld) -> None:
    assert end_of(world, 1).error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    (replica,) = world.add_topic("t")
    replica.write(b"a", b"b")
    replica.lead(epoch=4)
    replica.write(b"c")
    for epoch, found in ((1, (1, 2)), (2, (1, 2)), (4, (4, 3))):
        one = end_of(world, epoch)
        assert (one.error_code, one.leader_epoch, one.end_offset) == (0, *found)
    one = end_of(world, 9)
    assert (one.error_code, one.leader_epoch, one.end_offset) == (0, -1, -1)
    assert end_of(world, 1, leader_epoch=2).error_code == Error.FENCED_LEADER_EPOCH
    replica.can_serve_reads = False
    assert end_of(world, 1).error_code == Error.NOT_LEADER_OR_FOLLOWER


def test_producer_ids_come_from_blocks_and_never_twice(world: BrokerWorld) -> None:
    world.controller.answers += [ProducerIds(first=0, count=2), ProducerIds(first=5_000, count=2)]
    request = InitProducerIdRequest(transactional_id=None, producer_id=7, producer_epoch=3)
    got = [world.ask(request, InitProducerIdResponse, 4) for _ in range(4)]
    assert [one.producer_id for one in got] == [0, 1, 5_000, 5_001]
    assert [(one.producer_epoch, one.error_code) for one in got] == [(0, 0)] * 4
    assert len(world.controller.commands) == 2


def test_many_producers_at_once_share_one_block(world: BrokerWorld) -> None:
    world.controller.answers.append(ProducerIds(first=10, count=100))
    request = InitProducerIdRequest(transactional_id=None)
    pending = [world.send(request, 4) for _ in range(20)]
    world.advance(0)
    got = [one.answer(InitProducerIdResponse).producer_id for one in pending]
    assert got == list(range(10, 30))


def test_an_unreachable_controller_is_the_clients_to_retry(world: BrokerWorld) -> None:
    world.controller.answers.append(Refused(Error.COORDINATOR_NOT_AVAILABLE))
    answer = world.ask(InitProducerIdRequest(transactional_id=None), InitProducerIdResponse, 4)
    assert (answer.error_code, answer.producer_id) == (Error.COORDINATOR_NOT_AVAILABLE, -1)


@pytest.mark.parametrize(
    "request_",
    [
        InitProducerIdRequest(transactional_id=""),
        InitProducerIdRequest(transactional_id=None, producer_epoch=3),
        InitProducerIdRequest(transactional_id=None, producer_id=9),
    ],
)
def test_half_an_identity_is_refused(world: BrokerWorld, request_: InitProducerIdRequest) -> None:
    answer = world.ask(request_, InitProducerIdResponse, 4)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (
        Error.INVALID_REQUEST,
        -1,
        -1,
    )


def test_transactions_are_refused_for_good(world: BrokerWorld) -> None:
    answer = world.ask(InitProducerIdRequest(transactional_id="tx"), InitProducerIdResponse, 4)
    assert (answer.error_code, answer.producer_id) == (Error.UNSUPPORTED_VERSION, -1)
    assert not Error.UNSUPPORTED_VERSION.retriable
