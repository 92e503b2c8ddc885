"""What a broker tells a console: who votes and who observes, who is heard, what is down.

Source: decision 0036; reference observers 4.4."""

import json
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest
from tests.admin.scrapes import controller_of
from tests.broker.cluster_world import BROKERS, ClusterWorld, joined
from tests.broker.moving_world import TOPIC, MovingWorld
from tests.broker.test_broker_in_a_cluster import produce

from strandline.admin.api import JSON, Api
from strandline.admin.http_server import Answer
from strandline.admin.last_page import FRESH_MS, LastPage
from strandline.model.ids import BrokerId

DOMAINS = {1: "east", 2: "east", 3: "west", 4: "west"}


@pytest.fixture
def world() -> Iterator[ClusterWorld]:
    """Four brokers in two regions, a topic of two partitions on three of them."""
    with joined(ClusterWorld(BROKERS, regions=DOMAINS)) as made:
        made.create_topic("t", partitions=2)
        assert produce(made, "t", b"a", b"b", b"c").error_code == 0
        made.advance(2_000)
        yield made


def api(world: ClusterWorld, broker: int, *, is_ready: bool = True) -> Api:
    asked = world.broker(broker)
    return Api(asked, LastPage(asked.services.clock), is_ready=lambda: is_ready)


def told(
    world: ClusterWorld,
    broker: int,
    page: Coroutine[object, object, Answer],
    *,
    status: int = 200,
) -> Any:
    answer = world.do(broker, page)
    assert (answer.status, answer.content_type) == (status, JSON)
    return json.loads(b"".join(answer.body))


def partition(world: ClusterWorld, broker: int, name: str = TOPIC) -> Any:
    return told(world, broker, api(world, broker).topic(name))["partitions"][0]


def test_every_broker_tells_who_votes_and_who_observes(moving: MovingWorld) -> None:
    for broker in range(1, 6):
        found = partition(moving, broker)
        assert found["voters"] == found["voting"] == [1, 2, 3]
        assert found["observers"] == [4, 5]
        assert (found["offline"], found["target_voters"], found["losses_declared"]) == ([], [], 0)
        assert found["leader"] == moving.leader_of(TOPIC)


def test_only_the_leader_tells_how_far_each_replica_is(moving: MovingWorld) -> None:
    leader = moving.leader_of(TOPIC)
    tellers = [one for one in range(1, 6) if partition(moving, one)["status"] is not None]
    assert tellers == [leader]
    status = partition(moving, leader)["status"]
    assert status["metrics"]["ObserverReplicasCount"] == 2
    by_broker = {one["replica"]: one for one in status["replicas"]}
    assert [one for one in by_broker if by_broker[one]["is_observer"]] == [4, 5]
    assert [one for one in by_broker if by_broker[one]["is_in_isr"]] == [1, 2, 3]
    assert by_broker[leader]["log_end_offset"] > 0


def test_an_observer_that_is_gone_is_offline_and_behind(moving: MovingWorld) -> None:
    leader = moving.leader_of(TOPIC)
    moving.hosts[4].kill()
    moving.advance(5_000)
    found = partition(moving, leader)
    assert found["offline"] == [4]
    (gone,) = (one for one in found["status"]["replicas"] if one["replica"] == 4)
    assert not gone["is_caught_up"]
    assert gone["lag_records"] > 0


def test_brokers_are_told_as_this_one_hears_them(world: ClusterWorld) -> None:
    world.hosts[4].kill()
    world.advance(5_000)
    found = told(world, 1, api(world, 1).brokers())
    assert found["controller"] == controller_of(world)
    assert found["told_by"] == 1
    brokers = {one["id"]: one for one in found["brokers"]}
    assert {one: brokers[one]["region"] for one in brokers} == DOMAINS
    assert [one for one in brokers if brokers[one]["is_heard"]] == [1, 2, 3]
    assert brokers[1]["round_trip_ms"] == 0


def led(world: ClusterWorld, broker: int) -> int:
    """How many partitions of the topic a broker leads."""
    partitions = told(world, broker, api(world, broker).topic("t"))["partitions"]
    return sum(one["leader"] == broker for one in partitions)


def test_topics_are_listed(world: ClusterWorld) -> None:
    (found,) = told(world, 2, api(world, 2).topics())["topics"]
    assert (found["name"], found["partition_count"], found["is_internal"]) == ("t", 2, False)
    assert found["counts"] == dict.fromkeys(found["counts"], 0) | {"led_here": led(world, 2)}
    assert found["id"] == told(world, 2, api(world, 2).topic("t"))["id"]


