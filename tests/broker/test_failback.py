"""Leadership moves back to the preferred replica, once that has stayed in sync."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
from tests.broker.cluster_world import ClusterWorld
from tests.broker.test_broker_in_a_cluster import fetch, produce
from tests.controller.controller_world import changes

from strandline.broker.leadership.failback import (
    LEADER_WAITS,
    LOOK_INTERVAL_MS,
    TRANSFERS_PER_LOOK_MAX,
)
from strandline.broker.operations.leaving import hand_over
from strandline.controller.commands import AlterConfigs
from strandline.model.ids import BrokerId
from strandline.protocol.messages.describe_leadership import (
    DescribeLeadershipRequest,
    DescribeLeadershipResponse,
)
from strandline.replication.replica.replica import Replica

CLUSTER = 4
DELAY_MS = 20_000
POLICY_DELAY_MS = 60_000
IN_ORDER = (
    '{"leaders":{"prefer":[[{"label":"broker","op":"in","values":["1"]}],'
    '[{"label":"broker","op":"in","values":["2"]}]],"failback_delay_ms":60000}}'
)
"""Broker 1, else broker 2, else broker 3."""
MANY = 12


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


def why(world: ClusterWorld, at: int) -> list[tuple[int, str, str]]:
    """(preferred leader, code, text) that a broker reports of its only partition, or nothing."""
    answer = world.ask(at, DescribeLeadershipRequest(), DescribeLeadershipResponse, 0)
    assert all((one.topic, one.partition) == ("flights", 0) for one in answer.waits)
    assert all(one.code in LEADER_WAITS for one in answer.waits)
    return [(one.preferred, one.code, one.text) for one in answer.waits]


def test_why_leadership_does_not_go_back_is_told_with_numbers(world: ClusterWorld) -> None:
    world.create_topic("flights")
    first = preferred(world, "flights")
    assert why(world, first) == []
    world.hosts[first].kill()
    world.until(lambda: world.leader_of("flights") not in (0, first))
    interim = world.leader_of("flights")
    world.advance(5_000)
    assert why(world, interim) == [(first, "down", f"broker {first} is down")]
    world.hosts[first].start()
    world.until_started(first)
    world.advance(2 * LOOK_INTERVAL_MS)
    ((_, code, text),) = why(world, interim)
    assert code == "delay"
    begun, _, left = text.partition(": ")
    assert begun == f"broker {first} leads once it has been in sync for 20 s"
    assert 0 < int(left.split()[0]) <= DELAY_MS // 1_000 and left.endswith(" s are left")
    alter(world, str(first), "broker.maintenance.until.ms", "-1")
    assert why(world, interim) == [(first, "maintenance", f"broker {first} is in maintenance")]
    alter(world, str(first), "broker.maintenance.until.ms", "0")
    alter(world, "", "auto.leader.rebalance.enable", "false")
    assert why(world, interim) == [(first, "off", "auto.leader.rebalance.enable is false")]
    alter(world, "", "auto.leader.rebalance.enable", "true")
    world.until(lambda: world.leader_of("flights") == first)
    assert why(world, first) == why(world, interim) == []


def test_who_is_behind_and_what_failed_is_told(
    world: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.create_topic("flights")
    interim = lose_leader(world, "flights")
    first = preferred(world, "flights")
    with monkeypatch.context() as patch:
        patch.setattr(Replica, "in_sync", lambda self: [self.self_id])
        assert why(world, interim) == [(first, "behind", f"broker {first} is behind")]
    monkeypatch.setattr(Replica, "transfer_leadership", lambda *_: None)
    world.advance(2 * DELAY_MS)
    ((_, code, text),) = why(world, interim)
    assert code == "failed"
    assert text.startswith(f"handing over to broker {first} failed once; the next try is in ")
    assert 0 < int(text.split()[-2]) <= 60


def alter(world: ClusterWorld, broker: str, key: str, value: str) -> None:
    world.submit(AlterConfigs((changes(CLUSTER, broker, (key, 0, value)),)))
    world.advance(100)


def test_who_comes_and_goes_does_not_lead_again(world: ClusterWorld) -> None:
    world.create_topic("flights")
    interim = lose_leader(world, "flights")
    first = preferred(world, "flights")
    for _ in range(4):
        world.advance(DELAY_MS * 2 // 3)
        world.hosts[first].kill()
        world.advance(LOOK_INTERVAL_MS + 2_000)  # A look sees that it is away.
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


# ---- by the order of a policy --------------------------------------------------------------------


@pytest.fixture
def ordered(world: ClusterWorld) -> ClusterWorld:
    world.create_topic("flights", partitions=MANY, configs=(("placement.policy", IN_ORDER),))
    world.until(lambda: leaders(world, "flights", MANY) == [1] * MANY)
    return world


@pytest.mark.parametrize("hangs_up", [True, False])
def test_when_the_preferred_leader_is_gone_the_next_of_the_policy_is_elected(
    ordered: ClusterWorld, hangs_up: bool
) -> None:
    victim = ordered.hosts[BrokerId(1)]
    (victim.kill if hangs_up else victim.pause)()
    ordered.until(lambda: not {0, 1} & set(leaders_elsewhere(ordered)))
    assert leaders_elsewhere(ordered) == [2] * MANY


def leaders_elsewhere(world: ClusterWorld) -> list[int]:
    """The leaders, without asking broker 1."""
    found = []
    for index in range(MANY):
        replicas = world.replicas_of("flights", index)
        led = [one for one in (2, 3) if replicas[one].is_serving]
        found.append(led[0] if led else 0)
    return found


def test_a_broker_that_stops_hands_over_to_the_next_of_the_policy(ordered: ClusterWorld) -> None:
    broker = ordered.broker(1)
    ordered.do(1, hand_over(broker.replication, broker._clock))
    ordered.until(lambda: not {0, 1} & set(leaders(ordered, "flights", MANY)))
    assert leaders(ordered, "flights", MANY) == [2] * MANY


def test_leadership_returns_after_the_delay_of_the_policy(ordered: ClusterWorld) -> None:
    interim = lose_leader(ordered, "flights")
    ordered.advance(2 * DELAY_MS)
    assert ordered.leader_of("flights") == interim == 2
    ordered.advance(POLICY_DELAY_MS)
    assert leaders(ordered, "flights", MANY) == [1] * MANY


def test_while_the_preferred_one_is_gone_leadership_returns_to_the_next(
    ordered: ClusterWorld,
) -> None:
    """Broker 3 leads only as long as neither of the others has been there for the delay."""
    ordered.do(1, hand_all_to(ordered, 3))
    ordered.until(lambda: leaders(ordered, "flights", MANY) == [3] * MANY)
    ordered.hosts[BrokerId(1)].kill()
    ordered.advance(POLICY_DELAY_MS // 2)
    assert leaders(ordered, "flights", MANY) == [3] * MANY
    ordered.advance(POLICY_DELAY_MS)
    assert leaders(ordered, "flights", MANY) == [2] * MANY


async def hand_all_to(world: ClusterWorld, to: int) -> None:
    for index in range(MANY):
        world.replicas_of("flights", index)[1].transfer_leadership(BrokerId(to))


def test_a_changed_order_takes_effect_without_another_command(ordered: ClusterWorld) -> None:
    """By election at once, by the balancer and the delay otherwise."""
    changed = IN_ORDER.replace('"1"', '"3"')
    ordered.submit(AlterConfigs((changes(2, "flights", ("placement.policy", 0, changed)),)))
    ordered.advance(POLICY_DELAY_MS // 2)
    assert leaders(ordered, "flights", MANY) == [1] * MANY
    ordered.advance(POLICY_DELAY_MS)
    assert leaders(ordered, "flights", MANY) == [3] * MANY
    ordered.hosts[BrokerId(3)].kill()
    ordered.until(lambda: not {0, 3} & set(leaders(ordered, "flights", MANY)))
    assert leaders(ordered, "flights", MANY) == [2] * MANY


def test_a_replica_that_cannot_take_over_is_asked_ever_more_seldom(
    ordered: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in sync, and never obeys: each attempt would cost producers a stall."""
    asked: list[int] = []
    ordered.do(1, hand_all_to(ordered, 3))
    ordered.until(lambda: leaders(ordered, "flights", MANY) == [3] * MANY)

    def refuse(self: Replica, to: BrokerId) -> None:
        asked.append(ordered.scheduler.now_us // 1_000)

    monkeypatch.setattr(Replica, "transfer_leadership", refuse)
    ordered.advance(16 * POLICY_DELAY_MS)
    times = sorted(set(asked))
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert len(asked) == MANY * len(times) and 3 <= len(times) <= 5
    assert all(later > 1.8 * earlier for earlier, later in pairwise(gaps))
