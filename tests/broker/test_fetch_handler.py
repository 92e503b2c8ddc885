"""Fetch: many partitions, long polls, bounds, epochs, followers.

Source: KIP-74, KIP-227, KIP-320, KIP-392, KIP-595, KIP-951; kafka-protocol reference 7.2."""

from uuid import UUID

import pytest
from tests.broker.broker_world import OTHER, BrokerWorld, Pending, near_broker

from strandline.model.ids import NO_BROKER
from strandline.protocol.errors import Error
from strandline.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from strandline.records.batch import iterate_headers
from strandline.records.record import decode_records
from strandline.security.session import Session

VERSION = 12
EVERYTHING = 10_000_000


def fetch(
    *offsets: int,
    topic: str = "t",
    max_wait_ms: int = 500,
    min_bytes: int = 1,
    max_bytes: int = EVERYTHING,
    partition_bytes: int = EVERYTHING,
    leader_epoch: int = -1,
    fetched_epoch: int = -1,
) -> FetchRequest:
    """Read the partitions 0, 1, ... from these offsets."""
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[
                    FetchPartition(
                        partition=index,
                        fetch_offset=offset,
                        partition_max_bytes=partition_bytes,
                        current_leader_epoch=leader_epoch,
                        last_fetched_epoch=fetched_epoch,
                    )
                    for index, offset in enumerate(offsets)
                ],
            )
        ],
    )


def parts(pending: Pending) -> list[PartitionData]:
    answer = pending.answer(FetchResponse)
    assert answer.error_code == 0
    assert answer.session_id == 0
    return [one for topic in answer.responses for one in topic.partitions]


def ask_one(world: BrokerWorld, request: FetchRequest, version: int = VERSION) -> PartitionData:
    (one,) = parts(world.send(request, version))
    return one


def values(data: PartitionData) -> list[bytes | None]:
    records = data.records
    assert isinstance(records, memoryview)
    return [
        record.value
        for header in iterate_headers(records)
        for record in decode_records(records, header.position)
    ]


@pytest.mark.parametrize("version", range(4, 13))
def test_records_come_as_they_lie_in_the_log_in_every_version(
    world: BrokerWorld, version: int
) -> None:
    (replica,) = world.add_topic("t")
    replica.write(b"a", b"b")
    replica.lead(epoch=2)
    replica.write(b"c")
    one = ask_one(world, fetch(0), version)
    assert values(one) == [b"a", b"b", b"c"]
    assert (one.high_watermark, one.last_stable_offset) == (3, 3)
    if version >= 5:
        assert one.log_start_offset == 0
    assert one.aborted_transactions is None
    assert values(ask_one(world, fetch(2), version)) == [b"c"]


@pytest.mark.parametrize("version", range(13, 19))
def test_later_versions_name_topics_by_id(world: BrokerWorld, version: int) -> None:
    (replica,) = world.add_topic("t")
    replica.write(b"a")
    request = fetch(0)
    request.topics[0].topic_id = world.cluster.topics["t"].id
    assert values(ask_one(world, request, version)) == [b"a"]
    request.topics[0].topic_id = UUID(int=5)
    assert ask_one(world, request, version).error_code == Error.UNKNOWN_TOPIC_ID


