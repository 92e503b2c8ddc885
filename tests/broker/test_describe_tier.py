"""Leaders tell what buckets hold; only what is certain is told to a collector of orphans."""

from collections.abc import Iterator
from uuid import UUID

import pytest
from tests.broker.cluster_world import ClusterWorld, three_brokers
from tests.broker.tiering_world import (
    BUCKET,
    enable,
    leader,
    retire,
    until_same,
    upload,
    write_segments,
)

from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_tier import (
    DescribeTierRequest,
    DescribeTierResponse,
)
from strandline.tiered.state.commands import Checkpoint
from strandline.tiered.state.encoding import decode

BROKERS = (1, 2, 3)


@pytest.fixture
def world() -> Iterator[ClusterWorld]:
    """Topic t with three closed segments of ten records, two of them in a bucket."""
    with three_brokers() as cluster:
        cluster.create_topic("t", configs=(("retention.ms", "-1"),))
        write_segments(cluster, 3)
        enable(cluster)
        upload(cluster, 0, 10)
        upload(cluster, 10, 20)
        until_same(cluster)
        yield cluster


def topic_id(world: ClusterWorld) -> UUID:
    return world.broker(1).services.cluster.topics["t"].id


def ask(world: ClusterWorld, broker: int, **question: object) -> DescribeTierResponse:
    request = DescribeTierRequest(**question)  # type: ignore[arg-type]
    return world.ask(broker, request, DescribeTierResponse, 0)


def test_the_leader_alone_tells_what_the_buckets_hold(world: ClusterWorld) -> None:
    world.create_topic("untiered")
    answers = {one: ask(world, one) for one in BROKERS}
    rows = {broker: answer.partitions for broker, answer in answers.items()}
    lead = world.leader_of("t")
    assert {broker for broker, some in rows.items() if some} == {lead}
    (row,) = rows[lead]
    assert (row.topic, row.partition, row.leader_epoch) == ("t", 0, leader(world).epoch)
    assert row.state is None
    (bucket,) = row.buckets
    assert (bucket.bucket, bucket.object_count) == (BUCKET, 2)
    assert (bucket.start_offset, bucket.end_offset) == (0, 20)
    retire(world, 10)
    (bucket,) = ask(world, lead, topics=["t"]).partitions[0].buckets
    assert (bucket.start_offset, bucket.object_count, bucket.removal_count) == (10, 1, 1)
    assert ask(world, lead, topics=["none"]).partitions == []


def test_the_leader_gives_its_whole_state(world: ClusterWorld) -> None:
    lead = world.leader_of("t")
    answer = ask(world, lead, topic_id=topic_id(world), partition=0)
    assert answer.error_code == 0
    state = decode(answer.partitions[0].state or b"")
    assert state == leader(world).tier.state.checkpoint()
    assert isinstance(state, Checkpoint)


def test_only_a_leader_that_certainly_leads_gives_a_state(world: ClusterWorld) -> None:
    lead, wanted = world.leader_of("t"), topic_id(world)
    for broker in set(BROKERS) - {lead}:
        answer = ask(world, broker, topic_id=wanted, partition=0)
        assert answer.error_code == Error.NOT_LEADER_OR_FOLLOWER
    for broker in set(BROKERS) - {lead}:
        world.hosts[broker].kill()
    # It thinks that it leads until its lease is over, and says nothing certain afterwards.
    world.advance(30_000)
    answer = ask(world, lead, topic_id=wanted, partition=0)
    assert answer.error_code == Error.NOT_LEADER_OR_FOLLOWER


def test_only_the_controller_says_that_a_topic_was_deleted(world: ClusterWorld) -> None:
    gone = UUID(int=99)
    errors = {one: ask(world, one, topic_id=gone, partition=0).error_code for one in BROKERS}
    assert set(errors.values()) == {Error.UNKNOWN_TOPIC_OR_PARTITION, Error.NOT_CONTROLLER}, (
        "it was never heard of"
    )
    for one in BROKERS:
        world.broker(one).services.cluster.deleted_tiered[gone] = "gone"
    errors = {one: ask(world, one, topic_id=gone, partition=0).error_code for one in BROKERS}
    controllers = [one for one, code in errors.items() if code == Error.UNKNOWN_TOPIC_ID]
    assert len(controllers) == 1
    assert world.controller(controllers[0]).is_leader
    assert set(errors.values()) == {Error.UNKNOWN_TOPIC_ID, Error.NOT_CONTROLLER}
    for broker in set(BROKERS) - set(controllers):
        world.hosts[broker].kill()
    world.advance(30_000)
    assert ask(world, controllers[0], topic_id=gone, partition=0).error_code == Error.NOT_CONTROLLER


def test_a_partition_that_is_not_there_is_an_error(world: ClusterWorld) -> None:
    answer = ask(world, 1, topic_id=topic_id(world), partition=7)
    assert answer.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
