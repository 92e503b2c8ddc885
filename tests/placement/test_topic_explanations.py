"""What is told of a topic that exists, and of a whole cluster (decision 0008)."""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.placement.solver_world import candidate

from strandline.model.cluster import Roles
from strandline.model.ids import NO_BROKER, BrokerId
from strandline.placement.explain.explanation import explain
from strandline.placement.explain.exposure import exposures
from strandline.placement.explain.repairs import repaired
from strandline.placement.explain.topics import (
    PartitionState,
    TopicExplanation,
    explain_topic,
    placement_of,
)
from strandline.placement.policy.document import Role
from strandline.placement.policy.goals import format_goal
from strandline.placement.policy.text import decode_policy
from strandline.placement.solver.refusal import Refusal
from strandline.placement.solver.request import Request
from strandline.placement.solver.solve import solve
from strandline.placement.survival.courses import Rules
from strandline.placement.topology.round_trips import RoundTrips
from strandline.placement.topology.universe import BrokerState, Candidate, Universe

PATHS = ("e/1", "e/2", "w/1", "w/2", "s/1")


def brokers(*down: int, paths: Sequence[str] = PATHS) -> list[Candidate]:
    """One a path, by itself 2 + 2 + 1 in three regions, of which these are down."""
    return [
        candidate(n, path, state=BrokerState.DOWN if n in down else BrokerState.ACTIVE)
        for n, path in enumerate(paths, start=1)
    ]


def request_of(policy: str = "{}", *, min_insync_replicas: int = 1) -> Request:
    return Request(
        policy=decode_policy(policy),
        min_insync_replicas=min_insync_replicas,
        takes_down_brokers=True,
    )


def state(index: int, *voters: int, leader: int | None = None) -> PartitionState:
    led = voters[0] if leader is None else leader
    return PartitionState(index, tuple(map(BrokerId, voters)), leader=BrokerId(led))


def told(
    policy: str, *partitions: PartitionState, down: tuple[int, ...] = (), **more: int
) -> TopicExplanation:
    return explain_topic(request_of(policy, **more), brokers(*down), partitions)


def texts(goals: object) -> list[str]:
    return [format_goal(goal) for goal in goals]  # type: ignore[attr-defined]


def test_a_topic_as_its_policy_wants_it_has_no_faults() -> None:
    found = told("survive: [region, 2 brokers]", state(0, 1, 2, 3, 4, 5), state(1, 3, 1, 2, 4, 5))
    (alike,) = found.alike
    assert (alike.partitions, alike.voters) == ((0, 1), (1, 2, 3, 4, 5))
    assert (alike.faults, alike.down, alike.has_stopped) == ((), (), False)
    assert texts(found.writes) == texts(found.writes_now) == ["1 region", "2 zones"]
    assert (found.missing, found.elsewhere, found.leaderless) == ((), (), ())
    assert found.cross_region == 2


def test_all_partitions_survive_what_the_weakest_survives() -> None:
    found = told("{}", state(0, 1, 2, 3, 4, 5), state(1, 1, 3, 5))
    assert texts(found.writes) == ["1 region"]
    assert found.cross_region == 2


def test_a_broker_that_is_down_is_counted_as_lost() -> None:
    found = told("survive: region", state(0, 1, 3, 5, leader=1), down=(5,))
    assert texts(found.writes) == ["1 region"]
    assert (found.writes_now, found.data_now) == ((), ())
    assert (found.alike[0].down, found.alike[0].has_stopped) == ((5,), False)
    # It is as the policy wants: a broker that is down is no fault of the placement.
    assert found.alike[0].faults == ()
    five = told("survive: region", state(0, 1, 2, 3, 4, 5), down=(5,))
    assert texts(five.writes_now) == ["1 zone"]
    stopped = told("{}", state(0, 1, 3, 5, leader=NO_BROKER), state(1, 1, 2, 3), down=(3, 5))
    first, second = stopped.alike
    assert (first.partitions, first.has_stopped) == ((0,), True)
    assert (second.partitions, second.has_stopped) == ((1,), False)
    assert stopped.leaderless == (0,)


