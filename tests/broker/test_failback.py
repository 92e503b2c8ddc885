"""Leadership goes back to where it is preferred, and only to who stays."""

from collections.abc import Iterator

import pytest
from tests.broker.cluster_world import ClusterWorld
from tests.broker.test_broker_in_a_cluster import fetch, produce
from tests.controller.controller_world import changes

from strandline.broker.failback import LOOK_INTERVAL_MS, TRANSFERS_PER_LOOK_MAX
from strandline.controller.commands import AlterConfigs
from strandline.model.ids import BrokerId

CLUSTER = 4
DELAY_MS = 20_000


@pytest.fixture
def world(cluster: ClusterWorld) -> Iterator[ClusterWorld]:
    rows = (("leader.imbalance.check.interval.seconds", 0, str(DELAY_MS // 1_000)),)
    cluster.submit(AlterConfigs((changes(CLUSTER, "", *rows),)))
    yield cluster


def preferred(world: ClusterWorld, topic: str, index: int = 0) -> BrokerId:
    return world.broker(1).controller.cluster.topics[topic].partitions[index].replicas[0]


def leaders(world: ClusterWorld, topic: str, partitions: int) -> list[int]:
    return [world.leader_of(topic, one) for one in range(partitions)]


def lose_leader(world: ClusterWorld, topic: str) -> int:
    """Kill the preferred leader and bring it back; the broker that leads meanwhile."""
    first = preferred(world, topic)
    assert world.leader_of(topic) == first
    world.hosts[first].kill()
    world.until(lambda: world.leader_of(topic) not in (0, first))
    world.hosts[first].start()
    world.until_started(first)
    return world.leader_of(topic)


def test_leadership_goes_back_once_the_preferred_replica_has_been_in_sync_for_a_while(
    world: ClusterWorld,
) -> None:
    world.create_topic("flights")
    interim = lose_leader(world, "flights")
    assert produce(world, "flights", b"before").error_code == 0
    world.advance(DELAY_MS // 2)
    assert world.leader_of("flights") == interim
    world.advance(DELAY_MS)
    assert world.leader_of("flights") == preferred(world, "flights")
    assert produce(world, "flights", b"after").error_code == 0
    assert fetch(world, "flights") == [b"before", b"after"]


def test_who_comes_and_goes_does_not_lead_again(world: ClusterWorld) -> None:
    world.create_topic("flights")
    interim = lose_leader(world, "flights")
    first = preferred(world, "flights")
    for _ in range(4):
        world.advance(DELAY_MS * 2 // 3)
        world.hosts[first].kill()
        world.advance(5_000)
        world.hosts[first].start()
        world.until_started(first)
        assert world.leader_of("flights") == interim


def test_a_broker_that_was_stopped_gives_nothing_back(world: ClusterWorld) -> None:
    world.create_topic("flights")
    interim = lose_leader(world, "flights")
    broker = world.broker(interim)
    process = world.hosts[interim].process
    assert process is not None
    process.run_now(broker.stop)
    world.advance(3 * DELAY_MS)
    assert world.leader_of("flights") == interim


def test_it_can_be_turned_off(world: ClusterWorld) -> None:
    rows = (("auto.leader.rebalance.enable", 0, "false"),)
    world.submit(AlterConfigs((changes(CLUSTER, "", *rows),)))
    world.create_topic("flights")
    interim = lose_leader(world, "flights")
    world.advance(3 * DELAY_MS)
    assert world.leader_of("flights") == interim


def test_a_few_go_back_at_a_time(world: ClusterWorld) -> None:
    count = 6 * TRANSFERS_PER_LOOK_MAX
    world.create_topic("many", partitions=count)
    wanted = [preferred(world, "many", one) for one in range(count)]
    world.until(lambda: leaders(world, "many", count) == wanted)
    victim = BrokerId(3)
    moved = wanted.count(victim)
    assert moved > TRANSFERS_PER_LOOK_MAX
    world.hosts[victim].kill()
    world.until(lambda: not {0, victim} & set(leaders(world, "many", count)))
    world.hosts[victim].start()
    world.until_started(victim)
    back = 0
    for _ in range(3 * DELAY_MS // LOOK_INTERVAL_MS):
        world.advance(LOOK_INTERVAL_MS)
        now_back = leaders(world, "many", count).count(victim)
        assert now_back - back <= 2 * 2 * TRANSFERS_PER_LOOK_MAX  # Two brokers give back.
        back = now_back
    assert leaders(world, "many", count) == wanted
