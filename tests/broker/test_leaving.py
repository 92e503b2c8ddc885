"""A broker that stops in order hands over the partitions that it leads.

Source: `broker.operations.leaving`."""

from collections.abc import Iterator

import pytest
from tests.broker.cluster_world import VOTERS, ClusterWorld
from tests.controller.controller_world import changes

from strandline.broker.operations.leaving import HAND_OVER_MS_MAX
from strandline.config.broker_life import MAINTENANCE
from strandline.controller.commands import AlterConfigs, ResourceResults
from strandline.model.ids import CONTROLLER_GROUP

PARTITIONS = 6
BROKER, SET = 4, 0


@pytest.fixture
def world() -> Iterator[ClusterWorld]:
    world = ClusterWorld()
    try:
        world.until_started()
        yield world
    finally:
        world.close()


def led_by(world: ClusterWorld, broker: int) -> list[str]:
    replicas = world.broker(broker).replication.replicas.values()
    return [replica.name for replica in replicas if replica.is_leader]


def test_all_that_a_leaving_broker_leads_is_led_elsewhere_without_an_election_time_out(
    world: ClusterWorld,
) -> None:
    world.create_topic("t", partitions=PARTITIONS)
    leaving = next(one for one in world.hosts if world.controller(one).is_leader)
    assert len(led_by(world, leaving)) >= 2
    before_us = world.scheduler.now_us
    world.do(leaving, world.broker(leaving).leave())
    took_ms = (world.scheduler.now_us - before_us) / 1000
    assert took_ms < world.controller(leaving).host.settings.election_timeout_ms / 2
    assert led_by(world, leaving) == []
    others = [one for one in world.hosts if one != leaving]
    world.until(lambda: all(world.leader_of("t", one) in others for one in range(PARTITIONS)))
    assert all(led_by(world, one) for one in others), "one broker got everything"
    assert any(world.controller(one).is_leader for one in others)


def test_nobody_in_maintenance_gets_it_where_another_could_lead(world: ClusterWorld) -> None:
    world.create_topic("t", partitions=PARTITIONS)
    controller = next(one for one in VOTERS if world.controller(one).is_leader)
    leaving, spared, other = sorted(VOTERS, key=lambda one: one != controller)
    for one in (spared, 4):
        row = changes(BROKER, str(one), (MAINTENANCE, SET, "-1"))
        answer = world.submit(AlterConfigs((row,)))
        assert isinstance(answer, ResourceResults)
        if answer.resources[0].error_code:
            assert one == 4
    world.until(lambda: led_by(world, spared) == [])
    held = {one.group for one in world.broker(other).replication.replicas.values()}
    given = [
        one
        for one in world.broker(leaving).replication.replicas.values()
        if one.is_leader and one.group in held
    ]
    assert given
    world.do(leaving, world.broker(leaving).leave())
    wanted = {one.name for one in given}
    world.until(lambda: wanted <= {*led_by(world, other), *led_by(world, 4)})
    assert not wanted & set(led_by(world, spared))


def test_who_is_in_maintenance_gets_it_where_nobody_else_could_lead(world: ClusterWorld) -> None:
    world.create_topic("t", replicas=3)
    leaving = world.leader_of("t")
    spared, gone = (one for one in world.replicas_of("t") if one != leaving)
    row = changes(BROKER, str(spared), (MAINTENANCE, SET, "-1"))
    answer = world.submit(AlterConfigs((row,)))
    assert isinstance(answer, ResourceResults) and answer.resources[0].error_code == 0
    world.hosts[gone].kill()
    world.until(lambda: gone not in world.replicas_of("t")[leaving].in_sync())
    before_us = world.scheduler.now_us
    world.do(leaving, world.broker(leaving).leave())
    assert (world.scheduler.now_us - before_us) / 1000 < HAND_OVER_MS_MAX / 2
    world.until(lambda: world.leader_of("t") == spared)


def test_a_record_is_taken_right_after_the_leader_left(world: ClusterWorld) -> None:
    world.create_topic("t")
    leaving = world.leader_of("t")
    epoch = world.replicas_of("t")[leaving].epoch
    world.do(leaving, world.broker(leaving).leave())
    world.until(lambda: world.leader_of("t") not in (0, leaving))
    assert world.replicas_of("t")[world.leader_of("t")].epoch == epoch + 1


def test_a_whole_cluster_that_ends_at_once_waits_for_nobody(world: ClusterWorld) -> None:
    world.create_topic("t", partitions=PARTITIONS)
    before_us = world.scheduler.now_us
    for one in list(world.hosts):
        world.do(one, world.broker(one).leave())
        world.hosts[one].on_down = None
        world.hosts[one].kill()
    took_ms = (world.scheduler.now_us - before_us) / 1000
    assert took_ms < HAND_OVER_MS_MAX


def test_a_broker_whose_peers_are_gone_ends_after_a_while(world: ClusterWorld) -> None:
    world.create_topic("t")
    leaving = world.leader_of("t")
    for one in world.hosts:
        if one != leaving:
            world.hosts[one].on_down = None
            world.hosts[one].kill()
    before_us = world.scheduler.now_us
    world.do(leaving, world.broker(leaving).leave())
    assert (world.scheduler.now_us - before_us) / 1000 <= HAND_OVER_MS_MAX + 100
    assert world.broker(leaving).replication.replicas[CONTROLLER_GROUP].failed is None
