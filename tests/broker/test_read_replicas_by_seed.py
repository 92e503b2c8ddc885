"""ReadReplicaIsPrefix and ExportNeverGoesBack, of a whole cluster whose brokers and bucket fail.

Why:    what a reader of the bucket sees is a state of the source, never an older one than before,
        and every record of it is in the bucket.
How:    a seed draws what happens: writes, kills, pauses, power failures, deleted records, and all
        faults of the bucket but wrong bytes. A reader looks in between, as a read replica does.
Source: decisions 0057 and 0061; reference 2.6 for the faults."""

import random
from itertools import pairwise

import pytest
from tests.broker.cluster_world import VOTERS, ClusterWorld
from tests.broker.test_broker_in_a_cluster import produce
from tests.broker.test_delete_records import delete
from tests.broker.test_tiering_in_a_cluster import check_objects, has_all, leader, tiered_cluster

from strandline.broker.tier_exports.exporting import Exporting
from strandline.simulation.buckets.bucket import BucketFaults
from strandline.tiered.replicas.source import ReplicaSource
from strandline.tiered.replicas.view import ReplicaView

BUCKET = "east"
STEPS = 25
FAULTS = (
    BucketFaults(is_gone=True),
    BucketFaults(slow_factor=40),
    BucketFaults(throttled_share=0.5),
    BucketFaults(applied_error_share=0.5),
    BucketFaults(lost_before_share=0.2, lost_after_share=0.2),
    BucketFaults(late_share=0.3),
    BucketFaults(taken_share=0.5),
    BucketFaults(list_lag_us=20_000_000),
    BucketFaults(missing_share=0.2),
    BucketFaults(clock_skew_ms=1_200_000),
)


GRACE_MS = 5_000


class Reader:
    """Reads the bucket as a read replica does, on whatever broker is up."""

    def __init__(self, world: ClusterWorld) -> None:
        self._world = world
        self._at = 1
        cluster = world.broker(1).controller.cluster
        self.source = ReplicaSource(
            lambda: world.broker(self._at).services.buckets.store(BUCKET),
            bucket=BUCKET,
            cluster_id=cluster.cluster_id,
            clock=world.broker(1).services.clock,
        )
        key = (cluster.topics["t"].id, 0)
        self.view: ReplicaView = self.source.open(key, lambda: None)
        self._marks = (0, 0)
        self._read_us = 0
        """When the last look that did not fail began."""

    def look(self, *, must_list: bool) -> None:
        """ReadReplicaIsPrefix, now."""
        up = [one for one in VOTERS if self._world.hosts[one].is_running]
        if not up:
            return
        began_us = self._world.scheduler.now_us
        self._at, self.view.must_list = up[0], must_list
        self._world.do(self._at, self.source.refresh())
        assert self.source.damaged_exports == 0, "an export contradicts another, or lacks a page"
        view = self.view
        marks = (int(view.start_offset), int(view.high_watermark))
        assert marks[0] >= self._marks[0] and marks[1] >= self._marks[1], (marks, self._marks)
        self._marks = marks
        if self.source.failure or view.failure:
            if self._world.scheduler.now_us - self._read_us > GRACE_MS * 1_000:
                return  # It has read nothing for longer than the grace, so objects may be gone.
        else:
            self._read_us = began_us
            wall_ms = self._world.broker(self._at).services.clock.wall_ms()
            if view.is_ready and view.staleness_ms(wall_ms) > GRACE_MS:
                # No broker could write that a newer export exists, and the reader lists the exports
                # less often than this short grace asks for (the default is an hour).
                return
        bucket = self._world.buckets[BUCKET]
        for before, after in pairwise(view.live(BUCKET)):
            assert before.end_offset == after.base_offset
        for entry in view.live(BUCKET):
            data = bucket.get(entry.name)
            assert data is not None, f"{entry.name} is named by the newest export, and is gone"
            assert len(data) == entry.size_bytes


def act(world: ClusterWorld, rng: random.Random) -> None:
    """One thing happens."""
    bucket = world.buckets[BUCKET]
    up = [one for one in VOTERS if world.hosts[one].is_running]
    match rng.randrange(8):
        case 0 | 1 | 2:
            for _ in range(rng.randrange(40)):
                if world.leader_of("t") <= 0:
                    break
                produce(world, "t", b"x" * rng.randrange(200))
        case 3:
            bucket.faults = rng.choice(FAULTS)
        case 4:
            bucket.faults = BucketFaults()
        case 5 if len(up) == len(VOTERS):
            victim = rng.choice(up)
            world.hosts[victim].kill() if rng.random() < 0.5 else world.hosts[victim].fail_power()
        case 5:
            for one in VOTERS:
                if not world.hosts[one].is_running:
                    world.hosts[one].start()
        case 6 if len(up) == len(VOTERS):
            victim = world.leader_of("t")
            if victim > 0:
                world.hosts[victim].pause()
                world.advance(rng.choice((2_000, 20_000)))
                world.hosts[victim].resume()
        case _:
            if world.leader_of("t") > 0:
                start = leader(world).log_start_offset
                end = leader(world).high_watermark
                delete(world, rng.randint(start, start + (end - start) // 3))
    world.advance(rng.choice((200, 2_000, 8_000)))


def course(seed: int, *, grace_ms: int) -> None:
    """One history, healed at its end."""
    rng = random.Random(seed)
    with tiered_cluster(export_interval_ms=1_000, delete_grace_ms=grace_ms) as world:
        reader = Reader(world)
        for _ in range(STEPS):
            act(world, rng)
            reader.look(must_list=rng.random() < 0.3)
        world.buckets[BUCKET].faults = BucketFaults()
        for one in VOTERS:
            if not world.hosts[one].is_running:
                world.hosts[one].start()
        world.until_started(*VOTERS)
        world.until(lambda: world.leader_of("t") > 0)
        world.until(has_all(world), every_ms=500)

        def is_there() -> bool:
            reader.look(must_list=True)
            state = leader(world).tier.state
            live = [one.name for one in state.live(BUCKET)]
            return [one.name for one in reader.view.live(BUCKET)] == live

        world.until(is_there, every_ms=1_000)
        state = leader(world).tier.state
        assert reader.view.high_watermark == state.live_end(BUCKET) > 0
        assert reader.view.start_offset == max(state.start(BUCKET), state.deleted_before)
        if leader(world).log_start_offset == 0:
            check_objects(world, BUCKET)


@pytest.mark.parametrize("seed", range(12))
def test_what_the_bucket_says_never_goes_back(seed: int) -> None:
    course(seed, grace_ms=GRACE_MS)


def test_objects_that_go_before_an_export_without_them_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The planted mistake: no export is waited for, and no grace."""
    monkeypatch.setattr(Exporting, "has_no_live", lambda *_: True)
    with pytest.raises(AssertionError, match="and is gone"):
        for seed in range(12):
            course(seed, grace_ms=0)
