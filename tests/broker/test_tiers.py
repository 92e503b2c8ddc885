"""The state of a partition's tier is the same on every replica, through crashes and elections.

Why:    a replica that removed a record too early, or forgot where it is, has lost it.
Source: decision 0057."""

from collections.abc import Iterator

import pytest
from tests.broker.cluster_world import CLEAN_INTERVAL_MS, ClusterWorld, three_brokers
from tests.broker.test_broker_in_a_cluster import produce
from tests.broker.test_delete_records import delete, fetched, start
from tests.broker.tiering_world import (
    BUCKET,
    begin,
    enable,
    leader,
    propose,
    retire,
    tiers,
    until_same,
    upload,
    write_segments,
)

from strandline.base.errors import ApiError
from strandline.model.ids import BrokerId, Epoch, Offset
from strandline.protocol.errors import Error
from strandline.protocol.messages.digest_replica import (
    DigestRange,
    DigestReplicaRequest,
    DigestReplicaResponse,
)
from strandline.replication.liveness import sessions
from strandline.replication.replica.tier import RemoteOffsetError
from strandline.replication.wire import ABILITIES, Ability
from strandline.tiered.state.commands import Intend
from strandline.tiered.state.encoding import encode
from strandline.tiered.state.transitions import Refusal

SHORT_MS = 20_000
"""A total retention that a test can wait for."""


@pytest.fixture
def world() -> Iterator[ClusterWorld]:
    """Three brokers, topic t with three closed segments of ten records."""
    with three_brokers() as cluster:
        cluster.create_topic("t", configs=(("retention.ms", "-1"),))
        write_segments(cluster, 3)
        yield cluster


def starts(world: ClusterWorld) -> list[int]:
    """Where the replicas' own logs begin."""
    return [one.log.start_offset for one in world.replicas_of("t").values()]


def intent(base: int, end: int) -> Intend:
    return Intend(BUCKET, f"{base}-{end}", Offset(base), Offset(end), BrokerId(1))


def test_every_replica_applies_the_same_commands_and_has_them_after_a_restart(
    world: ClusterWorld,
) -> None:
    enable(world)
    upload(world, 0, 10)
    upload(world, 10, 20)
    until_same(world)
    before = encode(leader(world).tier.state.checkpoint())
    world.lose_power()
    world.until(lambda: world.leader_of("t") != 0)
    until_same(world)
    assert encode(leader(world).tier.state.checkpoint()) == before


def test_proposer_learns_of_a_refusal(world: ClusterWorld) -> None:
    enable(world)
    upload(world, 0, 10)
    assert propose(world, intent(11, 20)) == (Error.NONE, Refusal.NOT_IN_LINE)
    assert propose(world, intent(10, 31)) == (Error.NONE, Refusal.BEYOND_MARKER)
    follower = next(one for one in tiers(world) if one != world.leader_of("t"))
    assert begin(world, intent(10, 20), at=follower) == [(Error.NOT_LEADER_OR_FOLLOWER, None)]


def test_local_retention_waits_for_the_bucket_and_for_a_checkpoint(world: ClusterWorld) -> None:
    enable(world, local_retention_ms=0)
    world.advance(5 * CLEAN_INTERVAL_MS)
    assert starts(world) == [0, 0, 0]
    upload(world, 0, 10)
    world.advance(5 * CLEAN_INTERVAL_MS)
    assert starts(world) == [10, 10, 10]
    upload(world, 10, 20)
    upload(world, 20, 30)
    world.advance(5 * CLEAN_INTERVAL_MS)
    assert starts(world) == [30, 30, 30]
    for replica in world.replicas_of("t").values():
        assert replica.tier.checkpoint_index >= replica.log.start_index
        assert replica.log_start_offset == 0
        assert replica.local_log_start_offset == 30
        assert [replica.is_remote(Offset(at)) for at in (0, 29, 30)] == [True, True, False]
    assert start(world) == 0
    assert fetched(world, 30).error_code == Error.NONE
    with pytest.raises(RemoteOffsetError):
        leader(world).read(Offset(29), 1_000)
    retire(world, 10)
    until_same(world)
    assert start(world) == 10
    with pytest.raises(ApiError, match="not within 10"):
        leader(world).read(Offset(9), 1_000)


def test_enough_copies_are_as_many_as_the_topic_says(world: ClusterWorld) -> None:
    enable(world, local_retention_ms=0, remote_buckets=("eu", "us"))
    upload(world, 0, 10, bucket="eu")
    world.advance(5 * CLEAN_INTERVAL_MS)
    assert starts(world) == [0, 0, 0]
    enable(world, local_retention_ms=0, remote_buckets=("eu", "us"), remote_copies_min=1)
    world.advance(5 * CLEAN_INTERVAL_MS)
    assert starts(world) == [10, 10, 10]


