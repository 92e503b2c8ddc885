"""Members that are removed are sent nothing more, and fall silent though they never heard of it."""

from tests.simulation.plain_scenario import plain_scenario, started

from strandline.model.ids import BrokerId
from strandline.simulation.invariants.verdicts import observe_rest
from strandline.simulation.swarm.swarm import run_seed

MS = 1_000


def test_who_missed_the_entry_that_removed_it_does_not_ask_for_votes_for_ever() -> None:
    world = started(plain_scenario(brokers=5, groups=2))
    for leader in world.cluster.leading_replicas():
        others = [broker for broker in world.scenario.brokers if broker != leader.self_id]
        voters: list[BrokerId] = [leader.self_id, *others[:2]]
        leader.change_configuration(voters=voters, observers=[], min_insync=1)
    world.scheduler.run_until(world.scheduler.now_us + 10_000 * MS)
    missed = [r for r in world.cluster.replicas() if r.self_id in r.raft.configuration.old_voters]
    assert len(missed) == 4
    observe_rest(world.cluster, world.load)
    assert world.checker.violation is None


def test_the_seed_that_found_it_keeps_every_promise() -> None:
    assert run_seed(771).violation is None
