"""Brokers digest their replicas, in the simulated cluster.

Source: docs/decisions/0052-comparing-replicas.md."""

from itertools import pairwise

import pytest
from tests.broker.cluster_world import ClusterWorld
from tests.broker.test_broker_in_a_cluster import fetch, produce
from tests.broker.test_damaged_logs import rot

from strandline.broker.operations.digesting import Digesting, IsWanted, Outcome, Work
from strandline.protocol.errors import Error
from strandline.protocol.messages.digest_replica import (
    DigestRange,
    DigestReplicaRequest,
    DigestReplicaResponse,
)
from strandline.records.batch import HEADER_BYTES
from strandline.storage.digests.ranges import DigestKind

BROKERS = (1, 2, 3)
VALUES = [b"%d" % number for number in range(5)]


def ask(
    world: ClusterWorld,
    broker: int,
    *bounds: int,
    kind: int = DigestKind.BYTES,
    topic: str = "t",
    shares: tuple[int, int] = (0, 1),
) -> DigestReplicaResponse:
    ranges = [DigestRange(start, end) for start, end in pairwise(bounds)]
    request = DigestReplicaRequest(
        topic=topic, kind=kind, ranges=ranges, key_share=shares[0], key_share_count=shares[1]
    )
    return world.ask(broker, request, DigestReplicaResponse, 0)


def until_everywhere(world: ClusterWorld, end: int) -> None:
    """Until every replica knows the first `end` records to be committed."""
    replicas = world.replicas_of("t")
    world.until(lambda: all(one.committed_end >= end for one in replicas.values()))


def test_replicas_in_step_have_equal_digests(cluster: ClusterWorld) -> None:
    cluster.create_topic("t")
    for value in VALUES:
        assert produce(cluster, "t", value).error_code == 0
    until_everywhere(cluster, len(VALUES))
    found = [ask(cluster, one, 0, 2, 5) for one in BROKERS]
    assert [one.record_count for one in found[0].ranges] == [2, 3]
    assert found[0].ranges == found[1].ranges == found[2].ranges
    assert [one.is_leader for one in found].count(True) == 1
    assert all(one.error_code == 0 and one.damaged_offset == -1 for one in found)


def test_a_replica_is_described_without_ranges(cluster: ClusterWorld) -> None:
    cluster.create_topic("t", configs=(("cleanup.policy", "compact"),))
    assert produce(cluster, "t", *VALUES).error_code == 0
    found = ask(cluster, cluster.leader_of("t"))
    assert (found.log_start_offset, found.high_watermark, found.log_end_offset) == (0, 5, 5)
    assert found.is_leader and found.is_compacted and not found.may_expire
    assert found.log_bytes > 0 and found.ranges == []


def test_what_cannot_be_asked_is_refused(cluster: ClusterWorld) -> None:
    cluster.create_topic("t")
    assert produce(cluster, "t", *VALUES).error_code == 0
    leader = cluster.leader_of("t")
    assert ask(cluster, leader, topic="x").error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert ask(cluster, leader, 0, 6).error_code == Error.OFFSET_OUT_OF_RANGE
    assert ask(cluster, leader, 3, 2).error_code == Error.INVALID_REQUEST
    assert ask(cluster, leader, 0, 5, kind=9).error_code == Error.INVALID_REQUEST
    assert ask(cluster, leader, 0, 5, shares=(2, 2)).error_code == Error.INVALID_REQUEST
    assert ask(cluster, leader, *range(1_002)).error_code == Error.INVALID_REQUEST
    cluster.create_topic("u", replicas=1)
    absent = next(one for one in BROKERS if one not in cluster.replicas_of("u"))
    assert ask(cluster, absent, topic="u").error_code == Error.NOT_LEADER_OR_FOLLOWER


def test_rot_is_an_answer_that_names_its_offset_and_is_repaired(cluster: ClusterWorld) -> None:
    cluster.create_topic("t")
    for value in VALUES:
        assert produce(cluster, "t", value).error_code == 0
    until_everywhere(cluster, len(VALUES))
    follower = next(one for one in BROKERS if one != cluster.leader_of("t"))
    replica = cluster.replicas_of("t")[follower]
    rot(cluster, follower, replica, at=HEADER_BYTES + 3, batch=2)
    found = ask(cluster, follower, 0, 1, 5)
    assert len(found.ranges) == 1
    assert (found.damaged_offset, found.damaged_end_offset) == (2, 3)
    assert found.damage is not None and "checksum" in found.damage
    cluster.until(lambda: ask(cluster, follower, 0, 5).damaged_offset == -1, every_ms=500)
    assert ask(cluster, follower, 0, 5).ranges == ask(cluster, cluster.leader_of("t"), 0, 5).ranges
    assert fetch(cluster, "t") == VALUES


class Stuck:
    """A worker that finishes nothing."""

    def run(self, work: Work, is_wanted: IsWanted, done: object) -> None:
        """Keep it."""


class Failing:
    """A worker whose disk fails."""

    def run(self, work: Work, is_wanted: IsWanted, done: object) -> None:
        """Fail."""
        outcome: Outcome = OSError(5, "broken")
        done(outcome)  # type: ignore[operator]


def test_requests_beyond_the_limit_are_told_to_come_again(cluster: ClusterWorld) -> None:
    cluster.create_topic("t")
    assert produce(cluster, "t", *VALUES).error_code == 0
    leader = cluster.leader_of("t")
    digesting = Digesting(requests_max=2, worker=Stuck())
    cluster.broker(leader).services.digesting = digesting
    request = DigestReplicaRequest(topic="t", ranges=[DigestRange(0, 5)])
    waiting = [cluster.send(leader, request, 0) for _ in range(2)]
    refused = ask(cluster, leader, 0, 5)
    assert refused.error_code == Error.THROTTLING_QUOTA_EXCEEDED
    assert not any(one.is_answered for one in waiting)


def test_a_disk_that_fails_is_an_error_of_the_answer(cluster: ClusterWorld) -> None:
    cluster.create_topic("t")
    assert produce(cluster, "t", *VALUES).error_code == 0
    leader = cluster.leader_of("t")
    cluster.broker(leader).services.digesting = Digesting(requests_max=2, worker=Failing())
    found = ask(cluster, leader, 0, 5)
    assert found.error_code == Error.KAFKA_STORAGE_ERROR
    assert found.error_message is not None and "broken" in found.error_message


@pytest.mark.parametrize("at", BROKERS)
def test_a_replica_of_a_deleted_topic_is_not_compared_with_the_new_one(
    cluster: ClusterWorld, at: int
) -> None:
    from uuid import UUID

    cluster.create_topic("t")
    request = DigestReplicaRequest(topic="t", topic_id=UUID(int=7))
    found = cluster.ask(at, request, DigestReplicaResponse, 0)
    assert found.error_code == Error.INCONSISTENT_TOPIC_ID
