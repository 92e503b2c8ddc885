"""The balancer moves replicas under load: after a loss, a policy change, and deaths on the way.

Source: docs/decisions/0010-the-balancer.md."""

from collections.abc import Iterator

import pytest
from tests.broker.moving_world import STAGES, TOPIC, MovingWorld, moving_world, nothing_begun

from strandline.broker.operations.balancing import Findings
from strandline.controller.commands import (
    AlterConfigs,
    ConfigChange,
    ResourceChanges,
    ResourceResults,
    ResourceType,
)
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_balance import (
    DescribeBalanceRequest,
    DescribeBalanceResponse,
)
from strandline.protocol.messages.describe_observers import (
    DescribeObserversRequest,
    DescribeObserversResponse,
    ObservedPartition,
)

LOST_AFTER_MS = 3_000
ON = '{"rules":[{"count":%d,"where":[{"label":"broker","op":"in","values":[%s]}]}]}'
IN_BETWEEN = tuple(stage for stage in STAGES if stage != "stable")
CLUSTER, TOPIC_SCOPE = 4, 2


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[MovingWorld]:
    """Five brokers, one topic on the first three, a producer that goes on."""
    with moving_world(monkeypatch) as made:
        alter(made, CLUSTER, "", "broker.lost.after.ms", str(LOST_AFTER_MS))
        made.advance(2 * LOST_AFTER_MS)
        yield made


def alter(world: MovingWorld, scope: int, name: str, key: str, value: str) -> None:
    world.until(lambda: world._controller_known_at() != 0)
    at = world._controller_known_at()
    answer = world.submit(
        AlterConfigs((ResourceChanges(scope, name, (ConfigChange(key, 0, value),)),)), at=at
    )
    assert isinstance(answer, ResourceResults)
    assert answer.resources[0].error_code == 0, answer


def want(world: MovingWorld, *brokers: int) -> None:
    """Change the policy: so many replicas, on these."""
    values = ",".join(f'"{one}"' for one in brokers)
    alter(world, TOPIC_SCOPE, TOPIC, "placement.policy", ON % (min(3, len(brokers)), values))


def findings(world: MovingWorld) -> Findings:
    found = world.broker(world.controller_leader()).services.balancing.findings
    assert found is not None
    return found


def is_on(world: MovingWorld, *brokers: int) -> bool:
    return set(world.known.replicas) == set(brokers) and not world.known.is_moving


def finish(world: MovingWorld, *brokers: int) -> None:
    world.until(lambda: is_on(world, *brokers))
    world.finish(*world.known.replicas)


def test_replicas_of_a_lost_broker_are_made_anew_and_it_lets_go_when_it_returns(
    world: MovingWorld,
) -> None:
    world.hosts[2].fail_power()
    world.advance(LOST_AFTER_MS - 1_000)
    assert not world.known.is_moving
    world.until(lambda: 2 not in world.known.replicas and not world.known.is_moving)
    (new,) = set(world.known.replicas) - {1, 3}
    world.finish(*world.known.replicas)
    world.hosts[2].start()
    world.until_started(2)
    world.finish(*world.known.replicas)
    assert is_on(world, 1, 3, new)
    assert findings(world).begun == {"broker-lost": 1}


