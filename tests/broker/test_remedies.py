"""The announced effect of a loss is what happens, and the announced remedy makes writes continue.

Source: decision 0026."""

import pytest
from tests.broker.moving_world import TOPIC, MovingWorld, moving_world
from tests.broker.test_cuts_between_voters import cut, heal, make_controller, ways
from tests.broker.test_promotion import constraints, start, votes, watched_world

from strandline.controller.commands import (
    AlterConfigs,
    ConfigChange,
    ConfigOperation,
    ResourceChanges,
    ResourceResults,
    ResourceType,
)

SHRINK, MIN_INSYNC = "voters.shrink.enable", "min.insync.replicas"


def alter(world: MovingWorld, **values: str) -> None:
    """Have keys of the topic set, named with underscores."""
    changes = tuple(
        ConfigChange(key=name.replace("_", "."), operation=ConfigOperation.SET, value=value)
        for name, value in values.items()
    )
    world.until(lambda: world.controller_leader() != 0)
    at = world.controller_leader()
    answer = world.submit(
        AlterConfigs((ResourceChanges(ResourceType.TOPIC, TOPIC, changes),)), at=at
    )
    assert isinstance(answer, ResourceResults), answer
    assert [one.error_code for one in answer.resources] == [0], answer


def until_more_is_acked(world: MovingWorld) -> None:
    """Until something more is acknowledged."""
    before = len(world.acked)
    world.until(lambda: len(world.acked) > before)


def is_stopped(world: MovingWorld) -> None:
    """Nothing that was sent from now on is acknowledged."""
    world.advance(5_000)
    before = len(world.acked)
    world.advance(15_000)
    assert len(world.acked) == before


@pytest.mark.parametrize("shrinks", ["true", "false"])
def test_half_of_the_voters_go_on_once_voters_may_leave(
    monkeypatch: pytest.MonkeyPatch, shrinks: str
) -> None:
    configs = ((MIN_INSYNC, "3"), (SHRINK, shrinks))
    with moving_world(monkeypatch, (2, 3, 4, 5), configs=configs) as world:
        until_more_is_acked(world)
        world.hosts[4].kill()
        world.hosts[5].kill()
        is_stopped(world)
        alter(world, voters_shrink_enable="true", min_insync_replicas="2")
        until_more_is_acked(world)
        world.check()


VICTIMS = ("leader", "follower")


def lose_one(world: MovingWorld, victim: str, replicas: tuple[int, ...]) -> None:
    """One that votes, and is no voter of the controller's where that is to be had."""
    leader = world.leader_of(TOPIC)
    followers = [one for one in replicas if one != leader]
    world.hosts[leader if victim == "leader" else followers[-1]].kill()


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_majority_that_is_fewer_than_asked_for_goes_on_once_that_is_lowered(
    monkeypatch: pytest.MonkeyPatch, victim: str
) -> None:
    """`the remaining 2 of 3 voters continue; acks=all is refused until ...`"""
    configs = ((MIN_INSYNC, "3"), (SHRINK, "true"))
    with moving_world(monkeypatch, (3, 4, 5), configs=configs) as world:
        until_more_is_acked(world)
        lose_one(world, victim, (3, 4, 5))
        is_stopped(world)
        alter(world, min_insync_replicas="2")
        until_more_is_acked(world)
        world.check()


def test_the_last_of_all_that_had_to_acknowledge_goes_on_once_that_is_lowered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`the controller appoints the remaining voter of 3 as leader; acks=all is refused until
    ...`"""
    configs = ((MIN_INSYNC, "3"), (SHRINK, "true"))
    with moving_world(monkeypatch, (3, 4, 5), configs=configs) as world:
        world.until(lambda: world.known.floor == 3)
        until_more_is_acked(world)
        last = next(one for one in (5, 4) if one != world.leader_of(TOPIC))
        for one in {3, 4, 5} - {last}:
            world.hosts[one].kill()
        is_stopped(world)
        alter(world, min_insync_replicas="1")
        until_more_is_acked(world)
        assert world.leader_of(TOPIC) == last
        world.check()


def cut_link(world: MovingWorld) -> tuple[int, int]:
    """Of three voters the leader and another one hear each other no more; the third hears both."""
    leader = world.leader_of(TOPIC)
    other = min(one for one in LINKED if one != leader)
    cut(world, ways((leader,), (other,)))
    return leader, other


LINKED = (1, 2, 3)
"""Voters of the controller, too."""


def test_a_majority_that_hears_its_leader_goes_on_while_a_link_is_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`2 of 3 voters continue with their leader; the others catch up when the link is repaired`"""
    with moving_world(monkeypatch, LINKED, configs=((MIN_INSYNC, "2"),)) as world:
        until_more_is_acked(world)
        link = cut_link(world)
        for _ in range(3):
            world.advance(10_000)
            until_more_is_acked(world)
        heal(world, ways(*((one,) for one in link)))
        world.finish(*LINKED)


@pytest.mark.parametrize("shrinks", ["true", "false"])
def test_a_majority_that_is_too_few_waits_for_the_link_or_for_a_lower_number(
    monkeypatch: pytest.MonkeyPatch, shrinks: str
) -> None:
    """`...; acks=all is refused until the link is repaired, or: ...`, or waits for that alone."""
    configs = ((MIN_INSYNC, "3"), (SHRINK, shrinks))
    with moving_world(monkeypatch, LINKED, configs=configs) as world:
        until_more_is_acked(world)
        make_controller(world, world.leader_of(TOPIC))
        link = cut_link(world)
        is_stopped(world)
        if shrinks == "true":
            alter(world, min_insync_replicas="2")
            until_more_is_acked(world)
        heal(world, ways(*((one,) for one in link)))
        until_more_is_acked(world)
        world.finish(*LINKED)


