"""A broker is spared for a while where every partition can be written without it.

Source: docs/decisions/0011-the-life-of-a-broker.md."""

import pytest
from tests.controller.balancer.balancer_world import LOST_AFTER_MS, BalancerWorld
from tests.controller.controller_world import changes

from strandline.controller.balancer.health import SPARED_MS_MAX, Health
from strandline.controller.commands import AlterConfigs, ResourceResults
from strandline.model.ids import BrokerId

KEY = "broker.maintenance.until.ms"
BROKER = 4
FIVE = ("east", "east", "west", "west", "south")
POLICY_VIOLATION = 44


def maintain(world: BalancerWorld, *brokers: int) -> list[tuple[int, str]]:
    rows = [changes(BROKER, str(one), (KEY, 0, "-1")) for one in brokers]
    answer = world.run(AlterConfigs(tuple(rows)))
    assert isinstance(answer, ResourceResults)
    return [(one.error_code, one.message or "") for one in answer.resources]


def test_one_of_three_may_go_and_a_second_one_may_not() -> None:
    world = BalancerWorld(FIVE)
    world.topic(partitions=3, replicas=(1, 3, 5))
    first, second, third = maintain(world, 1, 3, 2)
    assert first == third == (0, "")
    assert second == (
        POLICY_VIOLATION,
        "flights-0 could not be written: it needs 2 of brokers 1, 3, 5; in maintenance: 1; so it "
        "is with 3 partitions",
    )
    assert world.alter("1", KEY, None, scope=BROKER) == (0, "")
    assert maintain(world, 3) == [(0, "")]


def test_who_is_down_counts_and_what_cannot_be_written_anyhow_does_not() -> None:
    world = BalancerWorld(FIVE)
    world.topic(partitions=1, replicas=(1, 3, 5))
    world.down(5)
    ((code, message),) = maintain(world, 1)
    assert code == POLICY_VIOLATION and message.endswith("2 of brokers 1, 3, 5; down: 5")
    world.down(3)
    assert maintain(world, 1) == [(0, "")]


@pytest.mark.parametrize(("replicas", "least"), [((1,), "1"), ((1, 2), "1"), ((1, 2, 3), "3")])
def test_a_partition_that_needs_them_all_refuses(replicas: tuple[int, ...], least: str) -> None:
    world = BalancerWorld(FIVE)
    world.topic(replicas=replicas, configs=[("min.insync.replicas", least)])
    ((code, _),) = maintain(world, 1)
    assert code == POLICY_VIOLATION
    assert maintain(world, 4) == [(0, "")]


def test_new_partitions_are_led_by_others() -> None:
    world = BalancerWorld(FIVE)
    maintain(world, 1)
    world.topic("plain", partitions=20)
    world.topic("ruled", policy="survive: region", partitions=20)
    for name in ("plain", "ruled"):
        assert all(one.replicas[0] != 1 for one in world.state.cluster.topics[name].partitions)


def test_it_is_not_lost_while_it_is_down_but_after_a_day() -> None:
    health = Health()
    both = [BrokerId(1), BrokerId(2)]

    def look(now_ms: int, alive: list[BrokerId]) -> frozenset[BrokerId]:
        return health.step(
            now_ms, brokers=both, alive=alive, lost_after_ms=LOST_AFTER_MS, spared=[BrokerId(1)]
        ).lost

    look(0, both)
    look(1_000, [])
    assert look(1_000 + LOST_AFTER_MS, []) == {2}
    assert look(SPARED_MS_MAX, []) == {2}
    assert look(1_000 + SPARED_MS_MAX, []) == {1, 2}