@pytest.mark.parametrize(
    ("policy", "voters", "says"),
    [
        ("survive: region", (1, 2, 3), "survive 1 region does not hold: it can take the voters"),
        (
            "spread: [{by: region, max_per: 1}]",
            (1, 2, 3),
            "at most 1: brokers 1, 2: region e has 1 of at most 1 replica",
        ),
        ("rules: [{count: 3}]", (1, 3), "1 fewer replica than the rules require"),
        ("rules: [{count: 1}]", (1, 3), "no rule requires the replicas of broker 3"),
        (
            "residency: {deny: [{label: region, op: in, values: [s]}]}",
            (1, 3, 5),
            "residency: broker 5: region is in [s]",
        ),
    ],
)
def test_what_is_not_as_the_policy_wants_is_said(
    policy: str, voters: tuple[int, ...], says: str
) -> None:
    found = told(policy, state(0, *voters), state(1, *voters))
    assert says in "; ".join(found.alike[0].faults)


def test_more_replicas_for_a_write_break_a_policy_that_held() -> None:
    partitions = state(0, 1, 2, 3, 4, 5)
    assert not told("survive: region", partitions).alike[0].faults
    (fault,) = told("survive: region", partitions, min_insync_replicas=4).alike[0].faults
    assert "writes need 4 of 5" in fault


def test_a_replica_that_is_behind_is_counted_as_lost_and_no_write_waits_for_it() -> None:
    one, other = state(0, 1, 3, 5), state(1, 1, 3, 5)
    one = replace(one, behind=(BrokerId(3),))
    found = told("survive: region", one, other)
    first, second = found.alike
    assert (first.partitions, first.behind, first.down, first.faults) == ((0,), (3,), (), ())
    assert (second.partitions, second.behind, first.has_stopped) == ((1,), (), False)
    assert (texts(found.writes), found.writes_now) == (["1 region"], ())
    # Whoever is down is so whether its leader says that it is behind or not.
    (alike,) = told("{}", one, other, down=(3,)).alike
    assert (alike.partitions, alike.down, alike.behind) == ((0, 1), (3,), ())
    stopped = told("{}", replace(one, behind=(BrokerId(3), BrokerId(5)))).alike[0]
    assert stopped.has_stopped
    roles: list[tuple[BrokerId, Role]] = [(BrokerId(n), "voter") for n in (1, 3, 5)]
    closely = explain(request_of(), brokers(), roles, behind=one.behind)
    assert closely.now is not None and closely.now.lost == (3,)


def test_who_votes_now_decides_what_goes_on() -> None:
    one = replace(state(0, 1, 3), observers=(BrokerId(5),))
    assert told("{}", one, down=(1,)).alike[0].has_stopped
    stands_in = replace(one, acting=(BrokerId(3), BrokerId(5)), leader=BrokerId(3))
    found = told("{}", stands_in, down=(1,), min_insync_replicas=2)
    (alike,) = found.alike
    assert (alike.has_stopped, alike.down, alike.lost) == (False, (1,), ())
    assert (texts(found.writes), texts(found.data)) == ([], ["1 region"])
    assert (texts(found.writes_now), texts(found.data_now)) == ([], ["1 region"])
    (alike,) = told("{}", stands_in, down=(1, 5), min_insync_replicas=2).alike
    assert (alike.has_stopped, alike.down, alike.lost) == (True, (1, 5), (5,))
    # One that votes alone takes writes, but none that ask for two.
    alone = replace(one, acting=(BrokerId(3),), leader=BrokerId(3))
    assert not told("{}", alone, down=(1,)).alike[0].has_stopped
    assert told("{}", alone, down=(1,), min_insync_replicas=2).alike[0].has_stopped
    roles: list[tuple[BrokerId, Role]] = [(BrokerId(n), "voter") for n in (1, 3)]
    closely = explain(request_of(), brokers(1), roles, acting=stands_in.acting)
    assert closely.now is not None and not closely.now.has_stopped
    assert (closely.now.voters, closely.now.lost) == (2, ())


def test_labels_that_are_gone_are_named() -> None:
    found = told("survive: rack", state(0, 1, 3, 5))
    assert found.missing[0].startswith("brokers 1, 2, 3, 4, 5 have no label 'rack'")
    assert len(found.missing) == 1


