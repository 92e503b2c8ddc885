"""A bucket that is not the one of its name gets nothing, and nothing counts as held there.

Source: decision 0068."""

from collections.abc import Callable

import pytest
from tests.broker.cluster_world import VOTERS, ClusterWorld
from tests.broker.test_tiering_in_a_cluster import (
    BUCKETS,
    check_objects,
    has_all,
    leader,
    state,
    tiered_cluster,
    write,
)

from strandline.broker.tiering import claims as claims_module
from strandline.broker.tiering.claims import Claims
from strandline.controller.bucket_commands import BucketAnswer, IdentifyBucket
from strandline.model.cluster import BucketIdentity
from strandline.tiered.exports.names import PartitionPlace
from strandline.tiered.exports.reading import read_newest
from strandline.tiered.objects.claim import CLAIM, claim_bucket
from strandline.tiered.objects.identity import IDENTITY, give_identity


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims_module, "RECHECK_MS", 1_000)
    monkeypatch.setattr(claims_module, "RETRY_MS", 1_000)


def claims(world: ClusterWorld, broker: int) -> Claims:
    tiering = world.broker(broker).services.tiering
    assert tiering is not None
    return tiering.claims


def all_say(world: ClusterWorld, bucket: str, text: str) -> Callable[[], bool]:
    """Whether every broker refuses the bucket with this reason."""
    return lambda: all(text in claims(world, one).wrong.get(bucket, "") for one in VOTERS)


def covered(world: ClusterWorld) -> int:
    """Up to where the leader's disk may let records go."""
    found = leader(world).tier.covered()
    assert found is not None
    return found.covered_end


def exchange(world: ClusterWorld, one: str, other: str) -> None:
    """Two buckets' URLs are exchanged."""
    first, second = world.buckets[one], world.buckets[other]
    first.versions, second.versions = second.versions, first.versions


def replace(world: ClusterWorld, bucket: str) -> None:
    """What `strandline tiered replace` does."""
    store = world.broker(1).services.buckets.store(bucket)
    cluster = world.broker(1).services.cluster
    known = cluster.buckets[bucket]
    world.do(1, claim_bucket(store, bucket=bucket, cluster_id=cluster.cluster_id))
    found = world.do(1, give_identity(store, bucket=bucket, rng=world.broker(1).services.rng))
    answer = world.submit(IdentifyBucket(bucket, found, replaces=known.id))
    assert answer == BucketAnswer(found, known.generation + 1)


def test_every_bucket_gets_an_identity_that_the_cluster_keeps() -> None:
    with tiered_cluster() as world:
        write(world)
        world.until(has_all(world), every_ms=200)
        known = world.broker(1).services.cluster.buckets
        assert set(known) == set(BUCKETS)
        assert len({one.id for one in known.values()}) == 3
        for bucket in BUCKETS:
            assert known[bucket].id.encode() in (world.buckets[bucket].get(IDENTITY) or b"")
        world.lose_power()
        write(world, 20)
        world.until(has_all(world), every_ms=200)
        assert world.broker(1).services.cluster.buckets == known


def test_exchanged_buckets_get_nothing_and_count_nothing_until_they_are_back() -> None:
    with tiered_cluster() as world:
        write(world)
        world.until(has_all(world), every_ms=200)
        assert covered(world) == state(world).live_end("west")
        exchange(world, "east", "west")
        world.until(all_say(world, "west", "it is bucket east of this cluster"), every_ms=200)
        world.until(all_say(world, "east", "it is bucket west of this cluster"), every_ms=200)
        assert "`strandline tiered replace east`" in claims(world, 1).wrong["east"]
        assert covered(world) == leader(world).log.start_offset
        controller = next(one for one in VOTERS if world.broker(one).controller.is_active)
        lists = world.broker(controller).services.balancing.outages.bucket_lists
        world.until(lambda: len(lists.happenings) == 2, every_ms=1_000)
        assert "on brokers 1, 2, 3: bucket east is not the one" in lists.happenings[0].text
        ends = {one: state(world).live_end(one) for one in BUCKETS}
        names = {one: world.buckets[one].names() for one in ("east", "west")}
        write(world)
        world.until(has_all(world, "south"), every_ms=200)
        world.advance(20_000)
        assert state(world).live_end("east") == ends["east"]
        assert state(world).live_end("west") == ends["west"]
        assert {one: world.buckets[one].names() for one in ("east", "west")} == names
        exchange(world, "east", "west")
        world.until(has_all(world), every_ms=500)
        check_objects(world)
        assert covered(world) == state(world).live_end("east")


