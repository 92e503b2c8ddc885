"""A log that begins anew has its configuration told by nobody but the journal."""

import pytest
from tests.simulation.plain_scenario import plain_scenario, run_until_led, started
from tests.simulation.test_return import MS, run_for

from strandline.model.ids import GroupId, Index
from strandline.simulation.scenarios.scenario import ProducerPlan
from strandline.simulation.world.host import SimHost
from strandline.simulation.world.world import World
from strandline.storage.config import LogConfig
from strandline.storage.log.log import Log

PRODUCER = ProducerPlan("p", GroupId(1), -1, False, 10, 5_000)
LOG = LogConfig(segment_bytes=16 * 1024, retention_bytes=16 * 1024)


def missed_a_change(seed: int) -> tuple[World, SimHost]:
    """A broker is down that missed a change of the members' configuration; the others' logs begin
    behind it."""
    world = started(plain_scenario(seed=seed, producers=(PRODUCER,), log=LOG))
    (producer,) = world.producers
    producer.start()
    run_for(world, 500)
    leader_id = next(iter(world.cluster.leading_brokers()))
    away = next(host for broker, host in world.hosts.items() if broker != leader_id)
    away.on_down = None
    away.kill()
    run_for(world, 2_000)
    assert run_until_led(world, limit_ms=10_000) is not None
    leader = next(replica for replica in world.cluster.replicas() if replica.is_serving)
    voters = leader.configuration.voters
    leader.change_configuration(voters=voters, observers=(), min_insync=1)
    changed = leader.log.last_index
    assert world.scheduler.run_until_true(
        lambda: all(replica.log.start_index > changed for replica in world.cluster.replicas()),
        limit_us=world.scheduler.now_us + 60_000 * MS,
    )
    return world, away


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_death_after_a_reset_takes_no_configuration_back(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, away = missed_a_change(seed)
    reset_to = Log.reset_to
    begun: list[Index] = []

    def reset_and_die(log: Log, start_index: Index, *args: object, **named: object) -> None:
        reset_to(log, start_index, *args, **named)  # type: ignore[arg-type]
        begun.append(start_index)
        assert away.process is not None
        raise away.process.die_now()

    monkeypatch.setattr(Log, "reset_to", reset_and_die)
    away.start()
    run_for(world, 5_000)
    assert len(begun) == 1
    for other in world.hosts.values():
        if other is not away:
            other.on_down = None
            other.kill()
    away.start()
    run_for(world, 100)
    (replica,) = world.cluster.replicas()
    assert replica.log.start_index == begun[0]
    assert replica.configuration.min_insync == 1
