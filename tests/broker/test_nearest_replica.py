"""A consumer that says where it is reads from a replica near it. Source: KIP-392; decision 0031."""

from collections.abc import Iterator

import pytest
from tests.broker.cluster_world import ClusterWorld, joined
from tests.broker.test_broker_in_a_cluster import fetch, produce

from strandline.broker.fetch.nearest_replica import (
    KEPT_COUNT_MAX,
    SPARED_MS,
    SentOn,
    is_at,
    levels_in_common,
    nearest,
    one_of,
    path_of,
)
from strandline.controller.commands import (
    AlterConfigs,
    ConfigChange,
    ConfigOperation,
    ResourceChanges,
    ResourceResults,
    ResourceType,
)
from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId, GroupId
from strandline.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

ONE, TWO, THREE = map(BrokerId, (1, 2, 3))
PLACES = {
    ONE: Labels("east", "e1", "r1"),
    TWO: Labels("west", "a", "r1"),
    THREE: Labels("west", "b", "r1"),
}
REGIONS = {1: "east", 2: "west", 3: "south"}


def test_a_client_is_in_a_region_a_zone_a_rack_or_nowhere() -> None:
    places = (*PLACES.values(), Labels("south", "b"))
    assert path_of("west", places) == ("west",)
    assert path_of("west/a/r1", places) == ("west", "a", "r1")
    assert path_of("a", places) == ("west", "a")
    assert path_of("b", places) == (), "two regions have that zone"
    assert path_of("north", places) == path_of("", places) == ()


def test_levels_count_from_the_region_down_and_unsaid_ones_agree_with_nothing() -> None:
    assert levels_in_common(("west", "a", "r1"), PLACES[TWO]) == 3
    assert levels_in_common(("west", "b", "r1"), PLACES[TWO]) == 1
    assert levels_in_common(("east", "a", "r1"), PLACES[TWO]) == 0
    assert levels_in_common(("west", ""), Labels("west")) == 1


def test_nothing_is_nearer_than_what_agrees_in_all_that_is_said() -> None:
    assert is_at("west", PLACES[TWO]) and is_at("west/a", PLACES[TWO])
    assert not is_at("west/b", PLACES[TWO]) and not is_at("a", PLACES[TWO])
    assert not is_at("west/a/r1/more", PLACES[TWO])


def test_only_replicas_nearer_than_the_leader_are_named() -> None:
    assert nearest(("west",), ONE, PLACES) == (TWO, THREE)
    assert nearest(("west", "b"), ONE, PLACES) == (THREE,)
    assert nearest(("west", "b"), TWO, PLACES) == (THREE,)
    assert nearest(("west",), TWO, PLACES) == ()
    assert nearest((), ONE, PLACES) == nearest(("north",), ONE, PLACES) == ()


def test_clients_are_spread_and_each_stays() -> None:
    chosen = [one_of((TWO, THREE), f"/10.0.0.{one}/c", GroupId(7)) for one in range(100)]
    assert chosen == [one_of((TWO, THREE), f"/10.0.0.{one}/c", GroupId(7)) for one in range(100)]
    assert min(chosen.count(TWO), chosen.count(THREE)) > 25


def test_who_was_sent_on_is_remembered_for_a_while_and_of_so_many() -> None:
    sent = SentOn()
    sent.add(1, GroupId(7), 1_000)
    assert sent.is_spared(1, GroupId(7), 1_000 + SPARED_MS - 1)
    assert not sent.is_spared(1, GroupId(7), 1_000 + SPARED_MS)
    assert not sent.is_spared(2, GroupId(7), 1_000)
    for one in range(KEPT_COUNT_MAX):
        sent.add(2, GroupId(one), 1_000)
    assert not sent.is_spared(1, GroupId(7), 1_000)
    assert sent.is_spared(2, GroupId(0), 1_000)


@pytest.fixture
def world() -> Iterator[ClusterWorld]:
    """Three brokers in three regions, a topic on all of them, three records."""
    with joined(ClusterWorld(REGIONS, regions=REGIONS)) as made:
        made.create_topic("t")
        assert produce(made, "t", b"a", b"b", b"c").error_code == 0
        made.advance(1_000)
        yield made


def ask(
    world: ClusterWorld,
    rack: str,
    *,
    offset: int = 0,
    version: int = 12,
    connection: int = 1,
    max_wait_ms: int = 500,
) -> PartitionData:
    """What the leader answers to a consumer."""
    asked = FetchPartition(fetch_offset=offset, partition_max_bytes=1_000_000)
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        rack_id=rack,
        topics=[FetchTopic(topic="t", partitions=[asked])],
    )
    leader = world.leader_of("t")
    pending = world.send(leader, request, version, connection=connection)
    world.until(lambda: pending.is_answered)
    return pending.answer(FetchResponse).responses[0].partitions[0]


def other_than_leader(world: ClusterWorld) -> int:
    return min(set(REGIONS) - {world.leader_of("t")})


def is_served(data: PartitionData) -> bool:
    assert data.error_code == 0
    assert (data.preferred_read_replica == -1) == (len(data.records or b"") > 0)
    return data.preferred_read_replica == -1


@pytest.mark.parametrize("version", [11, 12])
def test_a_consumer_is_sent_to_its_region_and_served_there(
    world: ClusterWorld, version: int
) -> None:
    near = other_than_leader(world)
    fetched = ask(world, REGIONS[near], version=version)
    assert not is_served(fetched)
    assert (fetched.preferred_read_replica, fetched.high_watermark) == (near, 3)
    assert fetch(world, "t", at=near) == [b"a", b"b", b"c"]


def test_a_consumer_that_waits_at_the_end_is_sent_on_too(world: ClusterWorld) -> None:
    near = other_than_leader(world)
    assert ask(world, REGIONS[near], offset=3).preferred_read_replica == near