def test_leaders_that_are_not_where_they_should_be_are_counted() -> None:
    policy = "leaders: {prefer: [[{label: region, op: in, values: [e]}]]}"
    partitions = state(0, 1, 3, 5), state(1, 1, 3, 5, leader=3), state(2, 3, 4, 5)
    assert told(policy, *partitions).elsewhere == (1,)
    assert told(policy, partitions[1], down=(1,)).elsewhere == ()


def test_a_write_waits_longer_while_a_voter_is_down() -> None:
    ways = {(1, 3): 30, (1, 5): 80, (3, 1): 31, (5, 1): 81, (5, 3): 90}
    measured = {(BrokerId(a), BrokerId(b)): ms for (a, b), ms in ways.items()}
    regions = {one.id: one.labels.region for one in brokers()}
    request = Request(
        policy=decode_policy("{}"), round_trips=RoundTrips.measured(measured, regions)
    )
    roles: list[tuple[BrokerId, Role]] = [(BrokerId(n), "voter") for n in (1, 3, 5)]
    found = explain(request, brokers(3), roles)
    assert [one.commit_ms for one in found.latencies] == [30, 31, 81]
    assert [(one.leader, one.commit_ms) for one in found.latencies_now] == [(1, 80), (5, 81)]
    assert found.now is not None and (found.now.lost, found.now.has_stopped) == ((3,), False)
    stopped = explain(request, brokers(3, 5), roles)
    assert stopped.latencies_now == () and stopped.now is not None and stopped.now.has_stopped
    assert explain(request, brokers(), roles).now is None


def test_a_topic_waits_as_its_partitions_are_led_now() -> None:
    ways = {(1, 3): 30, (1, 5): 80, (3, 5): 90}
    measured = {(BrokerId(a), BrokerId(b)): ms for (a, b), ms in ways.items()}

    def waits(*down: int) -> list[tuple[int | None, tuple[int, ...]]]:
        known = brokers(*down)
        regions = {one.id: one.labels.region for one in known}
        request = Request(
            policy=decode_policy("{}"), round_trips=RoundTrips.measured(measured, regions)
        )
        partitions = [
            state(0, 1, 3, 5),
            state(1, 1, 3, 5, leader=3),
            state(2, 1, 3, 5, leader=5),
            state(3, 2),
            state(4, 1, 3, 5, leader=NO_BROKER),
            state(5, 1, 2, 3),
        ]
        found = explain_topic(request, known, partitions)
        return [(one.commit_ms, one.partitions) for one in found.waits]

    # Nobody measured the way from 1 to 2: by the other voter, the quorum is reached all the same.
    assert waits() == [(0, (3,)), (30, (0, 1, 5)), (80, (2,))]
    assert waits(3) == [(0, (3,)), (80, (0, 2)), (None, (5,))]
    assert waits(3, 5) == [(0, (3,)), (None, (5,))]


def test_a_way_that_nobody_measured_is_not_short() -> None:
    alone = [candidate(n, "") for n in (1, 2, 3)]
    request = Request(policy=decode_policy("{}"), round_trips=RoundTrips.measured({}, {}))
    roles: list[tuple[BrokerId, Role]] = [(BrokerId(n), "voter") for n in (1, 2, 3)]
    assert [one.commit_ms for one in explain(request, alone, roles).latencies] == [None] * 3


def test_what_one_more_loss_would_stop_is_told_domain_by_domain() -> None:
    universe = Universe(brokers(5))
    five = tuple(BrokerId(n) for n in (1, 2, 3, 4, 5))
    three = tuple(BrokerId(n) for n in (1, 3, 5))
    partitions = [
        (placement_of(universe, Roles(voters), request_of()), Rules(), count)
        for voters, count in ((five, 7), (three, 2))
    ]
    weak = [(one.at_present(down=[BrokerId(5)]), rules, n) for one, rules, n in partitions]
    found = {(one.level, one.domain): one for one in exposures(universe, weak)}
    assert {place: (one.stops, one.loses) for place, one in found.items()} == {
        ("region", "e"): (9, 9),
        ("region", "w"): (9, 9),
        ("zone", "e/1"): (2, 2),
        ("zone", "w/1"): (2, 2),
    }
    assert exposures(Universe(brokers()), partitions[:1]) == ()


