"""Idempotent producers, as the cluster sees them: unknown ones, wrapping sequences, elections.

Source: KIP-98, KIP-360; decision 0043."""

from collections.abc import Iterator

import pytest
from tests.broker.broker_world import Pending, batch_of
from tests.broker.cluster_world import ClusterWorld, three_brokers
from tests.broker.test_broker_in_a_cluster import delete, fetch, produce, set_config
from tests.broker.test_delete_records import delete as delete_records
from tests.broker.test_produced_contents import LaterWorker

from strandline.broker.server.batch_validation import SCRATCH_BYTES
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error
from strandline.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from strandline.records.codec import ZSTD
from strandline.replication.leader import appender
from strandline.replication.leader.unknown_producers import WAIT_MS
from strandline.storage.producers.producers import SEQUENCE_COUNT

LAST = SEQUENCE_COUNT - 1
OUT_OF_ORDER = Error.OUT_OF_ORDER_SEQUENCE_NUMBER
PRODUCER = 7


@pytest.fixture(scope="module")
def shared() -> Iterator[ClusterWorld]:
    """Three brokers, for tests that use topics of their own and leave all brokers up."""
    with three_brokers() as world:
        yield world


def send(
    world: ClusterWorld, topic: str, sequence: int, count: int = 1, *, epoch: int = 0
) -> tuple[int, int]:
    """One batch of the producer; (error code, base offset)."""
    values = [b"%d" % ((sequence + at) % SEQUENCE_COUNT) for at in range(count)]
    answer = produce(
        world,
        topic,
        *values,
        producer_id=PRODUCER,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
    return answer.error_code, answer.base_offset


def sending(world: ClusterWorld, topic: str, sequence: int, count: int = 1) -> Pending:
    """The same, on its way."""
    leader = world.leader_of(topic)
    data = PartitionProduceData(
        records=batch_of(
            *(b"%d" % (sequence + at) for at in range(count)),
            timestamp=world.broker(leader).services.clock.wall_ms(),
            producer_id=PRODUCER,
            producer_epoch=0,
            base_sequence=sequence,
        )
    )
    request = ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )
    return world.send(leader, request, 9)


def answer_of(pending: Pending) -> tuple[int, int]:
    (partition,) = pending.answer(ProduceResponse).responses[0].partition_responses
    return partition.error_code, partition.base_offset


def move_leader(world: ClusterWorld, topic: str) -> int:
    """Let another replica lead; returns it."""
    before = world.leader_of(topic)
    to = next(one for one in world.replicas_of(topic) if one != before)
    replica = world.replicas_of(topic)[before]
    process = world.hosts[before].process
    assert process is not None
    process.run_now(lambda: replica.transfer_leadership(BrokerId(to)))
    world.until(lambda: world.leader_of(topic) == to)
    return to


def test_a_topic_made_again_takes_a_producer_where_it_is(shared: ClusterWorld) -> None:
    shared.create_topic("again")
    assert [send(shared, "again", sequence)[0] for sequence in range(3)] == [0, 0, 0]
    delete(shared, "again")
    shared.until(lambda: not shared.replicas_of("again"))
    shared.create_topic("again")
    assert send(shared, "again", 3, 2) == (0, 0)
    assert send(shared, "again", 3, 2) == (0, 0)
    assert send(shared, "again", 5) == (0, 2)
    assert send(shared, "again", 7) == (OUT_OF_ORDER, -1)
    assert fetch(shared, "again") == [b"3", b"4", b"5"]


def test_what_overtakes_an_earlier_batch_in_a_new_topic_waits_for_it(
    shared: ClusterWorld,
) -> None:
    """The earlier ones met a broker that did not know the topic yet, and come again."""
    shared.create_topic("overtaken")
    late = [sending(shared, "overtaken", sequence) for sequence in (4, 6)]
    shared.advance(100)
    late.insert(0, sending(shared, "overtaken", 2, 2))
    shared.advance(100)
    late.append(sending(shared, "overtaken", 7))
    assert not any(one.is_answered for one in late)
    assert send(shared, "overtaken", 0, 2) == (0, 0)
    shared.advance(100)
    out_of_order = (OUT_OF_ORDER, -1)
    assert [answer_of(one) for one in late] == [(0, 2), (0, 4), out_of_order, out_of_order]
    assert [send(shared, "overtaken", sequence) for sequence in (5, 6)] == [(0, 5), (0, 6)]
    assert fetch(shared, "overtaken") == [b"0", b"1", b"2", b"3", b"4", b"5", b"6"]


