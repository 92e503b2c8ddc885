"""Leadership moves to the region that produces most, if that lasts: whole brokers, in virtual time.

Source: decision 0014."""

from collections.abc import Iterator

import pytest
from tests.broker.broker_world import batch_of
from tests.broker.cluster_world import ClusterWorld
from tests.controller.controller_world import changes

from strandline.broker.leadership.failback import LOOK_INTERVAL_MS
from strandline.controller.commands import (
    AlterConfigs,
    AlterReassignments,
    ResourceResults,
    WantedReplicas,
)
from strandline.model.ids import BrokerId
from strandline.protocol.messages.describe_writers import (
    DescribeWritersRequest,
    DescribeWritersResponse,
    WrittenPartition,
)
from strandline.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

TOPIC, CLUSTER, BROKER = 2, 4, 4
REGIONS = {1: "east", 2: "west", 3: "south", 4: "west"}
NETWORKS = "east=10.1.0.0/16,west=10.2.0.0/16,south=10.3.0.0/16"
FOLLOW = '{"leaders":{"follow":"writers","failback_delay_ms":30000}}'
PERIOD_MS = 30_000
WRITE_INTERVAL_MS = 5_000
EAST, WEST, SOUTH, NOWHERE = "10.1.0.1", "10.2.0.1", "10.3.0.1", "192.0.2.1"


@pytest.fixture
def world() -> Iterator[ClusterWorld]:
    made = ClusterWorld(REGIONS, regions=REGIONS)
    made.until_started()
    alter(made, CLUSTER, "", "client.networks", NETWORKS)
    yield made
    made.close()


def alter(world: ClusterWorld, type_: int, name: str, key: str, value: str) -> None:
    answer = world.submit(AlterConfigs((changes(type_, name, (key, 0, value)),)))
    assert isinstance(answer, ResourceResults) and answer.resources[0].error_code == 0, answer


def create(world: ClusterWorld, name: str = "flights", policy: str = FOLLOW) -> None:
    """One partition on all four brokers, led in the east."""
    configs = (("placement.policy", policy),) if policy else ()
    world.create_topic(name, replicas=4, configs=configs)
    to_broker(world, 1, name)


def to_broker(world: ClusterWorld, broker: int, name: str = "flights") -> None:
    """Have a partition led by this broker, and say that it should be."""
    order = tuple(BrokerId(one) for one in (broker, *({1, 2, 3, 4} - {broker})))
    if order_of(world, name) != order:
        wanted = WantedReplicas(topic=name, index=0, replicas=order)
        world.submit(AlterReassignments((wanted,)))
    hand_to(world, broker, name)


def hand_to(world: ClusterWorld, broker: int, name: str = "flights") -> None:
    """Have it led by this broker, wherever it should be led."""
    world.until(lambda: world.leader_of(name) != 0)
    leader = world.leader_of(name)
    if leader != broker:
        process = world.hosts[leader].process
        assert process is not None
        replica = world.replicas_of(name)[leader]
        process.run_now(lambda: replica.transfer_leadership(BrokerId(broker)))
    world.until(lambda: world.leader_of(name) == broker)


def produce(world: ClusterWorld, host: str, *, name: str = "flights", size: int = 100) -> None:
    """A record from an address; it must not fail, though leadership may move meanwhile."""
    world.until(lambda: world.leader_of(name) != 0)
    leader = world.leader_of(name)
    timestamp = world.broker(leader).services.clock.wall_ms()
    data = PartitionProduceData(records=batch_of(b"x" * size, timestamp=timestamp))
    request = ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=name, partition_data=[data])],
    )
    answer = world.ask(leader, request, ProduceResponse, 9, host=host)
    assert answer.responses[0].partition_responses[0].error_code == 0