_paths = st.lists(st.sampled_from(PATHS), min_size=1, max_size=6)


@given(_paths, st.integers(1, 6), st.data())
def test_one_more_loss_stops_what_it_takes_below_the_quorum(
    paths: list[str], least: int, data: st.DataObject
) -> None:
    ids = range(1, len(paths) + 1)
    down = data.draw(st.sets(st.sampled_from(ids)))
    known = brokers(*down, paths=paths)
    universe = Universe(known)
    voters = tuple(one.id for one in known)
    placement = placement_of(universe, Roles(voters), request_of(min_insync_replicas=least))
    weak = placement.at_present(down=[*map(BrokerId, down)])
    stopped = {one.brokers for one in exposures(universe, [(weak, Rules(), 1)]) if one.stops}
    needed = placement.quorum.write_quorum

    def writes(gone: set[int]) -> bool:
        return len(set(voters) - gone) >= needed

    domains = {tuple(n for n in ids if paths[n - 1].startswith(p)) for p in (*PATHS, *"ews")}
    domains |= {(n,) for n in ids}
    expected = {one for one in domains if one and writes(down) and not writes(down | set(one))}
    assert stopped == expected


@given(_paths, st.integers(1, 6), st.data())
def test_what_is_said_to_survive_beside_those_that_are_down_does(
    paths: list[str], least: int, data: st.DataObject
) -> None:
    ids = range(1, len(paths) + 1)
    down = data.draw(st.sets(st.sampled_from(ids)))
    known = brokers(*down, paths=paths)
    found = explain_topic(
        request_of(min_insync_replicas=least), known, [state(0, *ids, leader=NO_BROKER)]
    )
    (alike,) = found.alike
    assert alike.has_stopped == (len(paths) - len(down) < alike.write_quorum)
    living = [n for n in ids if n not in down]
    for count in range(1, len(living) + 1):
        goes_on = all(
            len(living) - len(lost) >= alike.write_quorum for lost in combinations(living, count)
        )
        said = any(goal.broker >= count for goal in found.writes_now) or any(
            # A wider loss takes a broker at least.
            sum((goal.region, goal.zone, goal.broker)) >= count
            for goal in found.writes_now
        )
        assert said == goes_on


_policies = st.sampled_from(
    [
        "survive: region",
        "survive: [region, 2 brokers]",
        "survive: zone",
        "spread: [{by: region, max_per: 1}]",
        "rules: [{count: 2, where: [{label: region, op: in, values: [e]}]}]",
        "residency: {deny: [{label: region, op: in, values: [s]}]}",
    ]
)


@given(_policies, st.sets(st.integers(1, 5), min_size=1), st.integers(1, 3))
def test_what_would_be_right_is_right_and_keeps_what_was(
    policy: str, voters: set[int], least: int
) -> None:
    request = request_of(policy, min_insync_replicas=least)
    before = tuple(map(BrokerId, sorted(voters)))
    found = repaired(request, brokers(), Roles(before))
    anew = solve(request, brokers(), rng=random.Random(0))
    assert isinstance(found, Refusal) == isinstance(anew, Refusal)
    if isinstance(found, Roles):
        assert not found.observers
        (alike,) = told(policy, state(0, *found.voters), min_insync_replicas=least).alike
        assert alike.faults == ()
        kept = [broker for broker in before if broker in found.voters]
        assert list(found.voters[: len(kept)]) == kept
        assert not isinstance(anew, Refusal)
        if len(before) == len(anew.partitions[0].voters):
            right = told(policy, state(0, *before), min_insync_replicas=least).alike[0]
            assert (found.voters == before) == (right.faults == ())


def test_why_nothing_would_be_right_is_told_with_what_could_be() -> None:
    found = repaired(request_of("survive: 2 regions"), brokers(), Roles((BrokerId(1), BrokerId(3))))
    assert isinstance(found, Refusal) and found.nearest is not None
    assert "this would be possible: survive 2 zones instead of 2 regions" in str(found)
