"""Observers are promoted for lost voters, and demoted when these are back, under writes.

Source: docs/decisions/0025-promotion.md; Confluent's tutorial of multi-region clusters (reference
to observers, 4.3); "Automatic Observer Promotion" (seed 3), the 2.5-data-centre example."""

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

import pytest
from tests.broker.moving_world import TOPIC, MovingWorld, moving_world, nothing_begun
from tests.broker.test_balancing import TOPIC_SCOPE, alter
from tests.broker.test_declared_losses import declare
from tests.broker.voters_world import append, votes

from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error

REGIONS = {1: "west", 2: "east", 3: "north", 4: "west", 5: "east"}
"""The controller's voters are brokers 1 to 3."""
WEST, EAST = (4, 1), (5, 2)


def constraints(
    voters: Mapping[str, int], observers: Mapping[str, int], promotion: str = "under-min-isr"
) -> str:
    def listed(some: Mapping[str, int]) -> list[dict[str, object]]:
        return [{"count": count, "constraints": {"rack": region}} for region, count in some.items()]

    return json.dumps(
        {
            "version": 2,
            "replicas": listed(voters),
            "observers": listed(observers),
            "observerPromotionPolicy": promotion,
        }
    )


@contextmanager
def watched_world(
    monkeypatch: pytest.MonkeyPatch,
    voters: tuple[int, ...] = WEST,
    observers: tuple[int, ...] = EAST,
    *,
    policy: str,
    key: str = "confluent.placement.constraints",
    min_insync: int = 2,
    regions: Mapping[int, str] = REGIONS,
) -> Iterator[MovingWorld]:
    """Five brokers, one topic with these roles and a producer that goes on. That voters may leave
    follows from the policy."""
    configs = (("min.insync.replicas", str(min_insync)),)
    with moving_world(monkeypatch, voters, regions, configs) as made:
        made.balance(voters, observers)
        made.finish(*voters, observers=observers)
        alter(made, TOPIC_SCOPE, TOPIC, key, policy)
        writes(made)
        yield made


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[MovingWorld]:
    """The tutorial's: two voters in the west, two observers in the east."""
    with watched_world(monkeypatch, policy=constraints({"west": 2}, {"east": 2})) as made:
        yield made


def writes(world: MovingWorld) -> None:
    """Let something be acknowledged by all."""
    before = len(world.acked)
    world.until(lambda: len(world.acked) > before)


def voting(world: MovingWorld, *, own: tuple[int, ...], observers: int) -> bool:
    """Whether these and so many observers vote, and the controller knows it."""
    known = world.known
    promoted = [one for one in known.voters if one in known.observers]
    return len(promoted) == observers and votes(world, *own, *promoted)


def kill(world: MovingWorld, *brokers: int) -> None:
    for broker in brokers:
        world.hosts[broker].kill()


def start(world: MovingWorld, *brokers: int) -> None:
    for broker in brokers:
        world.hosts[broker].start()
    world.until_started(*brokers)


@pytest.mark.parametrize("first", WEST)
def test_the_tutorial_s_sequence(world: MovingWorld, first: int) -> None:
    """One broker of west is lost, then the rest, then all are back: whichever of them led."""
    (second,) = (one for one in WEST if one != first)
    kill(world, first)
    world.until(lambda: voting(world, own=(second,), observers=1))
    writes(world)
    assert world.leader_of(TOPIC) == second
    kill(world, second)
    world.until(lambda: votes(world, *EAST))
    writes(world)
    assert world.leader_of(TOPIC) in EAST
    start(world, *WEST)
    world.until(lambda: votes(world, *WEST))
    world.finish(*WEST, observers=EAST)
    assert world.known.acting == ()


def york_and_boston(monkeypatch: pytest.MonkeyPatch) -> AbstractContextManager[MovingWorld]:
    """Two voters here and there, an observer here; three have to acknowledge."""
    regions = {1: "york", 2: "york", 3: "york", 4: "boston", 5: "boston"}
    policy = constraints({"york": 2, "boston": 2}, {"york": 1})
    return watched_world(
        monkeypatch, (4, 1, 5, 2), (3,), policy=policy, min_insync=3, regions=regions
    )