def test_what_waits_goes_on_in_the_order_of_its_sequences(shared: ClusterWorld) -> None:
    """Two batches that the last one overtook come again, one after the other."""
    shared.create_topic("sorted")
    late = {sequence: sending(shared, "sorted", sequence) for sequence in (7, 5, 6, 8)}
    shared.advance(10)
    assert send(shared, "sorted", 0, 5) == (0, 0)
    shared.advance(100)
    assert {sequence: answer_of(one) for sequence, one in late.items()} == {
        5: (0, 5),
        6: (0, 6),
        7: (0, 7),
        8: (0, 8),
    }


def test_what_is_behind_a_batch_that_timed_out_before_it_was_stored_is_not_out_of_order(
    cluster: ClusterWorld,
) -> None:
    """librdkafka would begin a new epoch, and write again what it has no answer for."""
    cluster.create_topic("late")
    leader = cluster.leader_of("late")
    worker = LaterWorker()
    cluster.broker(leader).services.validation.worker = worker
    assert send(cluster, "late", 0) == (0, 0)
    batch = batch_of(
        bytes(2 * SCRATCH_BYTES),
        codec=ZSTD,
        timestamp=cluster.broker(leader).services.clock.wall_ms(),
        producer_id=PRODUCER,
        producer_epoch=0,
        base_sequence=1,
    )
    data = [PartitionProduceData(records=batch)]
    topics = [TopicProduceData(name="late", partition_data=data)]
    request = ProduceRequest(acks=-1, timeout_ms=200, topic_data=topics)
    first = cluster.send(leader, request, 9)
    cluster.advance(1_000)
    assert answer_of(first) == (Error.REQUEST_TIMED_OUT, -1)
    assert send(cluster, "late", 2) == (Error.REQUEST_TIMED_OUT, -1)
    process = cluster.hosts[leader].process
    assert process is not None
    process.run_now(worker.work)
    assert [send(cluster, "late", sequence) for sequence in (1, 2)] == [(0, 1), (0, 2)]


def test_what_waits_for_an_earlier_batch_goes_on_alone_or_is_refused_with_its_leader(
    shared: ClusterWorld,
) -> None:
    shared.create_topic("alone")
    begun_us = shared.scheduler.now_us
    late = [sending(shared, "alone", sequence) for sequence in (4, 3, 5)]
    shared.until(lambda: all(one.is_answered for one in late))
    waited_ms = (shared.scheduler.now_us - begun_us) // 1_000
    assert WAIT_MS <= waited_ms < WAIT_MS + 100
    assert [answer_of(one) for one in late] == [(0, 1), (0, 0), (0, 2)]
    shared.create_topic("moves")
    leader = shared.replicas_of("moves")[shared.leader_of("moves")]
    late = [sending(shared, "moves", sequence) for sequence in (4, 5)]
    shared.advance(10)
    assert leader.shared.memory.used_bytes > 0
    move_leader(shared, "moves")
    assert {answer_of(one)[0] for one in late} == {Error.NOT_LEADER_OR_FOLLOWER}
    assert leader.shared.memory.used_bytes == 0


def test_sequences_wrap_inside_a_batch_and_repetitions_are_known_wherever_it_leads(
    shared: ClusterWorld,
) -> None:
    shared.create_topic("wrap")
    assert send(shared, "wrap", LAST - 2, 2) == (0, 0)
    assert send(shared, "wrap", LAST, 4) == (0, 2)
    for _ in range(3):
        assert send(shared, "wrap", LAST - 2, 2) == (0, 0)
        assert send(shared, "wrap", LAST, 4) == (0, 2)
        assert send(shared, "wrap", 4) == (OUT_OF_ORDER, -1)
        move_leader(shared, "wrap")
    assert send(shared, "wrap", 3) == (0, 6)