def test_topics_tell_how_many_partitions_are_not_well(moving: MovingWorld) -> None:
    def counts(broker: int) -> Any:
        (found,) = told(moving, broker, api(moving, broker).topics())["topics"]
        return {name: count for name, count in found["counts"].items() if count}

    leader = moving.leader_of(TOPIC)
    voter, other = (one for one in (1, 2, 3) if one != leader)
    assert counts(leader) == {"led_here": 1}
    assert counts(other) == counts(4) == {}
    moving.hosts[5].kill()
    moving.advance(5_000)
    lost = {"offline_replicas": 1}
    assert counts(leader) == {"led_here": 1, "not_caught_up_here": 1, **lost}
    assert counts(other) == counts(4) == lost
    moving.hosts[voter].kill()
    moving.advance(5_000)
    assert counts(leader)["under_replicated_here"] == 1
    assert "under_replicated_here" not in counts(4)


@pytest.mark.parametrize("name", ["", "none", "t/0", "%74"])
def test_a_topic_that_there_is_not_is_not_found(world: ClusterWorld, name: str) -> None:
    found = told(world, 1, api(world, 1).topic(name), status=404)
    assert found == {"error": f"no topic {name}"}


def test_before_it_serves_clients_a_broker_tells_of_nothing(world: ClusterWorld) -> None:
    early = api(world, 1, is_ready=False)
    for page in (early.brokers(), early.topics(), early.topic("t"), early.outages()):
        assert told(world, 1, page, status=503) == {"error": "not ready"}


def test_who_asks_for_the_same_within_a_second_gets_the_same(world: ClusterWorld) -> None:
    asked = api(world, 1)
    first = world.do(1, asked.topics())
    assert world.do(1, asked.topics()) is first
    world.do(1, asked.brokers())
    second = world.do(1, asked.topics())
    assert second is not first
    world.advance(FRESH_MS)
    assert world.do(1, asked.topics()) is not second


def test_a_long_list_comes_in_parts(world: ClusterWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = told(world, 1, api(world, 1).topic("t"))
    monkeypatch.setattr("strandline.admin.api.PART_BYTES", 1)
    answer = world.do(1, api(world, 1).topic("t"))
    assert len(answer.body) == 3
    assert json.loads(b"".join(answer.body)) == whole


def test_who_has_given_up_leads_no_more(world: ClusterWorld) -> None:
    found = partition(world, 1, "t")
    leader = found["leader"]
    for broker in found["voters"]:
        if broker != leader:
            world.hosts[broker].kill()
    world.advance(15_000)
    found = partition(world, leader, "t")
    assert (found["leader"], found["status"], found["has_failed_here"]) == (None, None, False)


def test_a_replica_that_has_failed_is_told_of(world: ClusterWorld) -> None:
    leader = partition(world, 1, "t")["leader"]
    group = world.broker(leader).services.cluster.topics["t"].partitions[0].group
    world.broker(leader).replication.replicas[group].fail(OSError(5, "as on a bad disk"))
    found = partition(world, leader, "t")
    assert (found["leader"], found["status"], found["has_failed_here"]) == (None, None, True)


def test_the_controller_tells_of_outages_and_others_say_who_it_is(world: ClusterWorld) -> None:
    if controller_of(world) == 3:
        world.controller(3).transfer_leadership(BrokerId(1))
        world.advance(5_000)
    controller = controller_of(world)
    calm = told(world, controller, api(world, controller).outages())
    assert calm["happenings"] == []
    for broker in (3, 4):
        world.hosts[broker].kill()
    world.advance(30_000)
    found = told(world, controller, api(world, controller).outages())
    (west,) = (one for one in found["zones"] if one["name"] == "west")
    assert (west["level"], west["down"], west["held"]) == ("region", True, True)
    assert west["silent"] == [3, 4]
    assert [one["class"] for one in found["happenings"]] == ["region", "no-leader"]
    assert found["weakened_partitions"]["no-leader"] == 2
    other = next(one for one in (1, 2) if one != controller)
    elsewhere = told(world, other, api(world, other).outages(), status=503)
    assert elsewhere["controller"] == controller


def test_who_has_lost_the_controllers_quorum_is_not_the_controller(world: ClusterWorld) -> None:
    for broker in (2, 3):
        world.hosts[broker].kill()
    world.advance(30_000)
    nobody = {"error": "this broker knows no controller", "controller": None}
    for broker in (1, 4):
        assert told(world, broker, api(world, broker).outages(), status=503) == nobody
        assert told(world, broker, api(world, broker).brokers())["controller"] is None