def test_what_goes_on_with_the_last_of_three_is_made_anew_on_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two of its three replicas are lost for good, one after the other, and it votes alone."""
    with moving_world(monkeypatch, (3, 4, 5), configs=(("min.insync.replicas", "1"),)) as world:
        alter(world, TOPIC_SCOPE, TOPIC, "voters.shrink.enable", "true")
        alter(world, CLUSTER, "", "broker.lost.after.ms", "20000")
        for lost in (4, 5):
            world.hosts[lost].kill()
            world.until(lambda lost=lost: lost not in world.known.voters)  # type: ignore[misc]
        assert world.known.voters == (3,)
        observed = world.ask(1, DescribeObserversRequest(), DescribeObserversResponse, 0)
        assert observed.partitions == [ObservedPartition(topic=TOPIC, acting=[3])]
        world.until(lambda: is_on(world, 1, 2, 3) and world.known.acting == ())
        assert findings(world).begun["broker-lost"] >= 1
        for lost in (4, 5):
            world.hosts[lost].start()
            world.until_started(lost)
        finish(world, 1, 2, 3)


def test_a_changed_policy_moves_what_is_written_meanwhile(world: MovingWorld) -> None:
    want(world, 3, 4, 5)
    finish(world, 3, 4, 5)
    want(world, 1, 2)
    want(world, 1, 4, 5)
    finish(world, 1, 4, 5)


@pytest.mark.parametrize("stage", STAGES)
def test_a_controller_that_dies_at_any_stage_is_followed_by_one_that_goes_on(
    world: MovingWorld, stage: str
) -> None:
    want(world, 1, 4, 5)
    world.reach(stage)
    world.lose_power_of(world.controller_leader(), for_ms=1_500)
    finish(world, 1, 4, 5)


@pytest.mark.parametrize("stage", STAGES)
def test_a_policy_that_is_changed_at_any_stage_is_met_as_it_is_then(
    world: MovingWorld, stage: str
) -> None:
    want(world, 1, 4, 5)
    world.reach(stage)
    want(world, 2, 3, 4)
    finish(world, 2, 3, 4)


@pytest.mark.parametrize("stage", STAGES)
def test_a_broker_that_returns_while_it_is_replaced_loses_nothing(
    world: MovingWorld, stage: str
) -> None:
    world.hosts[2].fail_power()
    world.reach(stage)
    world.hosts[2].start()
    world.until_started(2)
    world.advance(3 * LOST_AFTER_MS)
    world.until(lambda: not world.known.is_moving)
    assert {1, 3} < set(world.known.replicas) and len(world.known.replicas) == 3
    world.finish(*world.known.replicas)


@pytest.mark.parametrize("stage", IN_BETWEEN)
def test_a_new_broker_that_dies_while_it_is_filled_is_replaced_itself(
    world: MovingWorld, stage: str
) -> None:
    world.hosts[2].fail_power()
    world.reach(stage)
    (new,) = set(world.known.target) - {1, 3}
    world.hosts[new].fail_power()
    other = 9 - new
    world.until(lambda: is_on(world, 1, 3, other))
    world.hosts[new].start()
    world.hosts[2].start()
    world.until_started(2, new)
    world.finish(*world.known.replicas)


@pytest.mark.parametrize("shrinks", ["true", "false"])
def test_a_new_broker_that_dies_between_its_grant_and_its_vote_is_replaced_itself(
    monkeypatch: pytest.MonkeyPatch, shrinks: str
) -> None:
    """It dies together with the leader, whose successor cannot begin what was granted."""
    with moving_world(monkeypatch, (3, 4, 5), configs=(("min.insync.replicas", "1"),)) as world:
        alter(world, CLUSTER, "", "broker.lost.after.ms", str(LOST_AFTER_MS))
        alter(world, TOPIC_SCOPE, TOPIC, "voters.shrink.enable", shrinks)
        world.advance(2 * LOST_AFTER_MS)
        world.hosts[4].fail_power()
        world.until(lambda: set(world.known.target) == set(world.known.pending) != set())
        (new,) = set(world.known.target) - {3, 5}
        leader = world.leader_of(TOPIC)
        world.hosts[new].fail_power()
        world.lose_power_of(leader, for_ms=3_000)
        other = 3 - new
        world.until(lambda: is_on(world, 3, 5, other))
        assert set(findings(world).begun) == {"broker-lost"}
        for one in (4, new):
            world.hosts[one].start()
        world.until_started(4, new)
        world.finish(*world.known.replicas)


def test_a_grant_that_cannot_begin_does_not_keep_the_last_voter_from_going_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A granted voter dies before it has its vote, and then another voter: what was granted had
    been counted on, and the last one, which has everything, was not appointed."""
    with moving_world(monkeypatch, (3, 4, 5), configs=(("min.insync.replicas", "1"),)) as world:
        alter(world, CLUSTER, "", "broker.lost.after.ms", "10000")
        alter(world, TOPIC_SCOPE, TOPIC, "voters.shrink.enable", "true")
        world.advance(10_000)
        world.hosts[4].kill()
        world.until(lambda: 4 not in world.known.voters)
        with nothing_begun(monkeypatch):
            world.until(lambda: set(world.known.target) == set(world.known.pending) != set())
            (new,) = set(world.known.target) - {3, 5}
            world.hosts[new].kill()
            world.until(lambda: not world.any_leader(lambda one: one.may_count(BrokerId(new))))
        world.until(lambda: world.known.possible == ((3, 5),))
        world.hosts[5].kill()
        world.until(lambda: world.known.voters == (3,))
        before = len(world.acked)
        world.until(lambda: len(world.acked) > before)
        for one in (4, 5, new):
            world.hosts[one].start()
        world.until_started(4, 5, new)
        world.until(lambda: not world.known.is_moving)
        world.finish(*world.known.replicas)


def test_a_broker_that_comes_and_goes_moves_nothing(world: MovingWorld) -> None:
    for _ in range(5):
        world.lose_power_of(2, for_ms=LOST_AFTER_MS - 1_500)
        world.advance(2_000)
        assert not world.known.is_moving
    assert findings(world).begun == {}
    world.finish(1, 2, 3)


def test_a_move_that_a_person_stops_is_not_begun_again_at_once(world: MovingWorld) -> None:
    want(world, 1, 4, 5)
    world.reach("target")
    assert world.cancel() == 0
    world.advance(LOST_AFTER_MS - 1_000)
    assert not world.known.is_moving or world.known.target == world.known.replicas
    finish(world, 1, 4, 5)