def test_who_is_as_near_to_the_leader_or_says_nothing_that_is_known_is_served(
    world: ClusterWorld,
) -> None:
    leader = REGIONS[world.leader_of("t")]
    assert all(is_served(ask(world, rack)) for rack in ("", leader, "north", f"{leader}/x/y"))


def test_who_comes_back_is_served_by_the_leader_for_a_while(world: ClusterWorld) -> None:
    near = REGIONS[other_than_leader(world)]
    assert not is_served(ask(world, near))
    assert is_served(ask(world, near))
    assert not is_served(ask(world, near, connection=2)), "somebody else"
    world.advance(SPARED_MS)
    assert not is_served(ask(world, near))


def test_nobody_is_sent_to_a_broker_that_is_lost(world: ClusterWorld) -> None:
    near = other_than_leader(world)
    world.hosts[near].kill()
    world.advance(5_000)
    assert is_served(ask(world, REGIONS[near]))
    world.hosts[near].start()
    world.until_started(near)
    world.advance(1_000)
    assert ask(world, REGIONS[near], connection=2).preferred_read_replica == near


def test_who_reads_the_newest_is_sent_to_what_will_have_it_in_a_moment(world: ClusterWorld) -> None:
    """Otherwise no consumer that keeps up with a busy partition would ever leave its leader."""
    near, leader = other_than_leader(world), world.leader_of("t")
    world.fabric.cut(BrokerId(leader), BrokerId(near))
    assert produce(world, "t", b"d").error_code == 0
    fetched = ask(world, REGIONS[near], offset=4, max_wait_ms=0)
    assert (fetched.high_watermark, fetched.preferred_read_replica) == (4, near)


def test_nobody_is_sent_to_a_replica_that_has_fallen_behind(world: ClusterWorld) -> None:
    """The link to it is cut for longer than an answer takes, and its broker not given up yet."""
    near, leader = other_than_leader(world), world.leader_of("t")
    world.fabric.cut(BrokerId(leader), BrokerId(near))
    assert produce(world, "t", b"d").error_code == 0
    world.advance(2_500)
    assert world.leader_of("t") == leader
    assert ask(world, REGIONS[near], offset=4, max_wait_ms=0).preferred_read_replica == -1


def test_who_has_read_more_than_a_replica_holds_waits_there(world: ClusterWorld) -> None:
    """It read that from the leader: the replica is late, and the consumer's records stand."""
    near, leader = other_than_leader(world), world.leader_of("t")
    epoch = world.replicas_of("t")[leader].epoch
    fetch(world, "t", at=near)
    world.fabric.cut(BrokerId(leader), BrokerId(near))
    assert produce(world, "t", b"d", b"e").error_code == 0
    asked = FetchPartition(fetch_offset=4, partition_max_bytes=1_000, last_fetched_epoch=epoch)
    request = FetchRequest(
        max_wait_ms=60_000, min_bytes=1, topics=[FetchTopic(topic="t", partitions=[asked])]
    )
    pending = world.send(near, request, 12)
    world.advance(100)
    assert not pending.is_answered
    world.fabric.heal(BrokerId(leader), BrokerId(near))
    world.until(lambda: pending.is_answered)
    found = pending.answer(FetchResponse).responses[0].partitions[0]
    assert found.error_code == 0 and found.records
    assert found.diverging_epoch.epoch == found.diverging_epoch.end_offset == -1


def test_who_has_read_what_was_given_up_since_is_told_by_a_replica_too(
    world: ClusterWorld,
) -> None:
    """A loss was declared: a later epoch is committed where the consumer's records were."""
    epoch = world.replicas_of("t")[world.leader_of("t")].epoch
    replica = world.replicas_of("t")[world.leader_of("t")]
    replica.transfer_leadership(BrokerId(other_than_leader(world)))
    world.until(lambda: world.leader_of("t") not in (0, replica.self_id))
    assert produce(world, "t", b"d").error_code == 0
    world.advance(1_000)
    near = other_than_leader(world)
    asked = FetchPartition(fetch_offset=9, partition_max_bytes=1_000, last_fetched_epoch=epoch)
    request = FetchRequest(
        max_wait_ms=60_000, min_bytes=1, topics=[FetchTopic(topic="t", partitions=[asked])]
    )
    answer = world.ask(near, request, FetchResponse, 12)
    found = answer.responses[0].partitions[0]
    assert (found.diverging_epoch.epoch, found.diverging_epoch.end_offset) == (epoch, 3)


def test_nobody_is_sent_to_a_broker_in_maintenance(world: ClusterWorld) -> None:
    near = other_than_leader(world)
    change = ConfigChange("broker.maintenance.until.ms", ConfigOperation.SET, str(2**53))
    command = AlterConfigs((ResourceChanges(ResourceType.BROKER, str(near), (change,)),))
    answer = world.submit(command, at=world.leader_of("t"))
    assert isinstance(answer, ResourceResults) and answer.resources[0].error_code == 0, answer
    world.advance(100)
    assert is_served(ask(world, REGIONS[near]))


def test_a_topic_can_do_without(world: ClusterWorld) -> None:
    world.create_topic("u", configs=(("fetch.from.nearest.enable", "false"),))
    leader = world.leader_of("u")
    near = min(set(REGIONS) - {leader})
    assert produce(world, "u", b"a").error_code == 0
    asked = FetchPartition(fetch_offset=0, partition_max_bytes=1_000)
    request = FetchRequest(
        max_wait_ms=0, rack_id=REGIONS[near], topics=[FetchTopic(topic="u", partitions=[asked])]
    )
    answer = world.ask(leader, request, FetchResponse, 12)
    assert is_served(answer.responses[0].partitions[0])