def test_sequences_wrap_between_batches(shared: ClusterWorld) -> None:
    shared.create_topic("between")
    assert send(shared, "between", LAST) == (0, 0)
    assert send(shared, "between", 1) == (OUT_OF_ORDER, -1)
    assert send(shared, "between", 0) == (0, 1)


def test_a_wrapped_batch_is_known_after_the_loss_of_power(cluster: ClusterWorld) -> None:
    cluster.create_topic("wrap")
    assert send(cluster, "wrap", LAST, 3) == (0, 0)
    cluster.lose_power()
    cluster.until(lambda: bool(cluster.leader_of("wrap")))
    assert send(cluster, "wrap", LAST, 3) == (0, 0)
    assert send(cluster, "wrap", 2) == (0, 3)


def test_a_later_epoch_begins_at_zero(shared: ClusterWorld) -> None:
    shared.create_topic("epochs")
    assert send(shared, "epochs", 5) == (0, 0)
    assert send(shared, "epochs", 6, epoch=1) == (OUT_OF_ORDER, -1)
    assert send(shared, "epochs", 0, epoch=1) == (0, 1)
    assert send(shared, "epochs", 6) == (Error.INVALID_PRODUCER_EPOCH, -1)


def test_a_producer_that_was_forgotten_goes_on(shared: ClusterWorld) -> None:
    """Its records are gone, and the segments with them."""
    shared.create_topic("gone")
    set_config(shared, "gone", "segment.ms", "1000")
    assert [send(shared, "gone", sequence)[0] for sequence in range(3)] == [0, 0, 0]
    shared.advance(3_000)
    assert produce(shared, "gone", b"another's").error_code == 0
    assert delete_records(shared, 3, topic="gone").error_code == 0
    shared.until(lambda: shared.replicas_of("gone")[shared.leader_of("gone")].log.start_offset == 3)
    leader = move_leader(shared, "gone")
    for replica in shared.replicas_of("gone").values():
        replica.log.producers.expire(1 << 60)
    assert shared.replicas_of("gone")[leader].log.producers.get(PRODUCER) is None
    assert send(shared, "gone", 3) == (0, 4)


def test_after_an_election_the_first_batch_of_an_unknown_producer_may_have_overtaken_others(
    shared: ClusterWorld,
) -> None:
    """The log is whole, so no earlier batch was committed: the earlier leader may have lost it."""
    shared.create_topic("election")
    move_leader(shared, "election")
    refused = (Error.NOT_LEADER_OR_FOLLOWER, -1)
    # 0 was sent to the earlier leader; 2 and 3 overtake it.
    assert send(shared, "election", 2) == refused
    assert send(shared, "election", 3) == refused
    assert send(shared, "election", 0, 2) == (0, 0)
    assert [send(shared, "election", sequence) for sequence in (2, 3)] == [(0, 2), (0, 3)]
    assert fetch(shared, "election") == [b"0", b"1", b"2", b"3"]


def test_so_many_refused_producers_are_remembered(
    shared: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(appender, "REFUSED_COUNT_MAX", 2)
    shared.create_topic("many")
    move_leader(shared, "many")
    codes = [
        produce(
            shared, "many", b"v", producer_id=producer, producer_epoch=0, base_sequence=2
        ).error_code
        for producer in (11, 12, 13, 13, 12, 11)
    ]
    refused = Error.NOT_LEADER_OR_FOLLOWER
    assert codes == [refused, refused, refused, 0, 0, refused], "the oldest one is forgotten"


def test_after_an_election_an_unknown_producer_goes_on_at_its_second_attempt(
    shared: ClusterWorld,
) -> None:
    shared.create_topic("second")
    move_leader(shared, "second")
    refused = (Error.NOT_LEADER_OR_FOLLOWER, -1)
    assert send(shared, "second", 5) == refused
    assert send(shared, "second", 6) == refused
    assert send(shared, "second", 3) == refused  # An earlier one than the first refused one.
    assert send(shared, "second", 5) == refused
    assert send(shared, "second", 3, 2) == (0, 0)
    assert [send(shared, "second", sequence) for sequence in (5, 6)] == [(0, 2), (0, 3)]
