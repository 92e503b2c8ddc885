"""A region that was away gets what it missed of compacted topics once, too, though its replicas and
the leader's were compacted at different times; and no deleted key comes back by that.

Source: decision 0022; `replication.fetch_sources`."""

from collections.abc import Collection
from dataclasses import replace

import pytest
from tests.simulation.full_speed import leader_of
from tests.simulation.plain_scenario import plain_scenario, started
from tests.simulation.test_compaction import churn, put, read_all, run_for
from tests.simulation.test_returning_region import AWAY, Outage

from strandline.model.ids import BrokerId, Index
from strandline.replication.catchup.fetch_sources import FetchSources
from strandline.replication.liveness import sessions
from strandline.replication.replica import tombstones
from strandline.replication.replica.compactor import Compactor
from strandline.replication.replica.replica import Replica
from strandline.replication.settings import ReplicationSettings
from strandline.replication.wire import Ability
from strandline.simulation.world.world import World
from strandline.storage.config import LogConfig

KIB = 1024
LOG = LogConfig(
    segment_bytes=64 * KIB,
    delete=False,
    compacted=True,
    preallocate=False,
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=1_000,
)
LENDER, NEW = AWAY


def lacking_bytes(outage: Outage) -> int:
    """What the leaders have beyond what the region had."""
    total = 0
    for leader in (one for one in outage.world.cluster.replicas() if one.is_leader):
        progress = leader.raft.progress[LENDER]
        index = Index(progress.match_flushed + 1)
        while index <= leader.log.last_index:
            entries = leader.log.read_entries(index, 1 << 20)
            total += len(entries.data)
            index = Index(entries.last_index + 1)
    return total


def compact_only_at(patch: pytest.MonkeyPatch, brokers: Collection[BrokerId]) -> None:
    add = Compactor.add

    def add_some(self: Compactor, replica: Replica) -> None:
        if replica.self_id in brokers:
            add(self, replica)

    patch.setattr(Compactor, "add", add_some)


def assert_same_tables(world: World) -> None:
    """And whatever else holds in the end."""
    world._audit(is_final=True)
    assert world.checker.violation is None


@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("key_count", [200, 100_000])
def test_what_a_region_missed_of_compacted_topics_crosses_once(seed: int, key_count: int) -> None:
    """It crossed once for each replica: 2.0 x."""
    outage = Outage(seed, log=LOG, key_count=key_count)
    outage.missed_bytes = lacking_bytes(outage)
    assert outage.missed_bytes > 1_000_000
    outage.end()
    outage.run_until_whole()
    assert outage.crossed_ratio() < 1.1
    assert outage.peer_sent_bytes() > 0.8 * outage.missed_bytes
    assert_same_tables(outage.world)


@pytest.mark.parametrize("seed", range(1, 3))
@pytest.mark.parametrize("compacts", [LENDER, BrokerId(1)])
def test_a_lender_sends_what_it_has_though_it_is_not_what_its_leader_has(
    seed: int, compacts: BrokerId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the two compacts, when both have all of it; the other one's log is as it was."""
    compacting: list[BrokerId] = []
    compact_only_at(monkeypatch, compacting)
    settings = ReplicationSettings(append_bytes_max=64 * KIB)
    outage = Outage(seed, log=LOG, key_count=200, settings=settings)
    outage.world.hosts[LENDER].start()
    outage.run(8_000)
    assert {one.self_id for one in outage.world.cluster.replicas() if one.is_leader} == {
        BrokerId(1)
    }
    assert not outage.behind()
    compacting.append(compacts)
    outage.run(8_000)
    sizes = {r.self_id: r.log.size_bytes() for r in outage.world.cluster.replicas() if r.group == 1}
    assert sizes.pop(compacts) < 0.2 * min(sizes.values())
    before = outage.crossed_ratio()
    outage.world.hosts[NEW].start()
    outage.run_until_whole()
    assert outage.crossed_ratio() - before < 0.1
    assert outage.peer_sent_bytes() > (0 if compacts == LENDER else 1_000_000)
    assert_same_tables(outage.world)


def test_a_broker_of_a_release_that_lends_no_compacted_logs_is_not_asked_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sessions, "ABILITIES", Ability.PEER_CATCHUP)
    outage = Outage(1, log=LOG, key_count=100_000)
    outage.end()
    outage.run_until_whole()
    assert outage.peer_sent_bytes() == 0


def copied_from_two(monkeypatch: pytest.MonkeyPatch) -> World:
    """A new replica has got the value of a key from its leader, which has not compacted, when one
    that has let go both the value and its tombstone, before there was a new replica, is back.

    As logs may be that were compacted when nobody asked what the others still have."""
    monkeypatch.setattr(tombstones, "outlived_index", lambda leader, held_index: held_index)
    compact_only_at(monkeypatch, [LENDER])
    settings = ReplicationSettings(recovery_bytes_per_s=32 * KIB, append_bytes_max=4 * KIB)
    scenario = plain_scenario(
        brokers=4, settings=settings, log=replace(LOG, segment_bytes=2_048), one_way_us=5_000
    )
    (group,) = scenario.groups
    group = replace(group, voters=tuple(one for one in group.voters if one != NEW))
    world = started(replace(scenario, regions=("east", "east", "west", "west"), groups=(group,)))
    put(world, b"deleted", b"1")
    churn(world, 400)
    put(world, b"deleted", None)
    churn(world, 100)
    run_for(world, 3_000)
    churn(world, 20)
    assert b"deleted" not in dict(read_all(replica_at(world, LENDER)))
    world.hosts[LENDER].on_down = None
    world.hosts[LENDER].kill()
    leader = leader_of(world)
    leader.change_configuration(voters=leader.configuration.voters, observers=(NEW,))
    assert world.scheduler.run_until_true(
        lambda: any(r.self_id == NEW and r.log.end_offset > 10 for r in world.cluster.replicas()),
        limit_us=world.scheduler.now_us + 10_000_000,
    )
    assert replica_at(world, NEW).log.end_offset < 200
    world.hosts[LENDER].start()
    run_for(world, 30_000)
    assert replica_at(world, NEW).log.end_offset == leader.log.end_offset
    return world


def replica_at(world: World, broker: BrokerId) -> Replica:
    return next(one for one in world.cluster.replicas() if one.self_id == broker)


def test_a_new_replica_of_a_compacted_log_is_copied_from_its_leader_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = copied_from_two(monkeypatch)
    assert dict(read_all(replica_at(world, NEW))).get(b"deleted") is None


def test_a_lender_that_sends_what_a_tombstone_has_left_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The planted mistake: a copy is a mixture of two logs."""
    monkeypatch.setattr(FetchSources, "may_mix", lambda self, peer, first_index: True)
    world = copied_from_two(monkeypatch)
    assert dict(read_all(replica_at(world, NEW))).get(b"deleted") == b"1"
