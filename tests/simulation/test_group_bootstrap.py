"""Nobody outside of the group knows whose disk was lost; a new group is told from a forgotten one.

Source: `replication/host/bootstrap.py`; VR Revisited 4.3; reliability reference 1b."""

from dataclasses import replace

import pytest
from tests.simulation.plain_scenario import plain_scenario, run_until_led, started

from strandline.model.ids import BrokerId, GroupId
from strandline.raft.core import Raft
from strandline.raft.events import DeclaredNew
from strandline.replication.host.replication import Replication
from strandline.replication.replica.replica import Replica
from strandline.simulation.scenarios.scenario import ProducerPlan, Scenario
from strandline.simulation.swarm.swarm import run_scenario
from strandline.simulation.world.host import SimHost
from strandline.simulation.world.member import Member
from strandline.simulation.world.world import World

MS = 1_000
PRODUCER = ProducerPlan("p", GroupId(1), -1, False, 20, 50)


def asking_scenario(seed: int, *, brokers: int = 3) -> Scenario:
    return replace(
        plain_scenario(seed=seed, brokers=brokers, producers=(PRODUCER,)), asks_voters=True
    )


def run_for(world: World, duration_ms: int) -> None:
    world.scheduler.run_until(world.scheduler.now_us + duration_ms * MS)
    assert world.checker.violation is None


def hosts_in_order(world: World) -> tuple[SimHost[Member], list[SimHost[Member]]]:
    """The leader's host, and the others; none of them starts again by itself."""
    for host in world.hosts.values():
        host.on_down = None
    leader = world.cluster.leading_brokers()[0]
    return world.hosts[leader], [world.hosts[b] for b in world.scenario.brokers if b != leader]


def replica_of(host: SimHost[Member]) -> Replica:
    assert host.program is not None
    return host.program.replication.replicas[GroupId(1)]


def lose_committed_records(world: World) -> list[SimHost[Member]]:
    """[who has all, who has all and then loses its disk, who lacks the last records]; all down."""
    (producer,) = world.producers
    producer.start()
    run_for(world, 1_000)
    leader, (witness, stale) = hosts_in_order(world)
    stale.kill()
    run_for(world, 1_000)
    producer.stop()
    run_for(world, 2_000)
    assert producer.is_idle
    leader.kill()
    witness.kill()
    witness.lose_disk()
    return [leader, witness, stale]


@pytest.mark.parametrize("seed", range(1, 6))
def test_a_voter_that_lost_its_disk_elects_nobody_who_lacks_what_was_committed(seed: int) -> None:
    world = started(asking_scenario(seed))
    leader, wiped, stale = lose_committed_records(world)
    wiped.start()
    stale.start()
    run_for(world, 15_000)
    assert world.cluster.leading_brokers() == []
    assert replica_of(wiped).raft.has_lost_state
    leader.start()
    assert run_until_led(world, limit_ms=10_000) is not None
    run_for(world, 3_000)
    assert not replica_of(wiped).raft.has_lost_state
    world._audit(is_final=True)
    assert world.checker.violation is None


def test_were_it_taken_for_new_committed_records_would_be_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So that the test above is known to look where it ought to."""
    open_group = Replication.open_group
    monkeypatch.setattr(
        Replication,
        "open_group",
        lambda self, spec: open_group(self, replace(spec, asks_voters=False)),
    )
    world = started(asking_scenario(1))
    _, wiped, stale = lose_committed_records(world)
    wiped.start()
    stale.start()
    world.scheduler.run_until(world.scheduler.now_us + 15_000 * MS)
    assert "LeaderCompleteness" in str(world.checker.violation)


@pytest.mark.parametrize("seed", range(1, 4))
def test_where_most_disks_are_lost_nobody_goes_on_without_being_told_to(seed: int) -> None:
    world = started(asking_scenario(seed))
    leader, wiped, stale = lose_committed_records(world)
    stale.lose_disk()
    for host in (leader, wiped, stale):
        host.start()
    run_for(world, 15_000)
    assert world.cluster.leading_brokers() == []


@pytest.mark.parametrize("brokers", [2, 3, 5])
def test_a_group_is_founded_once_all_its_voters_have_been_there(brokers: int) -> None:
    world = World(asking_scenario(1, brokers=brokers))
    *first, last = (world.hosts[BrokerId(number + 1)] for number in range(brokers))
    for host in first:
        host.start()
    run_for(world, 5_000)
    assert world.cluster.leading_brokers() == []
    last.start()
    took_ms = run_until_led(world, limit_ms=5_000)
    assert took_ms is not None and took_ms < 1_500
    run_for(world, 1_000)
    assert not any(replica.raft.has_lost_state for replica in world.cluster.replicas())


def test_what_has_been_found_out_is_not_asked_again_after_a_restart() -> None:
    """A new group's voters that forgot it would find a candidate's epoch, and wait for nobody."""
    world = started(asking_scenario(1))
    _, (one, other) = hosts_in_order(world)
    one.kill()
    other.kill()
    one.start()
    assert not replica_of(one).raft.has_lost_state
    run_for(world, 2_000)
    assert run_until_led(world, limit_ms=5_000) is not None


@pytest.mark.parametrize("seed", [11, 20])
def test_who_hears_of_an_epoch_while_it_notes_that_the_group_is_new_remembers_both(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The epoch is noted behind that; one of these voters was recovering again after a restart."""
    epochs = []
    declare = Raft._on_declared_new

    def noted(self: Raft, event: DeclaredNew) -> None:
        epochs.append(self.epoch)
        declare(self, event)

    monkeypatch.setattr(Raft, "_on_declared_new", noted)
    world = started(replace(asking_scenario(seed), flush_us=(3_000, 40_000)))
    run_for(world, 1_000)
    assert max(epochs) > 0  # Somebody had heard of one.
    for host in world.hosts.values():
        assert host.program is not None
        journal = host.program.replication.durable.journal
        assert journal is not None
        noted = journal.get(GroupId(1))
        assert noted is not None and not noted.lost_state


@pytest.mark.simulation
@pytest.mark.parametrize("seed", range(1, 25))
def test_all_invariants_hold_where_brokers_find_out_by_themselves(seed: int) -> None:
    scenario = Scenario.draw(seed).of_groups()
    weights = {k: w for k, w in scenario.fault_weights.items() if k != "configuration-change"}
    scenario = replace(scenario, asks_voters=True, fault_weights={**weights, "lost-disk": 3})
    assert run_scenario(scenario).violation is None