def test_a_leader_beyond_a_cut_link_from_the_controller_gives_way_to_who_hears_both(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configs = ((MIN_INSYNC, "3"), (SHRINK, "true"))
    with moving_world(monkeypatch, LINKED, configs=configs) as world:
        until_more_is_acked(world)
        leader = world.leader_of(TOPIC)
        make_controller(world, min(one for one in LINKED if one != leader))
        link = cut_link(world)
        world.until(lambda: world.leader_of(TOPIC) not in (0, *link))
        until_more_is_acked(world)
        heal(world, ways(*((one,) for one in link)))
        world.finish(*LINKED)


@pytest.mark.parametrize("policy", ["under-min-isr", "under-replicated"])
@pytest.mark.parametrize("victim", VICTIMS)
def test_a_majority_that_is_fewer_than_asked_for_goes_on_with_an_observer(
    monkeypatch: pytest.MonkeyPatch, victim: str, policy: str
) -> None:
    """`...; then 1 observer stands in: acks=all goes on`"""
    regions = {1: "west", 2: "east", 3: "west", 4: "west", 5: "west"}
    text = constraints({"west": 3}, {"east": 1}, policy)
    with watched_world(
        monkeypatch, (3, 4, 5), (2,), policy=text, min_insync=3, regions=regions
    ) as world:
        lose_one(world, victim, (3, 4, 5))
        world.until(lambda: 2 in world.known.voters)
        until_more_is_acked(world)
        world.check()


@pytest.mark.parametrize("lost", [(1, 4), (2, 5)])
def test_half_of_the_voters_go_on_with_an_observer_at_a_third_site(
    monkeypatch: pytest.MonkeyPatch, lost: tuple[int, int]
) -> None:
    """`the controller appoints a leader among the remaining 2 of 4 voters; then 1 observer
    stands in: acks=all goes on`, whichever half is lost."""
    text = constraints({"west": 2, "east": 2}, {"north": 1})
    with watched_world(monkeypatch, (4, 1, 5, 2), (3,), policy=text, min_insync=3) as world:
        for one in lost:
            world.hosts[one].kill()
        world.until(lambda: set(world.known.voters) == {1, 2, 3, 4, 5} - set(lost))
        until_more_is_acked(world)
        world.check()


def test_half_of_the_voters_refuse_acks_all_where_the_observer_is_lost_with_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`...; acks=all is refused until: strandline topic alter ... -c min.insync.replicas=2`"""
    regions = {1: "west", 2: "east", 3: "east", 4: "west", 5: "west"}
    text = constraints({"west": 2, "east": 2}, {"west": 1})
    with watched_world(
        monkeypatch, (4, 1, 3, 2), (5,), policy=text, min_insync=3, regions=regions
    ) as world:
        for one in (1, 4, 5):
            world.hosts[one].kill()
        is_stopped(world)
        alter(world, min_insync_replicas="2")
        until_more_is_acked(world)
        world.check()


def test_an_observer_stands_in_once_the_region_is_taken_for_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`...; then, once the region counts as down, 1 observer stands in: acks=all goes on`"""
    regions = {1: "west", 2: "west", 3: "west", 4: "east", 5: "east"}
    text = '{"rules":[{"count":4,"where":[%s]},{"role":"observer","count":1,"where":[%s]}],'
    text += '"promotion":"region-lost"}'
    rule = '{"label":"broker","op":"in","values":[%s]}'
    text %= (rule % '"1","2","4","5"', rule % '"3"')
    with watched_world(
        monkeypatch, (4, 1, 5, 2), (3,), policy=text, key="placement.policy", min_insync=3,
        regions=regions,
    ) as world:  # fmt: skip
        for one in (4, 5):
            world.hosts[one].kill()
        world.until(lambda: votes(world, 1, 2, 3))
        until_more_is_acked(world)
        world.check()


@pytest.mark.parametrize("back", [2, 5])
def test_of_four_voters_one_that_is_left_needs_one_more(
    monkeypatch: pytest.MonkeyPatch, back: int
) -> None:
    """`no leader; 1 of 4 voters is left: bring 1 more back`, and the observer is the third."""
    text = constraints({"west": 2, "east": 2}, {"north": 1})
    with watched_world(monkeypatch, (4, 1, 5, 2), (3,), policy=text, min_insync=3) as world:
        for one in (4, 5, 2):
            world.hosts[one].kill()
        is_stopped(world)
        start(world, back)
        world.until(lambda: votes(world, 1, back, 3))
        until_more_is_acked(world)
        world.check()


def test_of_two_voters_that_are_lost_one_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """`no voter is left: bring 1 back`, where an observer stands in beside it."""
    text = constraints({"west": 2}, {"east": 2})
    with watched_world(monkeypatch, policy=text) as world:
        for one in (1, 4):
            world.hosts[one].kill()
        is_stopped(world)
        start(world, 4)
        world.until(lambda: 4 in world.known.voters and len(world.known.voters) == 2)
        until_more_is_acked(world)
        world.check()