def test_total_retention_takes_what_no_bucket_has_only_from_the_partitions_start(
    world: ClusterWorld,
) -> None:
    enable(world, local_retention_ms=0, retention_ms=SHORT_MS)
    upload(world, 0, 10)
    world.advance(5 * CLEAN_INTERVAL_MS)
    assert starts(world) == [10, 10, 10]
    world.advance(SHORT_MS + 3 * CLEAN_INTERVAL_MS)
    assert starts(world) == [10, 10, 10]  # Records before it are in the bucket still.
    retire(world, 10)
    world.advance(5 * CLEAN_INTERVAL_MS)
    assert starts(world) == [30, 30, 30]
    assert start(world) == 30


def test_restart_finds_the_state_behind_the_log_that_is_gone(world: ClusterWorld) -> None:
    enable(world, local_retention_ms=0)
    upload(world, 0, 10)
    upload(world, 10, 20)
    world.until(lambda: starts(world) == [20, 20, 20])
    upload(world, 20, 30)
    until_same(world)
    before = encode(leader(world).tier.state.checkpoint())
    world.lose_power()
    world.until(lambda: world.leader_of("t") > 0 and len(world.replicas_of("t")) == 3)
    enable(world)
    world.until(
        lambda: {encode(one.state.checkpoint()) for one in tiers(world).values()} == {before}
    )
    world.until(lambda: {one.log_start_offset for one in world.replicas_of("t").values()} == {0})
    assert min(starts(world)) >= 20


def test_replica_that_begins_anew_at_the_leaders_start_takes_the_checkpoint(
    world: ClusterWorld,
) -> None:
    enable(world, local_retention_ms=0)
    away = next(one for one in tiers(world) if one != world.leader_of("t"))
    world.hosts[away].kill()
    write_segments(world, 2)
    for base in range(0, 40, 10):
        upload(world, base, base + 10)
    world.advance(5 * CLEAN_INTERVAL_MS)
    assert leader(world).log.start_offset == 40
    upload(world, 40, 50)
    enable(world)
    world.hosts[away].start()
    world.until_started(away)
    world.until(lambda: away in world.replicas_of("t"))
    returned = world.replicas_of("t")[away]
    enable(world)
    world.until(lambda: returned.log.start_offset == 40)
    until_same(world)
    assert returned.tier.is_known
    assert returned.log_start_offset == 0


def test_replica_that_lacks_the_checkpoint_serves_nothing_below_its_log(
    world: ClusterWorld,
) -> None:
    follower = next(one for one in tiers(world) if one != world.leader_of("t"))
    replica = world.replicas_of("t")[follower]
    upload(world, 0, 10)
    until_same(world)
    replica.tier.on_reset()
    replica.tier.is_known = False
    enable(world)
    assert not replica.knows_start
    world.advance(3 * CLEAN_INTERVAL_MS)  # The first checkpoint of a topic comes by itself.
    assert replica.knows_start
    until_same(world)


def test_markers_of_a_deposed_leader_are_cut_with_its_log(world: ClusterWorld) -> None:
    enable(world)
    upload(world, 0, 10)
    until_same(world)
    old = world.leader_of("t")
    others = [one for one in world.hosts if one != old]
    for other in others:
        world.fabric.cut(BrokerId(old), BrokerId(other))
        world.fabric.cut(BrokerId(other), BrokerId(old))
    lost = begin(world, intent(10, 20), at=old)
    world.until(lambda: any(one != old and r.can_serve_reads for one, r in replicas(world)))
    new = next(one for one, r in replicas(world) if one != old and r.can_serve_reads)
    taken = begin(world, intent(10, 30), at=new)
    world.until(lambda: bool(taken))
    assert taken == [(Error.NONE, None)]
    for other in others:
        world.fabric.heal(BrokerId(old), BrokerId(other))
        world.fabric.heal(BrokerId(other), BrokerId(old))
    world.until(lambda: bool(lost))
    assert lost[0][0] == Error.NOT_LEADER_OR_FOLLOWER
    until_same(world)
    (only,) = tiers(world)[old].state.pending(BUCKET)
    assert only.end_offset == 30


def replicas(world: ClusterWorld) -> list[tuple[int, object]]:
    return list(world.replicas_of("t").items())


