"""A replica whose log comes from several others, in parts, keeps no key that was deleted.

Why:    replicas compact at different times. One that takes what is before a tombstone from who has
        not compacted, and what is behind it from who has, sees no tombstone.
Source: design section 4; decision 0037."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.simulation.full_speed import leader_of
from tests.simulation.plain_scenario import plain_scenario, started
from tests.simulation.test_compaction import BRIEF, churn, clean_all, put, read_all, run_for

from strandline.base.errors import ApiError, StorageError
from strandline.model.ids import BrokerId, Offset
from strandline.protocol.errors import Error
from strandline.records.batch import HEADER_BYTES, iterate_headers
from strandline.records.record import Record, build_batch
from strandline.replication.repair.gap_fetch import METHOD
from strandline.replication.replica import tombstones
from strandline.replication.replica.compactor import Compactor
from strandline.replication.replica.replica import Replica
from strandline.replication.settings import ReplicationSettings
from strandline.simulation.invariants.facts import DeletionAsked
from strandline.simulation.world.world import World

SLOW_COPIES = ReplicationSettings(recovery_bytes_per_s=32 * 1024, append_bytes_max=4 * 1024)
KEY = b"deleted"


@pytest.fixture
def compacting(monkeypatch: pytest.MonkeyPatch) -> set[BrokerId]:
    """Brokers that compact; none at first."""
    brokers: set[BrokerId] = set()
    add = Compactor.add

    def add_some(self: Compactor, replica: Replica) -> None:
        if replica.self_id in brokers:
            add(self, replica)

    monkeypatch.setattr(Compactor, "add", add_some)
    return brokers


def let_go_what_everybody_has(patch: pytest.MonkeyPatch) -> None:
    """The planted mistake: whether the others still have what a tombstone deletes is not asked."""
    patch.setattr(tombstones, "outlived_index", lambda leader, held_index: held_index)


def at(world: World, broker: int) -> Replica:
    return next(one for one in world.cluster.replicas() if one.self_id == broker)


def delete_a_key(world: World) -> None:
    """And write enough behind it that every log could be compacted beyond that."""
    put(world, KEY, b"1")
    churn(world, 200)
    put(world, KEY, None)
    churn(world, 100)
    run_for(world, 3_000)
    churn(world, 20)


def lead(world: World, broker: BrokerId) -> None:
    old = leader_of(world)
    process = world.hosts[old.self_id].process
    assert process is not None
    process.run_now(lambda: old.transfer_leadership(broker))
    assert world.scheduler.run_until_true(
        lambda: any(one.self_id == broker and one.is_serving for one in world.cluster.replicas()),
        limit_us=world.scheduler.now_us + 5_000_000,
    )


def copied_by_two_leaders(compacting: set[BrokerId]) -> World:
    """A new replica has half of what its first leader has when another one leads."""
    scenario = plain_scenario(brokers=4, settings=SLOW_COPIES, log=BRIEF, one_way_us=5_000)
    (group,) = scenario.groups
    new = group.voters[-1]
    world = started(replace(scenario, groups=(replace(group, voters=group.voters[:-1]),)))
    first = leader_of(world).self_id
    second = next(one for one in group.voters[:-1] if one != first)
    compacting.add(second)
    delete_a_key(world)
    leader = leader_of(world)
    assert leader.self_id == first
    process = world.hosts[first].process
    assert process is not None
    process.run_now(lambda: leader.change_configuration(voters=group.voters[:-1], observers=(new,)))
    assert world.scheduler.run_until_true(
        lambda: any(
            one.self_id == new and one.log.end_offset > 10 for one in world.cluster.replicas()
        ),
        limit_us=world.scheduler.now_us + 10_000_000,
    )
    lead(world, second)
    assert at(world, new).log.end_offset < 150
    run_for(world, 30_000)
    assert at(world, new).log.end_offset == at(world, second).log.end_offset
    compacting.update(world.scenario.brokers)
    churn(world, 60)
    run_for(world, 3_000)
    return world


def segment_of(replica: Replica, offset: Offset) -> str:
    row = replica.log._row.segments
    segment = next(one for one in row if one.name.base_offset <= offset < one.end_offset)
    return segment.path(".log")


def mended_from_who_has_compacted(compacting: set[BrokerId]) -> World:
    """The tombstone rots in a log that still has what it deletes."""
    world = started(plain_scenario(log=BRIEF))
    damaged = at(world, next(b for b in world.scenario.brokers if b != leader_of(world).self_id))
    compacting.update(one for one in world.scenario.brokers if one != damaged.self_id)
    delete_a_key(world)
    tombstone = next(
        Offset(offset)
        for offset, (key, value) in enumerate(read_all(damaged))
        if key == KEY and value is None
    )
    path = segment_of(damaged, tombstone)
    host = world.hosts[damaged.self_id]
    for bit in range(800, 8 * host.disk.size_of(path), 800):
        host.disk.rot(path, bit)
    assert host.process is not None
    error = StorageError(path, 0, expected="a batch", found="rot")
    host.process.run_now(lambda: damaged.host.repairs.suspect(damaged, error))
    run_for(world, 3_000)
    assert damaged.host.repairs.mended_count
    compacting.update(world.scenario.brokers)
    churn(world, 60)
    run_for(world, 3_000)
    return world


def rotten_before_its_first_pass(compacting: set[BrokerId]) -> World:
    """One bit of the tombstone flips, before its log is compacted; the scrub finds it later."""
    world = started(plain_scenario(log=BRIEF))
    damaged = at(world, next(b for b in world.scenario.brokers if b != leader_of(world).self_id))
    put(world, KEY, b"1")
    churn(world, 30)
    put(world, KEY, None)
    tombstone = Offset(damaged.log.end_offset - 1)
    churn(world, 30)
    path = segment_of(damaged, tombstone)
    row = damaged.log._row.segments
    segment = next(one for one in row if one.path(".log") == path)
    header = next(
        one for one in segment.headers(0, segment.size_bytes) if one.base_offset == tombstone
    )
    host = world.hosts[damaged.self_id]
    host.disk.rot(path, 8 * (header.position + HEADER_BYTES) + 3)
    compacting.update(world.scenario.brokers)
    for _ in range(3):
        churn(world, 40)
        run_for(world, 3_000)
    assert damaged.host.repairs.mended_count
    return world


Way = Callable[[set[BrokerId]], World]
WAYS = (copied_by_two_leaders, mended_from_who_has_compacted, rotten_before_its_first_pass)


@pytest.mark.parametrize("way", WAYS)
def test_a_key_stays_deleted_in_a_log_of_two_parts(way: Way, compacting: set[BrokerId]) -> None:
    world = way(compacting)
    for replica in world.cluster.replicas():
        assert dict(read_all(replica)).get(KEY) is None
    for _ in range(3):
        churn(world, 30)
        run_for(world, 2_000)
    # Nobody has anything any more that the tombstone deletes: it goes, everywhere.
    for replica in world.cluster.replicas():
        assert KEY not in dict(read_all(replica))


@pytest.mark.parametrize("way", WAYS[:2])
def test_a_tombstone_that_goes_while_somebody_has_what_it_deletes_is_found(
    way: Way, compacting: set[BrokerId], monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go_what_everybody_has(monkeypatch)
    world = way(compacting)
    assert b"1" in [dict(read_all(replica)).get(KEY) for replica in world.cluster.replicas()]


def test_a_configuration_that_may_be_lost_lets_no_tombstone_go(compacting: set[BrokerId]) -> None:
    """A leader that is cut off drops the observer that still has what the tombstone deletes."""
    scenario = plain_scenario(brokers=4, log=BRIEF)
    (group,) = scenario.groups
    *voters, late = group.voters
    group = replace(group, voters=tuple(voters), observers=(late,))
    world = started(replace(scenario, groups=(group,)))
    leader = leader_of(world)
    compacting.update(voters)
    delete_a_key(world)
    compacting.discard(leader.self_id)
    churn(world, 25)
    for one in scenario.brokers:
        if one != leader.self_id:
            world.fabric.cut(leader.self_id, one)
            world.fabric.cut(one, leader.self_id)
    process = world.hosts[leader.self_id].process
    assert process is not None
    process.run_now(lambda: leader.change_configuration(voters=tuple(voters), observers=()))
    assert late not in leader.configuration.members
    compacting.add(leader.self_id)
    process.run_now(leader.clean)
    run_for(world, 400)
    assert leader.is_leader
    assert (KEY, None) in read_all(leader)


def write(world: World, key: bytes, value: bytes | None) -> None:
    """One record, over a long way; then all logs are looked after."""
    leader = leader_of(world)
    process = world.hosts[leader.self_id].process
    assert process is not None
    batch = build_batch([Record(0, 1_000, key, value)])
    headers = list(iterate_headers(batch))
    process.run_now(lambda: leader.replicate([batch], headers, acks=-1, done=lambda result: None))
    run_for(world, 400)
    clean_all(world)


def test_who_mends_a_log_does_not_count_as_clean_meanwhile(compacting: set[BrokerId]) -> None:
    """Its helper has what the tombstone deletes when it is asked, and has compacted before that is
    here: both had said that they were clean, and the tombstone, that rotted too, had gone."""
    log = replace(BRIEF, delete_retention_ms=100)
    world = started(plain_scenario(log=log, one_way_us=50_000))
    helper = leader_of(world)
    damaged = at(world, next(one for one in world.scenario.brokers if one != helper.self_id))
    compacting.update(one for one in world.scenario.brokers if one != helper.self_id)
    write(world, KEY, b"1")
    for _ in range(60):
        write(world, b"other", b"y" * 20_000)
    for number in range(3):
        write(world, b"alive%d" % number, b"z" * 1_500)
    tombstone = damaged.log.end_offset
    write(world, KEY, None)
    for _ in range(8):
        write(world, b"other", b"y" * 1_500)
        run_for(world, 1_000)
    host = world.hosts[damaged.self_id]
    first, last = segment_of(damaged, Offset(0)), segment_of(damaged, tombstone)
    assert first != last
    for path in (first, last):
        for byte in range(80, host.disk.size_of(path), 100):
            host.disk.rot(path, 8 * byte)
    error = StorageError("", 0, expected="a batch", found="rot")
    assert host.process is not None
    host.process.run_now(lambda: damaged.host.repairs.suspect(damaged, error))
    run_for(world, 250)
    compacting.add(helper.self_id)
    for _ in range(40):
        write(world, b"other", b"y" * 1_500)
    assert damaged.host.repairs.mended_count == 2
    for replica in world.cluster.replicas():
        assert KEY not in dict(read_all(replica))


def test_a_gap_that_goes_with_its_segment_is_forgotten(compacting: set[BrokerId]) -> None:
    """Nobody could help; then retention took it. It was looked for again and again, and nothing
    behind it was mended."""
    world = started(plain_scenario(log=BRIEF))
    damaged = at(world, next(b for b in world.scenario.brokers if b != leader_of(world).self_id))
    churn(world, 40)
    others = [one for one in world.scenario.brokers if one != damaged.self_id]
    for one in others:
        world.hosts[one].on_down = None
        world.hosts[one].kill()
    first, second = damaged.log._row.segments[:2]
    host = world.hosts[damaged.self_id]
    assert host.process is not None
    host.disk.rot(first.path(".log"), 800)
    error = StorageError(first.path(".log"), 0, expected="a batch", found="rot")
    host.process.run_now(lambda: damaged.host.repairs.suspect(damaged, error))
    run_for(world, 2_000)
    assert damaged.host.repairs._gaps
    world.checker.deletion_asked(DeletionAsked(damaged.group, second.name.base_offset))
    host.process.run_now(lambda: damaged.log.remove_segments_before(second.name.base_index))
    for one in others:
        world.hosts[one].start()
    run_for(world, 30_000)
    assert not damaged.host.repairs._gaps


def test_others_help_to_mend_only_once_the_leader_knows(compacting: set[BrokerId]) -> None:
    """It may count this log as clean until then, and whoever helps may compact meanwhile."""
    world = started(plain_scenario(log=BRIEF))
    leader = leader_of(world)
    damaged = at(world, next(one for one in world.scenario.brokers if one != leader.self_id))
    churn(world, 40)
    host = world.hosts[damaged.self_id]
    assert host.process is not None
    path = damaged.log._row.segments[0].path(".log")
    host.disk.rot(path, 800)

    async def say_nothing(sender: BrokerId, payload: bytes) -> bytes:
        await asyncio.Event().wait()
        return b""

    async def refuse(sender: BrokerId, payload: bytes) -> bytes:
        raise ApiError(Error.KAFKA_STORAGE_ERROR, "damaged here, too")

    handlers = leader.host.calls._handlers
    handlers[METHOD] = say_nothing
    error = StorageError(path, 0, expected="a batch", found="rot")
    host.process.run_now(lambda: damaged.host.repairs.suspect(damaged, error))
    run_for(world, 15_000)
    assert damaged.host.repairs._gaps and not damaged.host.repairs.mended_count
    handlers[METHOD] = refuse
    run_for(world, 20_000)
    assert damaged.host.repairs.mended_count
    assert leader.is_leader
