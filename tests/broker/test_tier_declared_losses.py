"""A declared loss takes markers of the tier with the rest of the log, on every replica alike.

Source: decisions 0027 and 0057."""

from collections.abc import Iterator

import pytest
from tests.broker.moving_world import TOPIC, MovingWorld, moving_world
from tests.broker.test_declared_losses import (
    CONFIGS,
    HOME,
    LEFT,
    LOST,
    cut,
    declare,
    heal,
    until_more_is_acked,
)
from tests.broker.tiering_world import BUCKET, leader, tiers, until_same, upload


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[MovingWorld]:
    """Five brokers, one topic with voters 3 to 5, a producer that goes on."""
    with moving_world(monkeypatch, HOME, configs=CONFIGS) as made:
        made.until(lambda: len(made.acked) > 12)
        yield made


def test_survivors_state_is_the_truth(world: MovingWorld) -> None:
    upload(world, 0, 5, topic=TOPIC)
    until_same(world, TOPIC)
    cut(world, (LEFT,), LOST)
    world.until(lambda: world.leader_of(TOPIC) in LOST)
    until_more_is_acked(world)
    upload(world, 5, 9, topic=TOPIC)  # The survivor lacks these markers.
    for one in LOST:
        world.hosts[one].kill()
    heal(world, (LEFT,), LOST)
    declare(world, *LOST)
    world.until(lambda: world.leader_of(TOPIC) == LEFT)
    until_more_is_acked(world)
    assert leader(world, TOPIC).tier.state.live_end(BUCKET) == 5
    upload(world, 5, 7, topic=TOPIC)
    for one in LOST:
        world.hosts[one].start()
    world.until_started(*LOST)
    world.until(lambda: world.is_settled(*HOME))
    world.until(lambda: set(HOME) <= set(tiers(world, TOPIC)))
    until_same(world, TOPIC)
    assert {one.state.live_end(BUCKET) for one in tiers(world, TOPIC).values()} == {7}