def test_digests_are_of_what_is_on_the_disk_and_records_in_buckets_alone_are_no_damage(
    world: ClusterWorld,
) -> None:
    enable(world, local_retention_ms=0)
    upload(world, 0, 30)
    world.advance(5 * CLEAN_INTERVAL_MS)
    assert starts(world) == [30, 30, 30]
    write_segments(world, 1)
    for broker in world.replicas_of("t"):

        def ask(first: int, *, at: int = broker) -> DigestReplicaResponse:
            request = DigestReplicaRequest(topic="t", ranges=[DigestRange(first, 40)])
            return world.ask(at, request, DigestReplicaResponse, 0)

        answer = ask(0)
        assert answer.error_code == Error.OFFSET_OUT_OF_RANGE
        assert (answer.log_start_offset, answer.may_expire) == (30, True)
        answer = ask(30)
        assert (answer.damaged_offset, answer.ranges[0].record_count) == (-1, 10)


def test_records_below_the_local_start_can_be_deleted_and_stay_so(world: ClusterWorld) -> None:
    enable(world, local_retention_ms=0)
    upload(world, 0, 10)
    upload(world, 10, 20)
    upload(world, 20, 30)
    world.advance(5 * CLEAN_INTERVAL_MS)
    assert starts(world) == [30, 30, 30]
    result = delete(world, 15)
    assert (result.error_code, result.low_watermark) == (0, 15)
    assert start(world) == 15
    write_segments(world, 2)
    upload(world, 30, 40)
    upload(world, 40, 50)
    world.advance(5 * CLEAN_INTERVAL_MS)
    assert starts(world) == [50, 50, 50]  # The marker of the deletion is gone, too.
    assert leader(world).log.deletions == []
    world.lose_power()
    enable(world)
    world.until(lambda: world.leader_of("t") != 0)
    until_same(world)
    assert start(world) == 15


def test_epochs_of_records_in_the_bucket_are_known(world: ClusterWorld) -> None:
    first = leader(world).epoch
    world.replicas_of("t")[world.leader_of("t")].transfer_leadership(
        BrokerId(world.leader_of("t") % 3 + 1)
    )
    world.until(lambda: world.leader_of("t") != 0 and leader(world).epoch > first)
    write_segments(world, 1)
    second = leader(world).epoch
    world.lose_power()
    world.until(lambda: world.leader_of("t") != 0)
    assert produce(world, "t", b"x").error_code == 0
    enable(world)
    expected = [
        leader(world).epoch_end_offset(Epoch(epoch)) for epoch in range(first - 1, second + 3)
    ]
    assert (first, 30) in expected
    enable(world, local_retention_ms=0)
    for base in range(0, 40, 10):
        upload(world, base, base + 10)
    world.advance(5 * CLEAN_INTERVAL_MS)
    assert leader(world).log.start_offset == 40
    found = [leader(world).epoch_end_offset(Epoch(epoch)) for epoch in range(first - 1, second + 3)]
    assert found == expected


def test_topic_without_remote_storage_gets_no_marker(world: ClusterWorld) -> None:
    for replica in world.replicas_of("t").values():
        replica.log.config = type(replica.log.config)(retention_bytes=0)
    world.advance(5 * CLEAN_INTERVAL_MS)
    for replica in world.replicas_of("t").values():
        assert replica.log.start_offset == 30
        assert (replica.log.tier_markers, replica.log_start_offset) == ([], 30)
        assert replica.knows_start


def test_leader_appends_the_next_checkpoint_when_markers_have_become_many(
    world: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strandline.replication.replica.tier.MARKER_BYTES_MAX", 100)
    enable(world)
    upload(world, 0, 10)
    world.advance(3 * CLEAN_INTERVAL_MS)
    first = leader(world).tier.checkpoint_index
    for base in range(10, 30, 2):
        upload(world, base, base + 2)
    world.advance(3 * CLEAN_INTERVAL_MS)
    until_same(world)
    for one in world.replicas_of("t").values():
        assert one.tier.checkpoint_index > first
        assert len(one.log.tier_markers) == 1


def test_controller_knows_which_brokers_can_read_tier_markers(
    world: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = next(one for one in world.hosts if world.controller(one).can_serve_reads)
    host = world.broker(controller).controller
    assert host._without_tiering() == {}
    other = controller % 3 + 1
    world.hosts[other].kill()
    monkeypatch.setattr(sessions, "ABILITIES", ABILITIES & ~Ability.TIERING)
    world.hosts[other].start()
    world.until(lambda: host._without_tiering().get(BrokerId(other)) is True)