def test_a_move_that_a_person_stops_after_its_grant_was_withdrawn_is_not_begun_again_at_once(
    world: MovingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The move stays the balancer's until it is done, whichever brokers voted in between."""
    alter(world, CLUSTER, "", "broker.lost.after.ms", "20000")
    want(world, 1, 4, 5)
    with nothing_begun(monkeypatch):
        world.until(lambda: world.known.pending != ())
        world.hosts[4].kill()
        world.until(lambda: not world.any_leader(lambda one: one.may_count(BrokerId(4))))
    world.until(lambda: world.known.version == 2 and world.known.is_moving)
    assert world.cancel() == 0
    world.hosts[4].start()
    world.until_started(4)
    world.advance(12_000)
    assert is_on(world, 1, 2, 3)
    (key,) = findings(world).waits.found
    assert key[0] == "stopped"
    finish(world, 1, 4, 5)


def test_the_next_controller_remembers_what_a_person_stopped(world: MovingWorld) -> None:
    alter(world, CLUSTER, "", "broker.lost.after.ms", "20000")
    want(world, 1, 4, 5)
    world.reach("target")
    assert world.cancel() == 0
    world.lose_power_of(world.controller_leader(), for_ms=1_000)
    world.advance(15_000)
    assert is_on(world, 1, 2, 3)
    (key,) = findings(world).waits.found
    assert key[0] == "stopped"
    finish(world, 1, 4, 5)


def test_a_pause_finishes_what_moves_and_begins_nothing(world: MovingWorld) -> None:
    alter(world, CLUSTER, "", "balancer.enable", "false")
    want(world, 1, 4, 5)
    world.advance(5_000)
    assert is_on(world, 1, 2, 3)
    (key,) = findings(world).waits.found
    assert key[0] == "paused"
    alter(world, CLUSTER, "", "balancer.enable", "true")
    finish(world, 1, 4, 5)


def test_the_controller_tells_what_moves_what_waits_and_why(world: MovingWorld) -> None:
    controller = world.controller_leader()
    other = next(one for one in (1, 2, 3) if one != controller)
    answer = world.ask(other, DescribeBalanceRequest(), DescribeBalanceResponse, 0)
    assert answer.error_code == Error.NOT_CONTROLLER
    alter(world, CLUSTER, "", "balancer.moves.max", "7")
    world.hosts[4].fail_power()
    world.hosts[5].fail_power()
    world.hosts[other].fail_power()
    world.advance(2 * LOST_AFTER_MS)
    answer = world.ask(controller, DescribeBalanceRequest(), DescribeBalanceResponse, 0)
    assert (answer.error_code, answer.is_enabled, answer.moves_max) == (0, True, 7)
    assert {one.broker_id: one.condition for one in answer.brokers} == {
        one: "lost" if one in (4, 5, other) else "up" for one in (1, 2, 3, 4, 5)
    }
    (wait,) = answer.waits
    assert (wait.code, wait.partition_count, wait.examples) == ("needs-broker", 1, ["moved-0"])
    assert wait.text == f"needs one more broker in place of broker {other}"
    for one in (4, 5, other):
        world.hosts[one].start()
    world.until_started(4, 5, other)
    want(world, 1, 2, 4)
    world.reach("target")
    answer = world.ask(controller, DescribeBalanceRequest(), DescribeBalanceResponse, 0)
    if answer.error_code == 0:
        (move,) = answer.moves
        assert (move.topic, move.partition, move.code) == (TOPIC, 0, "policy-broken")
        assert set(move.target) == {1, 2, 4}
    finish(world, 1, 2, 4)


def test_a_cluster_at_rest_has_one_round_and_no_more(world: MovingWorld) -> None:
    world.advance(10_000)
    rounds = findings(world).round_count
    world.advance(30_000)
    assert findings(world).round_count == rounds


def test_a_cancelled_decommission_brings_back_the_replicas_and_their_order(
    world: MovingWorld,
) -> None:
    """Under load, with a new controller between the cancel and the way back."""
    before = world.known.replicas
    alter(world, CLUSTER, str(before[0]), "broker.decommission", "true")
    world.until(lambda: before[0] not in world.known.replicas and not world.known.is_moving)
    world.submit(cancel_of(before[0]), at=world._controller_known_at())
    world.lose_power_of(world.controller_leader(), for_ms=1_000)
    world.until(lambda: world.known.replicas == before and not world.known.is_moving)
    world.finish(*before)


def cancel_of(broker: int) -> AlterConfigs:
    change = ConfigChange("broker.decommission", 1, None)
    return AlterConfigs((ResourceChanges(ResourceType.BROKER, str(broker), (change,)),))
