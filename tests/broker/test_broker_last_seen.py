"""A lost broker is replaced though controllers keep changing; a broker that is only away is not.

Source: docs/decisions/0010-the-balancer.md ("Damping")."""

import random
from collections.abc import Iterator

import pytest
from tests.broker.moving_world import MovingWorld, moving_world
from tests.broker.test_balancing import CLUSTER, alter, findings

from strandline.controller.commands import AlterLabels, LabelsAltered
from strandline.model.ids import BrokerId

LOST_AFTER_MS = 40_000
REIGN_MS = 13_000
"""How long a controller stays: less than a broker takes to be lost, more than others have to be up
before they are given replicas."""
HELD_BY = (2, 4, 5)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[MovingWorld]:
    """Five brokers, one topic, a producer that goes on."""
    with moving_world(monkeypatch, HELD_BY) as made:
        alter(made, CLUSTER, "", "broker.lost.after.ms", str(LOST_AFTER_MS))
        made.advance(10_000)
        yield made


def hand_over(world: MovingWorld) -> None:
    """The controller hands over to another voter that is up."""
    before = world.controller_leader()
    others = [one for one in (1, 2, 3) if one != before and world.hosts[one].program is not None]
    world.controller(before).transfer_leadership(BrokerId(others[0]))
    world.until(lambda: world.controller_leader() not in (0, before))


def kill(world: MovingWorld) -> None:
    """The controller dies, and starts again a second later: it has forgotten what it watched."""
    world.lose_power_of(world.controller_leader(), for_ms=1_000)
    world.until(lambda: world.controller_leader() != 0)


@pytest.mark.parametrize("change", [hand_over, kill])
def test_a_lost_broker_is_replaced_though_no_controller_stays_for_so_long(
    world: MovingWorld, change: object
) -> None:
    assert callable(change)
    world.hosts[5].fail_power()
    gone_ms = 0
    while 5 in world.known.replicas:
        assert gone_ms < 2 * LOST_AFTER_MS
        change(world)
        world.advance(REIGN_MS)
        gone_ms += REIGN_MS
        if gone_ms < LOST_AFTER_MS:
            assert not world.known.is_moving
    world.finish(*world.known.replicas)


def test_a_broker_that_comes_and_goes_while_controllers_change_moves_nothing(
    world: MovingWorld,
) -> None:
    rng = random.Random(1)
    for _ in range(4):
        world.hosts[5].fail_power()
        for _ in range(rng.randint(1, 3)):
            rng.choice((hand_over, kill))(world)
            world.advance(rng.randint(500, 3_000))
        world.hosts[5].start()
        world.until_started(5)
        if rng.random() < 0.5:
            hand_over(world)  # It is heard by another one than who had missed it.
        world.advance(rng.randint(1_500, 4_000))
        assert not world.known.is_moving
    assert findings(world).begun == {}
    world.finish(*HELD_BY)


def test_what_the_next_controller_shows_is_since_when_the_broker_is_silent(
    world: MovingWorld,
) -> None:
    world.hosts[5].fail_power()
    world.advance(12_000)
    hand_over(world)
    world.advance(3_000)
    now = world.broker(world.controller_leader()).services.clock.monotonic_ms()
    down_ms = now - findings(world).condition.down_since_ms[BrokerId(5)]
    assert 12_000 <= down_ms <= 16_000


def test_other_labels_of_a_silent_broker_do_not_make_it_heard(world: MovingWorld) -> None:
    world.hosts[5].fail_power()
    world.advance(12_000)
    wanted = AlterLabels(brokers=(BrokerId(5),), changes=(("rack", "r2"),))
    assert isinstance(world.submit(wanted, at=4), LabelsAltered)
    hand_over(world)
    world.advance(3_000)
    now = world.broker(world.controller_leader()).services.clock.monotonic_ms()
    down_ms = now - findings(world).condition.down_since_ms[BrokerId(5)]
    assert 12_000 <= down_ms <= 16_000


@pytest.mark.parametrize("jump_ms", [-3_600_000, 3_600_000])
def test_a_clock_that_jumps_makes_nobody_lost(world: MovingWorld, jump_ms: int) -> None:
    world.hosts[5].fail_power()
    world.advance(8_000)
    for one in (1, 2, 3):
        world.hosts[one].clock.jump_wall(jump_ms)
    hand_over(world)
    world.advance(LOST_AFTER_MS - 8_000 - 5_000)
    assert not world.known.is_moving
    world.until(lambda: 5 not in world.known.replicas)


def test_controllers_that_were_paused_take_nobody_for_lost(world: MovingWorld) -> None:
    """Broker 5 is cut off while the silence is watched, and heard again while no controller
    listens."""
    ways = [(a, b) for one in (1, 2, 3, 4) for a, b in ((one, 5), (5, one))]
    for source, target in ways:
        world.fabric.cut(BrokerId(source), BrokerId(target))
    world.advance(12_000)
    for one in (1, 2, 3):
        world.hosts[one].pause()
    world.advance(LOST_AFTER_MS)
    for source, target in ways:
        world.fabric.heal(BrokerId(source), BrokerId(target))
    for one in (1, 2, 3):
        world.hosts[one].resume()
    world.until(lambda: world.controller_leader() != 0)
    world.advance(12_000)
    assert not world.known.is_moving
    assert findings(world).begun == {}
    assert world.broker(1).controller.cluster.silent_ms == {}
    world.finish(*HELD_BY)


def test_only_what_was_watched_while_there_was_a_controller_counts(world: MovingWorld) -> None:
    world.hosts[5].fail_power()
    world.advance(12_000)
    (noted,) = world.broker(4).controller.cluster.silent_ms.values()
    assert 9_000 <= noted <= 12_000
    watched = world.broker(4).services.balancing.last_seen
    before = watched.known_ms[BrokerId(5)]
    for one in (1, 2, 3):
        world.hosts[one].kill()
    world.advance(20_000)
    assert watched.known_ms[BrokerId(5)] <= before + 3_000
