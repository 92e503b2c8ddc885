"""What a placement survives is proved from its labels (design sections 6 and 7)."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId
from strandline.placement.policy.document import Goal, goal_levels
from strandline.placement.policy.goals import format_goal, parse_goal
from strandline.placement.survival.goals import (
    broken_goals,
)
from strandline.placement.survival.replicas import LOSS_LEVELS, Placement, Quorum, Replica
from strandline.placement.survival.report import implies, survival_of


def placed(*paths: str, min_insync_replicas: int = 1, observers: tuple[str, ...] = ()) -> Placement:
    """Voters at "region/zone/rack/host", then observers."""
    replicas = []
    for number, path in enumerate(paths + observers, start=1):
        region, zone, rack, host = (path.split("/") + [""] * 4)[:4]
        role = "voter" if number <= len(paths) else "observer"
        replicas.append(Replica(BrokerId(number), Labels(region, zone, rack, host), role))  # type: ignore[arg-type]
    return Placement(replicas, min_insync_replicas=min_insync_replicas)


TALK = ("a/1", "a/2", "b/1", "b/2", "c/1")
"""The talk's example: 2 + 2 + 1 over three regions, each replica in a zone of its own."""


def texts(goals: tuple[Goal, ...]) -> list[str]:
    return [format_goal(goal) for goal in goals]


def test_two_two_one_survives_a_region_a_zone_and_any_two_brokers() -> None:
    for words in ("region", "zone", "any two brokers", "2 zones"):
        assert not broken_goals([parse_goal(words)], placed(*TALK)), words
    survival = survival_of(placed(*TALK))
    assert texts(survival.writes) == ["1 region", "2 zones"]
    assert {one.level: (one.domains, one.writes, one.data) for one in survival.levels} == {
        "region": (3, 1, 1), "zone": (5, 2, 2), "broker": (5, 2, 2),
    }  # fmt: skip


def test_two_two_one_stops_with_two_regions_or_a_region_and_one_more_broker() -> None:
    broken = broken_goals([parse_goal("region and one more broker")], placed(*TALK))
    assert str(broken[0]) == (
        "survive 1 region and 1 broker does not hold: it can take the voters 1, 2, 3, "
        "and writes need 3 of 5"
    )
    survival = survival_of(placed(*TALK))
    stopping = {one.level: one for one in survival.stopping}
    assert (stopping["region"].size, stopping["region"].count) == (2, 3)
    assert stopping["region"].sets == (("a", "b"), ("a", "c"), ("b", "c"))
    assert (stopping["broker"].size, stopping["broker"].count) == (3, 10)


def test_more_replicas_for_a_write_survive_less_and_keep_more() -> None:
    cautious = survival_of(placed(*TALK, min_insync_replicas=4))
    assert cautious.write_quorum == 4
    assert texts(cautious.writes) == ["1 zone"]
    assert texts(cautious.data) == ["3 zones", "1 region and 1 zone"]
    losing = {one.level: one for one in cautious.losing}
    assert losing["region"].sets == (("a", "b"),)


def test_an_even_number_of_voters_survives_no_more_than_one_less() -> None:
    six = survival_of(placed("a/1", "a/2", "b/1", "b/2", "c/1", "c/2"))
    assert texts(six.writes) == ["1 region", "2 zones"]


def test_seven_in_four_regions_survive_a_region_and_one_more_broker() -> None:
    seven = placed("a", "a", "b", "b", "c", "c", "d")
    assert not broken_goals([parse_goal("region and one more broker")], seven)
    assert texts(survival_of(seven).writes) == ["3 brokers", "1 region and 1 broker"]


def test_a_goal_that_does_not_hold_says_so_with_the_proof() -> None:
    goals = [parse_goal("region")]
    assert not broken_goals(goals, placed(*TALK))
    (broken,) = broken_goals(goals, placed("a", "a", "b"))
    assert str(broken).startswith("survive 1 region does not hold: ")


def test_observers_count_for_nothing() -> None:
    assert survival_of(placed("a", "b", observers=("c", "d"))) == survival_of(placed("a", "b"))