def test_half_of_the_voters_and_their_observer_go_on_without_the_other_data_centre(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two voters here and there, three have to acknowledge: the observer here is the third."""
    with york_and_boston(monkeypatch) as world:
        kill(world, 4, 5)
        world.until(lambda: votes(world, 1, 2, 3))
        writes(world)
        start(world, 4, 5)
        world.until(lambda: votes(world, 4, 1, 5, 2))
        world.finish(4, 1, 5, 2, observers=(3,))


def test_under_replicated_promotes_as_soon_as_one_voter_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The observer near the lost voter."""
    regions = {1: "west", 2: "east", 3: "north", 4: "north", 5: "east"}
    policy = constraints({"west": 1, "east": 1, "north": 1}, {"north": 1, "east": 1})
    policy = policy.replace("under-min-isr", "under-replicated")
    with watched_world(
        monkeypatch, (1, 2, 3), (4, 5), policy=policy, min_insync=1, regions=regions
    ) as world:
        lost = 2 if world.leader_of(TOPIC) != 2 else 3
        near = {2: 5, 3: 4}[lost]
        kill(world, lost)
        world.until(lambda: near in world.known.voters and voting_of(world) == 3)
        writes(world)
        start(world, lost)
        world.finish(1, 2, 3, observers=(4, 5))
        world.until(lambda: votes(world, 1, 2, 3))


def voting_of(world: MovingWorld) -> int:
    return len(world.known.voters)


def test_without_enough_voters_and_with_no_policy_acks_all_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policy = constraints({"west": 2}, {"east": 2}, "leader-is-observer")
    with watched_world(monkeypatch, policy=policy) as world:
        leader = world.leader_of(TOPIC)
        (other,) = (one for one in WEST if one != leader)
        kill(world, other)
        world.until(lambda: votes(world, leader))
        world.advance(5_000)
        assert world.known.voters == (leader,)
        refused = append(world, b"refused", acks=-1)
        assert [one.error_code for one in refused] == [Error.NOT_ENOUGH_REPLICAS]
        start(world, other)
        world.until(lambda: votes(world, *WEST))
        world.finish(*WEST, observers=EAST)


def test_where_a_declared_loss_has_an_observer_lead_others_stand_in_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By itself it would lead, and refuse acks=all; Confluent's promotes after such an election."""
    policy = constraints({"west": 2}, {"east": 2}, "leader-is-observer")
    with watched_world(monkeypatch, policy=policy) as world:
        kill(world, *WEST)
        world.advance(5_000)
        assert declare(world, *WEST).leader in EAST
        world.until(lambda: votes(world, *EAST))
        writes(world)
        start(world, *WEST)
        world.until(lambda: votes(world, *WEST))
        writes(world)
        world.finish(*WEST, observers=EAST)


@pytest.mark.parametrize("victim", ["leader", "follower", "observer"])
def test_a_loss_among_those_who_stand_in_keeps_nobody_from_returning(
    monkeypatch: pytest.MonkeyPatch, victim: str
) -> None:
    """All three that are left make up the write quorum; one more goes before the others return.

    Where that is the leader, the observer may be the one that is elected, though it stands later
    than the voter that is left: it hands over before it leaves."""
    with york_and_boston(monkeypatch) as world:
        kill(world, 4, 5)
        world.until(lambda: votes(world, 1, 2, 3))
        leader = world.leader_of(TOPIC)
        (follower,) = {1, 2} - {leader}
        lost = {"leader": leader, "follower": follower, "observer": 3}[victim]
        kill(world, lost)
        world.until(lambda: votes(world, *({1, 2, 3} - {lost})))
        assert world.leader_of(TOPIC) in {1, 2, 3} - {lost}
        start(world, 4, 5)
        writes(world)
        start(world, lost)
        world.until(lambda: votes(world, 4, 1, 5, 2))
        world.finish(4, 1, 5, 2, observers=(3,))
        assert world.leader_of(TOPIC) != 3


def test_only_an_observer_that_has_caught_up_stands_in(
    world: MovingWorld,
) -> None:
    """Neither of them, by a bound that no observer meets, and then both."""
    alter(world, TOPIC_SCOPE, TOPIC, "observer.promotion.ready.ms", "3600000")
    leader = world.leader_of(TOPIC)
    (other,) = (one for one in WEST if one != leader)
    kill(world, other)
    world.until(lambda: votes(world, leader))
    world.advance(5_000)
    assert world.known.voters == (leader,)
    alter(world, TOPIC_SCOPE, TOPIC, "observer.promotion.ready.ms", "1000")
    world.until(lambda: voting(world, own=(leader,), observers=1))
    writes(world)


def test_region_lost_promotes_once_the_controller_has_the_region_as_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two brokers of west are silent, and were two of its three voters."""
    policy = '{"rules":[{"count":3,"where":[%s]},{"role":"observer","count":2,"where":[%s]}],'
    policy += '"promotion":"region-lost"}'
    rule = '{"label":"broker","op":"in","values":[%s]}'
    policy %= (rule % '"1","4","3"', rule % '"2","5"')
    with watched_world(
        monkeypatch, (4, 1, 3), (5, 2), policy=policy, key="placement.policy", min_insync=1
    ) as world:
        kill(world, 1)
        world.until(lambda: votes(world, 4, 3))
        world.advance(5_000)
        assert votes(world, 4, 3)
        kill(world, 4)
        world.until(lambda: votes(world, 3, 5, 2))
        assert world.leader_of(TOPIC) == 3
        start(world, *WEST)
        world.until(lambda: votes(world, 4, 1, 3))
        world.finish(4, 1, 3, observers=(5, 2))


@pytest.mark.parametrize("stage", ["granted", "joint", "final"])
def test_an_observer_that_dies_while_it_is_promoted_is_replaced_by_the_other(
    world: MovingWorld, stage: str
) -> None:
    leader = world.leader_of(TOPIC)
    (other,) = (one for one in WEST if one != leader)
    kill(world, other)
    world.until(lambda: votes(world, leader))
    world.until(lambda: any(one in EAST for one in world.known.pending))
    if stage != "granted":
        world.reach(stage)
    (chosen,) = (one for one in world.known.pending if one in EAST)
    kill(world, chosen)
    (standby,) = (one for one in EAST if one != chosen)
    world.until(lambda: votes(world, leader, standby))
    writes(world)
    start(world, other, chosen)
    world.until(lambda: votes(world, *WEST))
    world.finish(*WEST, observers=EAST)


def grant_that_waits(world: MovingWorld, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int, int]:
    """(leader, lost voter, observer) of a promotion that was granted, and whose observer is known
    to be dead before it was begun."""
    leader = world.leader_of(TOPIC)
    (other,) = (one for one in WEST if one != leader)
    with nothing_begun(monkeypatch):
        kill(world, other)
        world.until(lambda: any(one in EAST for one in world.known.pending))
        (chosen,) = (one for one in world.known.pending if one in EAST)
        kill(world, chosen)
        world.until(lambda: not world.replicas_of(TOPIC)[leader].may_count(BrokerId(chosen)))
    return leader, other, chosen


def test_where_the_observer_dies_before_its_promotion_is_begun_the_other_one_stands_in(
    world: MovingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader, other, chosen = grant_that_waits(world, monkeypatch)
    (standby,) = (one for one in EAST if one != chosen)
    world.until(lambda: votes(world, leader, standby))
    assert world.known.grant == 1, "it was needed for the lost voter, and not again"
    writes(world)
    start(world, other, chosen)
    world.until(lambda: votes(world, *WEST))
    world.finish(*WEST, observers=EAST)


def test_a_promotion_that_cannot_begin_is_withdrawn_where_nobody_else_may_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Until this is stable, what was granted may be in force; then it never comes."""
    policy = constraints({"west": 2}, {"east": 1})
    with watched_world(monkeypatch, observers=(5,), policy=policy) as world:
        leader, other, chosen = grant_that_waits(world, monkeypatch)
        assert chosen == 5
        waiting = world.known
        assert waiting.possible == ((leader,), (leader, chosen))
        world.until(lambda: world.known.version != waiting.version)
        assert world.known.version == waiting.last_version + 1
        assert world.known.possible == ((leader,),)
        start(world, chosen)
        world.until(lambda: votes(world, leader, chosen))
        writes(world)
        start(world, other)
        world.until(lambda: votes(world, *WEST))
        world.finish(*WEST, observers=(5,))


def test_who_was_cut_off_acknowledges_nothing_while_an_observer_stands_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Boston lives behind a cut, its leader too: two of four commit nothing, there or here, until
    the controller, which has a third site, has the observer here stand in."""
    regions = {1: "york", 2: "york", 3: "york", 4: "boston", 5: "boston"}
    policy = constraints({"york": 2, "boston": 2}, {"york": 1})
    with watched_world(
        monkeypatch, (4, 1, 5, 2), (3,), policy=policy, min_insync=3, regions=regions
    ) as world:
        world.until(lambda: world.leader_of(TOPIC) == 4)
        old = world.replicas_of(TOPIC)[4]
        ways = [(a, b) for a in (1, 2, 3) for b in (4, 5)]
        for one, other in (*ways, *((b, a) for a, b in ways)):
            world.fabric.cut(BrokerId(one), BrokerId(other))
        world.advance(100)
        committed = old.committed_end
        world.until(lambda: votes(world, 1, 2, 3))
        writes(world)
        assert old.committed_end == committed
        for one, other in (*ways, *((b, a) for a, b in ways)):
            world.fabric.heal(BrokerId(one), BrokerId(other))
        world.until(lambda: votes(world, 4, 1, 5, 2))
        world.finish(4, 1, 5, 2, observers=(3,))