def test_read_committed_names_no_aborted_transactions(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    replica.write(b"a")
    request = fetch(0)
    request.isolation_level = 1
    one = ask_one(world, request)
    assert one.aborted_transactions == []
    assert one.last_stable_offset == 1


def test_a_long_poll_ends_with_the_first_record(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    pending = world.send(fetch(0), VERSION)
    world.advance(300)
    assert not pending.is_answered
    world.run(lambda: replica.write(b"now"))
    assert values(parts(pending)[0]) == [b"now"]
    world.advance(1_000)
    assert len(pending.sink.answered) == 1


def test_a_long_poll_ends_empty_when_its_time_is_over(world: BrokerWorld) -> None:
    world.add_topic("t")
    pending = world.send(fetch(0, max_wait_ms=500), VERSION)
    world.advance(499)
    assert not pending.is_answered
    world.advance(1)
    (one,) = parts(pending)
    assert (one.error_code, one.records, one.high_watermark) == (0, b"", 0)


def test_no_time_to_wait_is_an_answer_at_once(world: BrokerWorld) -> None:
    world.add_topic("t")
    assert ask_one(world, fetch(0, max_wait_ms=0)).records == b""
    assert ask_one(world, fetch(0, min_bytes=0)).records == b""
    assert parts(world.send(fetch(), VERSION)) == []


def test_min_bytes_is_waited_for_over_all_partitions(world: BrokerWorld) -> None:
    first, second = world.add_topic("t", 2)
    pending = world.send(fetch(0, 0, min_bytes=250), VERSION)
    world.run(lambda: first.write(bytes(60)))
    assert not pending.is_answered
    world.run(lambda: second.write(bytes(60)))
    assert [values(one) for one in parts(pending)] == [[bytes(60)], [bytes(60)]]


def test_min_bytes_above_max_bytes_is_not_waited_for(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    replica.write(bytes(2_000))
    assert values(ask_one(world, fetch(0, min_bytes=10_000, max_bytes=1_000))) == [bytes(2_000)]


def test_the_first_batch_comes_however_large_it_is_and_no_second_one(world: BrokerWorld) -> None:
    first, second = world.add_topic("t", 2)
    first.write(bytes(5_000))
    first.write(b"next")
    second.write(bytes(5_000))
    one, two = parts(world.send(fetch(0, 0, max_bytes=100), VERSION))
    assert values(one) == [bytes(5_000)]
    assert two.records == b""
    assert (two.error_code, two.high_watermark) == (0, 1)


def test_partition_max_bytes_bounds_each_partition(world: BrokerWorld) -> None:
    first, second = world.add_topic("t", 2)
    for replica in (first, second):
        for _ in range(5):
            replica.write(bytes(400))
    one, two = parts(world.send(fetch(0, 0, partition_bytes=1_000), VERSION))
    assert (len(values(one)), len(values(two))) == (2, 2)


def test_no_partition_starves_when_the_answer_holds_only_some(world: BrokerWorld) -> None:
    replicas = world.add_topic("t", 4)
    for replica in replicas:
        replica.write(bytes(1_000))
    seen = set()
    for _ in range(4):
        answers = parts(world.send(fetch(0, 0, 0, 0, max_bytes=500), VERSION))
        seen |= {one.partition_index for one in answers if one.records != b""}
    assert seen == {0, 1, 2, 3}


def test_the_brokers_own_bound_holds(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    for _ in range(70):
        replica.write(bytes(1_000_000))
    one = ask_one(world, fetch(0, max_bytes=2**31 - 1, partition_bytes=2**31 - 1))
    assert len(values(one)) == 57


def test_an_error_answers_at_once(world: BrokerWorld) -> None:
    world.add_topic("t")
    request = fetch(0)
    request.topics += fetch(0, topic="none").topics
    fine, missing = parts(world.send(request, VERSION))
    assert (fine.error_code, missing.error_code) == (0, Error.UNKNOWN_TOPIC_OR_PARTITION)
    assert missing.high_watermark == -1


@pytest.mark.parametrize("offset", [-1, -(2**63), 4, 2**62])
def test_offsets_outside_the_log_are_refused(world: BrokerWorld, offset: int) -> None:
    (replica,) = world.add_topic("t")
    replica.write(b"a", b"b", b"c")
    assert ask_one(world, fetch(offset)).error_code == Error.OFFSET_OUT_OF_RANGE


def test_records_that_are_not_committed_are_waited_for(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    replica.write(b"a", b"b")
    replica.high_watermark = type(replica.high_watermark)(0)
    pending = world.send(fetch(1), VERSION)
    world.advance(499)
    assert not pending.is_answered
    world.advance(1)
    assert (parts(pending)[0].error_code, parts(pending)[0].records) == (0, b"")


@pytest.mark.parametrize(
    ("epoch", "code"), [(1, Error.FENCED_LEADER_EPOCH), (2, 0), (3, Error.UNKNOWN_LEADER_EPOCH)]
)
def test_the_clients_leader_epoch_must_be_the_present_one(
    world: BrokerWorld, epoch: int, code: int
) -> None:
    (replica,) = world.add_topic("t")
    replica.lead(epoch=2)
    assert ask_one(world, fetch(0, leader_epoch=epoch, max_wait_ms=0)).error_code == code


def test_a_log_that_parted_from_the_clients_says_where(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    replica.write(b"a", b"b")
    replica.lead(epoch=5)
    replica.write(b"c")
    one = ask_one(world, fetch(2, fetched_epoch=3))
    assert (one.diverging_epoch.epoch, one.diverging_epoch.end_offset) == (1, 2)
    assert one.records == b""
    one = ask_one(world, fetch(3, fetched_epoch=1))
    assert (one.diverging_epoch.epoch, one.diverging_epoch.end_offset) == (1, 2)
    assert values(ask_one(world, fetch(2, fetched_epoch=1))) == [b"c"]


def test_a_leader_without_its_lease_answers_nothing_from_the_past(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    replica.write(b"a")
    replica.can_serve_reads = False
    one = ask_one(world, fetch(0))
    assert one.error_code == Error.NOT_LEADER_OR_FOLLOWER
    assert one.records == b""


def test_a_parked_fetch_hears_of_a_change_of_leadership(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    pending = world.send(fetch(0, leader_epoch=1), VERSION)
    world.run(lambda: replica.follow(OTHER, epoch=2))
    (one,) = parts(pending)
    assert one.error_code == Error.FENCED_LEADER_EPOCH
    assert (one.current_leader.leader_id, one.current_leader.leader_epoch) == (OTHER, 2)


def test_a_parked_fetch_hears_that_its_topic_is_gone(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    pending = world.send(fetch(0), VERSION)
    del world.replication.replicas[replica.group]
    world.run(replica.watchers.notify)
    assert parts(pending)[0].error_code == Error.NOT_LEADER_OR_FOLLOWER


def test_the_wrong_broker_says_who_leads_and_where(world: BrokerWorld) -> None:
    world.add_remote_topic("t")
    request = fetch(0)
    request.topics[0].topic_id = world.cluster.topics["t"].id
    answer = world.ask(request, FetchResponse, 16)
    (one,) = answer.responses[0].partitions
    assert one.error_code == Error.NOT_LEADER_OR_FOLLOWER
    assert (one.current_leader.leader_id, one.current_leader.leader_epoch) == (OTHER, 4)
    (node,) = answer.node_endpoints
    assert (node.node_id, node.host, node.port) == (OTHER, "host-2", 9_002)


def test_the_next_leader_is_named_by_the_clients_network(world: BrokerWorld) -> None:
    world.add_remote_topic("t")
    world.cluster.brokers[OTHER] = near_broker(world.cluster.brokers[OTHER])
    request = fetch(0)
    request.topics[0].topic_id = world.cluster.topics["t"].id
    for host, expected in (("10.1.2.3", "near-2"), ("192.0.2.7", "host-2")):
        world.session = Session(host=host)
        (node,) = world.ask(request, FetchResponse, 16).node_endpoints
        assert (node.node_id, node.host) == (OTHER, expected)


def test_a_follower_serves_what_it_knows_to_be_committed(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    replica.write(b"a", b"b")
    replica.follow(OTHER, epoch=1)
    assert values(ask_one(world, fetch(0, leader_epoch=1), 11)) == [b"a", b"b"]
    assert ask_one(world, fetch(0), 10).error_code == Error.NOT_LEADER_OR_FOLLOWER


def test_a_follower_that_lags_waits_and_never_says_out_of_range(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    replica.write(b"a")
    replica.follow(OTHER, epoch=1)
    pending = world.send(fetch(2), VERSION)
    assert not pending.is_answered
    world.advance(500)
    assert (parts(pending)[0].error_code, parts(pending)[0].records) == (0, b"")


def test_a_follower_that_knows_no_leader_sends_clients_away(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    replica.write(b"a")
    replica.follow(NO_BROKER, epoch=1)
    assert ask_one(world, fetch(0)).error_code == Error.NOT_LEADER_OR_FOLLOWER


def test_a_follower_asks_once_where_the_partition_begins(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    replica.write(b"a")
    replica.follow(OTHER, epoch=1)
    starts = world.replication.log_start_offsets
    starts.are_told = False
    assert ask_one(world, fetch(0)).error_code == Error.NOT_LEADER_OR_FOLLOWER
    starts.are_told = True
    for _ in range(3):
        assert values(ask_one(world, fetch(0))) == [b"a"]
    assert starts.asked == [replica.group] * 2


def test_a_failed_replica_says_so(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    pending = world.send(fetch(0), VERSION)
    replica.failed = OSError(5, "input/output error")
    world.run(replica.watchers.notify)
    assert parts(pending)[0].error_code == Error.KAFKA_STORAGE_ERROR
    assert ask_one(world, fetch(0)).error_code == Error.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize("session", [0, 5])
def test_a_final_full_request_is_answered_with_no_session(world: BrokerWorld, session: int) -> None:
    (replica,) = world.add_topic("t")
    replica.write(b"a")
    request = fetch(0)
    request.session_id, request.session_epoch = session, -1
    assert values(ask_one(world, request)) == [b"a"]


def test_a_hundred_endless_polls_block_nobody_and_go_with_their_clients(
    world: BrokerWorld,
) -> None:
    (quiet,) = world.add_topic("t")
    (busy,) = world.add_topic("u")
    busy.write(b"served")
    parked = [world.send(fetch(0, max_wait_ms=2**31 - 1), VERSION) for _ in range(100)]
    assert values(ask_one(world, fetch(0, topic="u"))) == [b"served"]
    assert len(quiet.watchers.watches) == 100
    for pending in parked:
        pending.context.abandon()
    assert len(quiet.watchers.watches) == 0
    world.run(lambda: quiet.write(b"nobody waits"))
    assert not any(pending.is_answered for pending in parked)


def test_many_changes_in_one_pass_are_looked_at_once(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    pending = world.send(fetch(0, min_bytes=2_000), VERSION)
    before = replica.read_count

    def write_three() -> None:
        for _ in range(3):
            replica.write(bytes(100))

    world.run(write_three)
    assert replica.read_count == before + 1
    assert not pending.is_answered
    pending.context.abandon()