def write(world: ClusterWorld, *hosts: str, duration_ms: int, name: str = "flights") -> list[int]:
    """One record from each of these addresses periodically; the leader at each time."""
    leaders = []
    for _ in range(duration_ms // WRITE_INTERVAL_MS):
        for host in hosts:
            produce(world, host, name=name)
        world.advance(WRITE_INTERVAL_MS)
        leaders.append(world.leader_of(name))
    return leaders


def order_of(world: ClusterWorld, name: str = "flights") -> tuple[int, ...]:
    return world.broker(1).controller.cluster.topics[name].partitions[0].replicas


def writers_of(world: ClusterWorld, name: str = "flights") -> WrittenPartition:
    """What the leader says about its only partition."""
    request = DescribeWritersRequest(topic=name)
    answer = world.ask(world.leader_of(name), request, DescribeWritersResponse, 0)
    (partition,) = answer.partitions
    return partition


def test_leadership_goes_to_who_produces_most_and_every_broker_knows_it(
    world: ClusterWorld,
) -> None:
    create(world)
    leaders = write(world, WEST, duration_ms=PERIOD_MS - 2 * LOOK_INTERVAL_MS)
    assert set(leaders) == {1}
    assert writers_of(world).code == "waits"
    leaders = write(world, WEST, duration_ms=4 * LOOK_INTERVAL_MS)
    assert leaders[-1] == 2
    # First those of the region that produces most, then the others as they were.
    assert order_of(world) == (2, 4, 1, 3)
    write(world, WEST, duration_ms=2 * LOOK_INTERVAL_MS)
    assert (writers_of(world).code, writers_of(world).text) == ("here", "west produces 100 %")
    assert [one.region for one in writers_of(world).regions] == ["west"]


def test_it_stays_there_and_failback_does_not_undo_it(world: ClusterWorld) -> None:
    create(world)
    write(world, WEST, duration_ms=PERIOD_MS + 3 * LOOK_INTERVAL_MS)
    assert set(write(world, WEST, duration_ms=6 * PERIOD_MS)) == {2}


def test_a_topic_that_does_not_follow_stays_and_is_not_counted(world: ClusterWorld) -> None:
    create(world, policy="")
    assert set(write(world, WEST, duration_ms=3 * PERIOD_MS)) == {1}
    leader = world.broker(1).services
    assert not leader.writers.verdicts and not leader.writers._counts
    answer = world.ask(1, DescribeWritersRequest(topic="flights"), DescribeWritersResponse, 0)
    assert answer.partitions == []
    answer = world.ask(1, DescribeWritersRequest(topic="none"), DescribeWritersResponse, 0)
    assert answer.partitions == []


def test_addresses_in_no_network_move_nothing(world: ClusterWorld) -> None:
    create(world)
    assert set(write(world, NOWHERE, WEST, duration_ms=3 * PERIOD_MS)) == {1}
    assert writers_of(world).code == "unknown"
    assert {one.region for one in writers_of(world).regions} == {"", "west"}


def test_producers_that_take_turns_move_it_a_few_times_and_no_more(world: ClusterWorld) -> None:
    create(world)
    leaders: list[int] = []
    for _ in range(6):
        leaders += write(world, WEST, duration_ms=2 * PERIOD_MS)
        leaders += write(world, EAST, duration_ms=2 * PERIOD_MS)
    moves = [number for number in range(1, len(leaders)) if leaders[number] != leaders[number - 1]]
    assert 1 <= len(moves) <= 4
    assert max(moves) < len(leaders) / 2  # It has stayed ever since.
    assert set(leaders) == {1, 2}


def test_who_has_no_replica_draws_nothing_and_the_leader_says_so(world: ClusterWorld) -> None:
    alter(world, CLUSTER, "", "client.networks", NETWORKS + ",north=10.4.0.0/16")
    create(world)
    assert set(write(world, "10.4.0.1", duration_ms=2 * PERIOD_MS)) == {1}
    found = writers_of(world)
    assert (found.code, found.text) == (
        "no-voter", "north produces 100 %, and no replica is there",
    )  # fmt: skip


def test_brokers_in_maintenance_and_those_that_are_down_are_not_chosen(
    world: ClusterWorld,
) -> None:
    create(world)
    alter(world, BROKER, "2", "broker.maintenance.until.ms", "-1")
    write(world, WEST, duration_ms=PERIOD_MS + 3 * LOOK_INTERVAL_MS)
    assert world.leader_of("flights") == 4
    to_broker(world, 1)
    world.hosts[BrokerId(4)].kill()
    assert set(write(world, WEST, duration_ms=5 * PERIOD_MS)) == {1}
    assert writers_of(world).code in ("behind", "spared")
    world.hosts[BrokerId(4)].start()
    world.until_started(4)
    assert write(world, WEST, duration_ms=3 * LOOK_INTERVAL_MS)[-1] == 4


def test_a_table_that_is_taken_away_leaves_leaders_where_they_are(world: ClusterWorld) -> None:
    create(world)
    world.submit(AlterConfigs((changes(CLUSTER, "", ("client.networks", 1, None)),)))
    assert set(write(world, WEST, duration_ms=2 * PERIOD_MS)) == {1}
    assert writers_of(world).code == "no-networks"
    alter(world, CLUSTER, "", "client.networks", NETWORKS)
    assert write(world, WEST, duration_ms=PERIOD_MS + 3 * LOOK_INTERVAL_MS)[-1] == 2


def test_a_topic_that_follows_no_more_is_not_told_of_any_more(world: ClusterWorld) -> None:
    create(world)
    write(world, WEST, duration_ms=2 * LOOK_INTERVAL_MS)
    assert world.broker(1).services.writers.verdicts
    world.submit(AlterConfigs((changes(TOPIC, "flights", ("placement.policy", 1, None)),)))
    assert set(write(world, WEST, duration_ms=2 * PERIOD_MS)) == {1}
    assert not world.broker(1).services.writers.verdicts


@pytest.mark.parametrize("key", ["balancer.enable", "auto.leader.rebalance.enable"])
def test_it_can_be_paused(world: ClusterWorld, key: str) -> None:
    create(world)
    alter(world, CLUSTER, "", key, "false")
    assert set(write(world, WEST, duration_ms=2 * PERIOD_MS)) == {1}
    assert writers_of(world).code == "paused" and key in writers_of(world).text
    alter(world, CLUSTER, "", key, "true")
    assert write(world, WEST, duration_ms=3 * LOOK_INTERVAL_MS)[-1] == 2


# ---- after a failure -----------------------------------------------------------------------------


def test_after_a_failure_another_broker_of_the_same_region_is_elected(world: ClusterWorld) -> None:
    create(world)
    to_broker(world, 2)
    world.hosts[BrokerId(2)].pause()
    world.until(lambda: any(world.replicas_of("flights")[one].is_serving for one in (1, 3, 4)))
    assert world.replicas_of("flights")[4].is_serving


def test_leadership_is_not_given_back_where_nobody_writes_any_more(world: ClusterWorld) -> None:
    """While the preferred leader was down, its writers went to where another one was elected."""
    create(world)
    to_broker(world, 2)
    world.hosts[BrokerId(2)].kill()
    world.until(lambda: world.leader_of("flights") not in (0, 2))
    hand_to(world, 3)
    write(world, SOUTH, duration_ms=3 * LOOK_INTERVAL_MS)
    (wait,) = world.broker(3).services.failback.waits()
    assert wait.code == "writers"
    write(world, SOUTH, duration_ms=PERIOD_MS)
    assert world.leader_of("flights") == 3 and order_of(world)[0] == 3
    world.hosts[BrokerId(2)].start()
    world.until_started(2)
    assert set(write(world, SOUTH, duration_ms=4 * PERIOD_MS)) == {3}