def test_labels_that_are_not_said_are_one_domain_and_are_named() -> None:
    half = placed("a/1", "a", "a")
    zone = next(one for one in survival_of(half).levels if one.level == "zone")
    assert (zone.domains, zone.writes, zone.unlabelled) == (2, 0, (2, 3))
    assert [one.level for one in survival_of(placed("", "", "")).levels] == ["broker"]


@pytest.mark.parametrize(
    ("wide", "narrow", "holds"),
    [
        ("region", "zone", True),
        ("zone", "region", False),
        ("region and zone", "2 zones", True),
        ("region and zone", "zone and 1 broker", True),
        ("2 zones", "region", False),
        ("upgrade_domain", "broker", True),
        ("upgrade_domain", "host", False),
        ("region", "upgrade_domain", False),
        ("region and broker", "2 hosts", False),
        ("region and upgrade_domain", "zone and broker", True),
    ],
)
def test_a_wider_loss_implies_the_narrower_ones(wide: str, narrow: str, *, holds: bool) -> None:
    assert implies(parse_goal(wide), parse_goal(narrow)) is holds


@pytest.mark.parametrize(
    ("voters", "min_insync", "quorum", "stops", "loses"),
    [(1, 1, 1, 1, 1), (2, 1, 2, 1, 2), (3, 1, 2, 2, 2), (3, 3, 3, 1, 3), (4, 9, 4, 1, 4),
     (5, 2, 3, 3, 3), (5, 4, 4, 2, 4)],
)  # fmt: skip
def test_the_quorum_rule(voters: int, min_insync: int, quorum: int, stops: int, loses: int) -> None:
    one = Quorum.of(voters, min_insync)
    assert (one.write_quorum, one.stops_at, one.loses_at) == (quorum, stops, loses)


_places = st.tuples(*[st.sampled_from(["1", "2", ""])] * 3, st.sampled_from(["x", "y", ""]))
_voters = st.lists(_places, min_size=1, max_size=6)
_goals = st.builds(Goal, **{level: st.integers(0, 2) for level in LOSS_LEVELS}).filter(
    lambda goal: 0 < sum(goal_levels(goal).values()) <= 4
)


def by_brute_force(placement: Placement, goal: Goal) -> int:
    """The most voters that any such loss takes, every choice of domains tried."""

    def most(levels: list[tuple[str, int]], lost: int) -> int:
        if not levels:
            return lost.bit_count()
        level, count = levels[0]
        masks = list(placement.domains(level).values())
        best = 0
        for chosen in combinations(masks, min(count, len(masks))):
            union = lost
            for mask in chosen:
                union |= mask
            best = max(best, most(levels[1:], union))
        return best

    return most(list(goal_levels(goal).items()), 0)


def _placement(voters: list[tuple[str, ...]]) -> Placement:
    return Placement(
        [
            Replica(BrokerId(number), Labels(region, zone, rack, "", upgrade))
            for number, (region, zone, rack, upgrade) in enumerate(voters)
        ]
    )


@given(_voters, _goals)
def test_the_worst_loss_is_the_worst_of_all(voters: list[tuple[str, ...]], goal: Goal) -> None:
    placement = _placement(voters)
    assert placement.lost_by(goal).bit_count() == by_brute_force(placement, goal)


@given(_voters, st.integers(1, 6))
def test_everything_that_is_said_to_survive_does(voters: list[tuple[str, ...]], least: int) -> None:
    placement = Placement(_placement(voters).replicas, min_insync_replicas=least)
    survival = survival_of(placement)
    quorum = placement.quorum
    for goals, most in (
        (survival.writes, quorum.stops_at - 1),
        (survival.data, quorum.loses_at - 1),
    ):
        assert all(by_brute_force(placement, goal) <= most for goal in goals)
        for level in survival.levels:
            alone = Goal(**{level.level: 1})
            said = any(implies(goal, alone) for goal in goals)
            assert said == (by_brute_force(placement, alone) <= most)