def test_an_empty_store_in_a_buckets_place_stays_empty() -> None:
    """As a directory does whose file system is not mounted when brokers start."""
    with tiered_cluster() as world:
        write(world)
        world.until(has_all(world), every_ms=200)
        right, world.buckets["west"].versions = world.buckets["west"].versions, {}
        world.lose_power()
        world.until(lambda: world.leader_of("t") > 0)
        world.until(all_say(world, "west", f"it has no {IDENTITY}"), every_ms=200)
        write(world, 20)
        world.until(has_all(world, "east", "south"), every_ms=200)
        world.advance(20_000)
        assert not world.buckets["west"].names()
        assert covered(world) == leader(world).log.start_offset
        world.buckets["west"].versions = right
        world.until(has_all(world), every_ms=500)
        check_objects(world)


def test_a_bucket_that_was_replaced_on_purpose_gets_everything_anew() -> None:
    with tiered_cluster() as world:
        write(world)
        world.until(has_all(world), every_ms=200)
        world.buckets["west"].versions = {}
        world.until(all_say(world, "west", f"it has no {IDENTITY}"), every_ms=200)
        replace(world, "west")
        world.until(lambda: not state(world).live("west"), every_ms=50)
        write(world, 20)
        world.until(has_all(world), every_ms=500)
        check_objects(world)
        assert state(world).buckets["west"].generation == 1
        assert state(world).buckets["east"].generation == 0
        assert not state(world).buckets["west"].removals, "those objects were in another bucket"
        topic = world.broker(1).services.cluster.topics["t"].id
        cluster_id = world.broker(1).services.cluster.cluster_id
        store = world.broker(1).services.buckets.store("west")
        end = state(world).live_end("west")

        def is_exported() -> bool:
            found = world.do(1, read_newest(store, PartitionPlace(cluster_id, topic, 0)))
            return found is not None and found.export.end_offset == end

        world.until(is_exported, every_ms=1_000)
        names = world.buckets["west"].names
        world.until(lambda: any("/controller/" in one for one in names()), every_ms=1_000)
        # A topic that is new begins in the new bucket, and stays there.
        world.create_topic("later", configs=(("remote.storage.enable", "true"),))
        world.advance(5_000)
        later = world.replicas_of("later")[world.leader_of("later")]
        assert later.tier.state.buckets["west"].generation == 1


def test_a_bucket_that_comes_back_after_its_replacement_is_refused() -> None:
    with tiered_cluster() as world:
        write(world)
        world.until(has_all(world), every_ms=200)
        old, world.buckets["west"].versions = world.buckets["west"].versions, {}
        replace(world, "west")
        world.until(lambda: state(world).live("west"), every_ms=500)
        world.until(has_all(world), every_ms=500)
        world.buckets["west"].versions = old
        world.until(all_say(world, "west", "it has another identity.json"), every_ms=200)


def test_a_bucket_of_an_earlier_release_gets_an_identity_once_all_can_keep_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as earlier, tiered_cluster() as world:
        earlier.setattr(Claims, "_may_identify", lambda _: False)
        write(world)
        world.until(has_all(world), every_ms=200)
        for bucket in BUCKETS:
            assert world.buckets[bucket].get(CLAIM) is not None
            assert world.buckets[bucket].get(IDENTITY) is None
        earlier.undo()
        monkeypatch.setattr(claims_module, "RETRY_MS", 1_000)
        world.until(
            lambda: len(world.broker(1).services.cluster.buckets) == len(BUCKETS), every_ms=500
        )
        write(world, 20)
        world.until(has_all(world), every_ms=200)
        check_objects(world)


def test_a_bucket_with_records_and_without_a_claim_is_no_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as earlier, tiered_cluster() as world:
        earlier.setattr(Claims, "_may_identify", lambda _: False)
        write(world)
        world.until(has_all(world), every_ms=200)
        earlier.undo()
        world.buckets["west"].versions = {}
        world.until(all_say(world, "west", f"has no {CLAIM}"), every_ms=200)
        world.advance(5_000)
        assert not world.buckets["west"].names()
        assert "west" not in world.broker(1).services.cluster.buckets


def test_what_the_controller_answered_serves_a_broker_whose_snapshot_lacks_it() -> None:
    with tiered_cluster() as world:
        write(world, 20)
        world.until(has_all(world), every_ms=200)
        known = world.broker(2).services.cluster.buckets
        right = known.pop("west")  # As from a snapshot of an earlier release.
        world.until(lambda: claims(world, 2).is_claimed("west"), every_ms=200)
        assert claims(world, 2).identity("west") == right
        known["west"] = BucketIdentity("another", 1)
        world.until(all_say_one(world, 2), every_ms=200)


def all_say_one(world: ClusterWorld, broker: int) -> Callable[[], bool]:
    """Whether one broker refuses bucket west."""
    return lambda: "it has another identity.json" in claims(world, broker).wrong.get("west", "")
