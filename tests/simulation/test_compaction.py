"""Compacted logs under faults: no key loses its last record, no replica falls out of step.

Source: design section 4; `replication/replica/compactor.py`."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.simulation.full_speed import leader_of
from tests.simulation.plain_scenario import plain_scenario, run_until_led, started

from strandline.model.ids import GroupId, Offset
from strandline.records.batch import iterate_headers
from strandline.records.latest_keys import LatestKeys
from strandline.records.record import Record, build_batch, decode_records
from strandline.replication.leader.requests import AppendResult
from strandline.replication.replica.replica import Replica
from strandline.simulation.invariants.superseding import Superseding
from strandline.simulation.scenarios.scenario import ProducerPlan, Scenario
from strandline.simulation.swarm.swarm import run_scenario
from strandline.simulation.world.world import World
from strandline.storage.config import LogConfig

MS = 1_000
PRODUCER = ProducerPlan("p", GroupId(1), -1, True, 10, 500)


def run_for(world: World, duration_ms: int) -> None:
    world.scheduler.run_until(world.scheduler.now_us + duration_ms * MS)


@pytest.mark.simulation
@pytest.mark.parametrize("seed", range(1, 25))
def test_all_invariants_hold_where_logs_are_compacted(seed: int) -> None:
    outcome = run_scenario(Scenario.draw(seed).of_groups().compacted())
    assert outcome.violation is None


@pytest.mark.simulation
@pytest.mark.parametrize("seed", range(1, 7))
def test_all_invariants_hold_where_lags_and_jitter_decide_when(seed: int) -> None:
    """Each replica rolls and compacts at other times than its peers."""
    scenario = Scenario.draw(seed).of_groups().compacted()
    log = replace(
        scenario.log,
        segment_ms=800,
        segment_jitter_ms=600,
        min_compaction_lag_ms=150 * (seed % 3),
        max_compaction_lag_ms=500 + 100 * seed,
        min_cleanable_dirty_ratio=1.0,
        preallocate_segment=seed % 2 == 0,
    )
    outcome = run_scenario(replace(scenario, log=log))
    assert outcome.violation is None
    assert outcome.tally.superseded_count > 0


@pytest.mark.simulation
def test_compaction_takes_something() -> None:
    outcomes = [run_scenario(Scenario.draw(seed).of_groups().compacted()) for seed in range(1, 4)]
    assert sum(outcome.tally.superseded_count for outcome in outcomes) > 1_000


def contested(seed: int) -> Scenario:
    """Leaders that are cut off and deposed: logs end in what was never committed."""
    scenario = Scenario.draw(seed).of_groups().compacted()
    return replace(
        scenario,
        log=replace(scenario.log, segment_bytes=2_048, min_cleanable_dirty_ratio=0.0),
        fault_weights={"isolation": 1, "cut-from-leader": 1},
        fault_interval_ms=250,
    )


def compact_what_is_not_committed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Replica, "committed_end", property(lambda self: self.log.end_offset))


def take_the_newest_record(patch: pytest.MonkeyPatch) -> None:
    def is_newest(self: LatestKeys, key: bytes, offset: int) -> bool:
        return self._offsets.get(key, -1) < offset

    patch.setattr(LatestKeys, "is_newest", is_newest)


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("plant", "seed"), [(compact_what_is_not_committed, 1), (take_the_newest_record, 1)]
)
def test_a_planted_mistake_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    for candidate in (seed, *range(1, 60)):
        if run_scenario(contested(candidate)).violation is not None:
            return
    pytest.fail("no seed finds it")


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_broker_that_was_away_catches_up_on_a_log_that_was_compacted_meanwhile(
    seed: int,
) -> None:
    scenario = plain_scenario(seed=seed, producers=(PRODUCER,)).compacted()
    world = started(scenario)
    (producer,) = world.producers
    producer.start()
    run_for(world, 1_000)
    away = world.hosts[world.cluster.leading_brokers()[0]]
    away.on_down = None
    away.kill()
    assert run_until_led(world, limit_ms=10_000) is not None
    run_for(world, 6_000)
    away.start()
    run_for(world, 1_000)
    producer.stop()
    run_for(world, 4_000)
    replicas = world.cluster.replicas()
    ends = {(replica.log_end_offset, replica.high_watermark) for replica in replicas}
    assert len(replicas) == 3
    assert len(ends) == 1
    for _ in range(2):
        world._audit(is_final=True)
        assert world.checker.violation is None
        assert world.tally.superseded_count > producer.acknowledged_count
        for host in world.hosts.values():
            host.on_down = None
            host.kill()
            host.start()
        assert run_until_led(world, limit_ms=10_000) is not None
        run_for(world, 3_000)


# ---- tombstones --------------------------------------------------------------------------------

BRIEF = LogConfig(
    segment_bytes=2_048,
    delete=False,
    compacted=True,
    preallocate=False,
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=1_000,
)


def put(world: World, key: bytes, value: bytes | None) -> None:
    """Write one record with acks=all, and look after all logs."""
    replica = leader_of(world)
    process = world.hosts[replica.self_id].process
    assert process is not None
    batch = build_batch([Record(0, 1_000, key, value)])
    results: list[AppendResult] = []
    process.run_now(
        lambda: replica.replicate(
            [batch], list(iterate_headers(batch)), acks=-1, done=results.append
        )
    )
    run_for(world, 60)
    assert [result.error_code for result in results] == [0]
    clean_all(world)


def clean_all(world: World) -> None:
    for replica in world.cluster.replicas():
        process = world.hosts[replica.self_id].process
        assert process is not None
        process.run_now(replica.clean)


def read_all(replica: Replica) -> list[tuple[bytes | None, bytes | None]]:
    """(key, value) of all records that a consumer would see."""
    found: list[tuple[bytes | None, bytes | None]] = []
    position = replica.log_start_offset
    while position < replica.high_watermark:
        data = replica.read_verified(position, 65_536)
        for header in iterate_headers(data):
            records = decode_records(data, header.position)
            found += [(record.key, record.value) for record in records]
            position = header.next_offset
    return found


def churn(world: World, count: int) -> None:
    """So many records of another key: segments fill, and are compacted."""
    for _ in range(count):
        put(world, b"other", b"y" * 200)


def test_a_deleted_key_does_not_come_back_with_a_replica_that_was_away() -> None:
    """Longer than `delete.retention.ms`: it has the value, and never hears of a tombstone that is
    gone by then."""
    world = started(plain_scenario(log=BRIEF))
    put(world, b"deleted", b"1")
    run_for(world, 300)
    leader = leader_of(world).self_id
    away = next(one for one in world.scenario.brokers if one != leader)
    world.hosts[away].on_down = None
    world.hosts[away].kill()
    put(world, b"deleted", None)
    churn(world, 60)
    for replica in world.cluster.replicas():
        assert (b"deleted", b"1") not in read_all(replica), "compacted"
    world.hosts[away].start()
    run_for(world, 3_000)
    churn(world, 30)
    run_for(world, 3_000)
    assert len(world.cluster.replicas()) == 3
    for replica in world.cluster.replicas():
        table = dict(read_all(replica))
        assert (table.get(b"deleted"), table[b"other"]) == (None, b"y" * 200)
    # Everybody has the tombstone: it has done its work, here and there.
    for replica in world.cluster.replicas():
        assert b"deleted" not in dict(read_all(replica))
    assert world.checker.violation is None


def test_a_record_may_be_gone_only_where_a_later_one_has_its_key() -> None:
    superseding = Superseding(key_count=1)
    newest = superseding.newest({0: b"p/0/", 4: b"p/4/"})
    group = GroupId(1)
    assert superseding.may_be_gone(newest, 3, b"p/3/", group=group)
    assert not superseding.may_be_gone(newest, 5, b"p/5/", group=group)
    assert not Superseding().may_be_gone(newest, 3, b"p/3/", group=group)
    superseding.note(group, Offset(6), b"p/6/deleted")
    assert superseding.may_be_gone(newest, 5, b"p/5/", group=group)
    assert superseding.may_be_gone(newest, 6, b"p/6/deleted", group=group)
    assert not superseding.may_be_gone(newest, 7, b"p/7/", group=group)
