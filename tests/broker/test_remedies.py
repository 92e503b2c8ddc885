"""What an operator is told to do after a loss makes writes go on. Source: decision 0026."""

import pytest
from tests.broker.moving_world import TOPIC, MovingWorld, moving_world

from strandline.controller.commands import (
    AlterConfigs,
    ConfigChange,
    ConfigOperation,
    ResourceChanges,
    ResourceResults,
    ResourceType,
)

SHRINK, MIN_INSYNC = "voters.shrink.enable", "min.insync.replicas"


def alter(world: MovingWorld, **values: str) -> None:
    """Have keys of the topic set, named with underscores."""
    changes = tuple(
        ConfigChange(key=name.replace("_", "."), operation=ConfigOperation.SET, value=value)
        for name, value in values.items()
    )
    world.until(lambda: world.controller_leader() != 0)
    at = world.controller_leader()
    answer = world.submit(
        AlterConfigs((ResourceChanges(ResourceType.TOPIC, TOPIC, changes),)), at=at
    )
    assert isinstance(answer, ResourceResults), answer
    assert [one.error_code for one in answer.resources] == [0], answer


def goes_on(world: MovingWorld) -> None:
    """Until something more is acknowledged."""
    before = len(world.acked)
    world.until(lambda: len(world.acked) > before)


def is_stopped(world: MovingWorld) -> None:
    """Nothing that was sent from now on is acknowledged."""
    world.advance(5_000)
    before = len(world.acked)
    world.advance(15_000)
    assert len(world.acked) == before


@pytest.mark.parametrize("shrinks", ["true", "false"])
def test_half_of_the_voters_go_on_once_voters_may_leave(
    monkeypatch: pytest.MonkeyPatch, shrinks: str
) -> None:
    configs = ((MIN_INSYNC, "3"), (SHRINK, shrinks))
    with moving_world(monkeypatch, (2, 3, 4, 5), configs=configs) as world:
        goes_on(world)
        world.hosts[4].kill()
        world.hosts[5].kill()
        is_stopped(world)
        alter(world, voters_shrink_enable="true", min_insync_replicas="2")
        goes_on(world)
        world.check()
