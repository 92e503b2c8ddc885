"""After which losses a partition goes on by itself (design section 6; decision 0026)."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.placement.test_survival import placed

from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId
from strandline.placement.explain.outcomes import Outcome, outcomes
from strandline.placement.policy.document import Promotion
from strandline.placement.policy.goals import parse_goal
from strandline.placement.survival.course import Course
from strandline.placement.survival.courses import Rules
from strandline.placement.survival.regions import Regions
from strandline.placement.survival.replicas import Placement, Replica

THREE = ("a", "b", "c")
TALK = ("a/1", "a/2", "b/1", "b/2", "c/1")
HALVES = ("a/1", "a/2", "b/1", "b/2")


def told(
    placement: Placement, *, goals: Iterable[str] = (), **rules: object
) -> dict[str, tuple[str, int]]:
    """{loss: (what becomes of it, voters that are left)}, a region that is cut off as "cut", a link
    as "link"."""
    found = outcomes([(placement, (0,))], Rules(**rules), goals=map(parse_goal, goals))  # type: ignore[arg-type]
    names = (("link" if one.is_link else "cut") if one.is_cut else one.loss for one in found)
    return {name: (one.course.value, one.left) for name, one in zip(names, found, strict=True)}


def one_of(found: Iterable[Outcome], loss: str, *, is_cut: bool = False) -> Outcome:
    return next(one for one in found if one.loss == loss and one.is_cut == is_cut)


def seeds(*paths: str) -> list[Replica]:
    """The controller's voters, 101 and on."""
    return [
        Replica(BrokerId(100 + number), Labels(region=path))
        for number, path in enumerate(paths, start=1)
    ]


def test_three_in_three_regions_lose_one_alone_and_two_with_an_operator() -> None:
    assert told(placed(*THREE)) == {
        "1 region": ("election", 2),
        "1 broker": ("election", 2),
        "2 regions": ("may-lack", 1),
        "1 region and 1 broker": ("may-lack", 1),
        "2 brokers": ("may-lack", 1),
        "cut": ("election", 2),
        "link": ("election", 2),
    }


def test_two_two_one_goes_on_without_a_region_and_not_without_one_more_broker() -> None:
    found = told(placed(*TALK), goals=["2 regions and one broker"])
    assert found["1 region"] == found["cut"] == ("election", 3)
    assert found["1 zone"] == found["1 broker"] == ("election", 4)
    assert found["1 region and 1 broker"] == ("may-lack", 2)
    assert found["2 zones"] == ("election", 3)  # What the validator names as survived.
    assert found["2 regions"] == ("may-lack", 1)
    assert found["2 regions and 1 broker"] == ("gone", 0)
    assert found["3 brokers"] == ("may-lack", 2)


def test_two_halves_need_an_operator_where_voters_may_not_leave() -> None:
    found = outcomes([(placed(*HALVES), (0, 1))], Rules(controllers=seeds("a", "b", "c")))
    lost, cut = one_of(found, "1 region"), one_of(found, "1 region", is_cut=True)
    assert lost.course == cut.course == Course.LET_LEAVE
    assert (lost.acts_alone, lost.keeps_data, lost.left, lost.back) == (False, True, 2, 1)
    assert lost.partitions == (0, 1)
    assert one_of(found, "3 brokers").course == Course.MAY_LACK


def test_two_halves_act_alone_where_voters_may_leave_and_the_controller_lives() -> None:
    third = seeds("a", "b", "c")
    found = told(placed(*HALVES), shrinks=True, controllers=third)
    assert found["1 region"] == found["cut"] == ("arbitration", 2)
    # Both of the controller's voters in one half: with that half nobody is left who decides.
    found = told(placed(*HALVES), shrinks=True, controllers=seeds("a", "a", "b"))
    assert found["1 region"] == ("return", 2)
    # A cut leaves the controller on one side.
    assert found["cut"] == ("arbitration", 2)


def test_more_replicas_in_sync_than_are_left_are_asked_for_again() -> None:
    placement = placed(*HALVES, min_insync_replicas=3)
    found = told(placement, shrinks=True, min_insync_replicas=3)
    assert found["1 region"] == ("lower-min-insync", 2)
    assert told(placement, min_insync_replicas=3)["1 region"] == ("let-voters-leave", 2)


def test_above_a_majority_a_voter_that_is_left_is_appointed_where_voters_may_leave() -> None:
    found = outcomes(
        [(placed(*THREE, min_insync_replicas=3), (0,))], Rules(min_insync_replicas=3, shrinks=True)
    )
    one, two = one_of(found, "1 broker"), one_of(found, "2 regions")
    assert (one.course, one.left, one.back, one.keeps_data) == (Course.LOWER, 2, 1, True)
    fixed = outcomes([(placed(*THREE, min_insync_replicas=3), (0,))], Rules(min_insync_replicas=3))
    assert one_of(fixed, "1 broker").course == Course.RETURN
    # Whatever was acknowledged is on all three.
    assert (two.course, two.left, two.back, two.keeps_data) == (Course.LOWER, 1, 2, True)
    assert one_of(fixed, "2 regions").course == Course.RETURN
    assert one_of(found, "3 brokers").course == Course.GONE


@pytest.mark.parametrize("promotion", ["", "under-min-isr"])
def test_with_cached_writes_no_more_than_a_majority_is_promised(promotion: Promotion) -> None:
    """Of three the last one may not be appointed: it may have lost its power, and what it had."""
    placement = placed(*THREE, observers=("d", "d"), min_insync_replicas=3)
    told = Rules(3, shrinks=True, promotion=promotion)
    by_itself = Course.STANDS_IN if promotion else Course.LOWER
    for promises, expected in ((True, by_itself), (False, Course.RETURN)):
        rules = replace(told, promises=promises)
        found = outcomes([(placement, (0,))], rules, goals=[parse_goal("2 brokers")])
        assert one_of(found, "1 broker").course == by_itself
        two = one_of(found, "2 brokers")
        assert (two.course, two.left, two.keeps_data) == (expected, 1, True)


@pytest.mark.parametrize("promotion", ["under-min-isr", "under-replicated"])
def test_an_observer_stands_in_where_the_voters_that_are_left_are_too_few(promotion: str) -> None:
    """The 2.5-data-centre example, its observer at the third site, or lost with either half."""
    rules = {"shrinks": True, "min_insync_replicas": 3, "promotion": promotion}
    placement = placed(*HALVES, observers=("c/1",), min_insync_replicas=3)
    found = outcomes([(placement, (0,))], Rules(**rules, controllers=seeds("a", "b", "c")))  # type: ignore[arg-type]
    lost, cut = one_of(found, "1 region"), one_of(found, "1 region", is_cut=True)
    for one in (lost, cut):
        assert (one.course, one.left, one.stand_ins, one.back) == (Course.STANDS_IN, 2, 1, 0)
        assert one.acts_alone and one.keeps_data
    assert one_of(found, "1 region and 1 broker").course == Course.MAY_LACK
    beside = placed(*HALVES, observers=("a/1",), min_insync_replicas=3)
    assert told(beside, **rules)["1 region"] == ("lower-min-insync", 2)


def test_who_may_let_voters_leave_is_told_of_the_observers_that_stand_in_then() -> None:
    rules = Rules(3, promotion="under-min-isr", controllers=seeds("a", "b", "c"))
    placement = placed(*HALVES, observers=("c/1",), min_insync_replicas=3)
    lost = one_of(outcomes([(placement, (0,))], rules), "1 region")
    assert (lost.course, lost.left, lost.stand_ins) == (Course.LET_LEAVE, 2, 1)
    beside = placed(*HALVES, observers=("a/1",), min_insync_replicas=3)
    lost = one_of(outcomes([(beside, (0,))], rules), "1 region")
    assert (lost.course, lost.left, lost.stand_ins) == (Course.LET_LEAVE, 2, 0)


@pytest.mark.parametrize("promotion", ["", "leader-is-observer", "region-lost"])
def test_an_observer_that_may_not_be_promoted_is_counted_on_by_nobody(promotion: str) -> None:
    """Nobody says here when a region is down, so no region ever is."""
    placement = placed(*HALVES, observers=("c/1",), min_insync_replicas=3)
    rules = {"shrinks": True, "min_insync_replicas": 3, "promotion": promotion}
    assert told(placement, **rules)["1 region"] == ("lower-min-insync", 2)


def of_regions(placement: Placement, *others: str, silent_at: int = 2) -> Regions:
    """The replicas' brokers, and others without one, of regions that are down with so many."""
    brokers = [
        *placement.replicas,
        *(Replica(BrokerId(200 + n), Labels(region=path)) for n, path in enumerate(others)),
    ]
    counts = Counter(one.labels.region for one in brokers)
    return Regions(brokers, {one: silent_at for one, count in counts.items() if count >= silent_at})


def test_an_observer_stands_in_for_a_lost_region_once_that_is_taken_for_down() -> None:
    placement = placed(*HALVES, observers=("c/1",), min_insync_replicas=3)
    rules = Rules(3, True, seeds("a", "b", "c"), "region-lost", of_regions(placement))
    found = outcomes([(placement, (0,))], rules)
    for is_cut in (False, True):
        one = one_of(found, "1 region", is_cut=is_cut)
        assert (one.course, one.left, one.stand_ins) == (Course.STANDS_IN, 2, 1)
        assert one.awaits_region
    # One of each region: neither is down.
    assert one_of(found, "2 brokers").course == Course.LOWER


def test_a_region_counts_with_its_brokers_that_hold_no_replica() -> None:
    placement = placed(*THREE, observers=("d",), min_insync_replicas=3)
    rules = {"shrinks": True, "min_insync_replicas": 3, "promotion": "region-lost"}
    whole = of_regions(placement, *THREE)
    found = told(placement, **rules, regions=whole)
    assert found["1 region"] == ("stands-in", 2)
    assert found["1 broker"] == ("lower-min-insync", 2)
    alone = of_regions(placement)
    assert told(placement, **rules, regions=alone)["1 region"] == ("lower-min-insync", 2)
    assert alone.never_down([placement]) == THREE
    assert whole.never_down([placement]) == ()


def test_so_many_have_to_be_back_as_go_on_by_themselves() -> None:
    """Of four voters half is enough, where as many acknowledge or observers make up the number."""

    def back(*observers: str, least: int = 3, **rules: object) -> int:
        placement = placed(*HALVES, observers=observers, min_insync_replicas=least)
        given = Rules(least, promotion="under-min-isr", **rules)  # type: ignore[arg-type]
        return one_of(outcomes([(placement, (0,))], given), "1 region and 1 broker").back

    assert back("c", shrinks=True) == 1
    assert back(least=1, shrinks=True) == 1
    assert back("c") == back(least=1) == back(shrinks=True) == 2
    # Without the controller as many as a write needs.
    assert back("c", shrinks=True, controllers=seeds("a", "a", "b")) == 2


def test_voters_that_come_back_bring_the_controller_back_whose_voters_they_are() -> None:
    placement = placed(*HALVES, observers=("c", "c"), min_insync_replicas=3)
    every = [Replica(one.broker, one.labels) for one in placement.voters]

    def back(controllers: list[Replica], *, loss: str = "2 regions") -> tuple[bool, int]:
        rules = Rules(3, shrinks=True, controllers=controllers, promotion="under-min-isr")
        found = one_of(outcomes([(placement, (0,))], rules), loss)
        return found.without_controller, found.back

    # Two of the lost four are its majority with the one that is left, and an observer stands in.
    assert back([*every, *seeds("c")]) == (True, 2)
    assert back(every[:3]) == (True, 3), "one of the two that come first may be none of its voters"
    assert back(every[:1]) == (True, 3), "as many as a write needs, with it or without"
    assert back([*every[:1], *seeds("a", "b")]) == (True, 3), "too few of its voters are theirs"
    assert back([*every, *seeds("c")], loss="1 region and 1 broker") == (True, 1)


def test_without_its_controller_a_partition_needs_all_voters_that_acks_all_waits_for() -> None:
    """The controller promotes no observer while too few of its own voters can return with those of
    the partition."""
    placement = placed(*HALVES, observers=("c", "c"), min_insync_replicas=4)
    one = Replica(placement.voters[0].broker, placement.voters[0].labels)

    def back(controllers: list[Replica]) -> tuple[bool, int]:
        rules = Rules(4, shrinks=True, controllers=controllers, promotion="under-min-isr")
        found = one_of(outcomes([(placement, (0,))], rules), "2 regions")
        return found.without_controller, found.back

    assert back([one, *seeds("a", "b")]) == (True, 4)
    every = [Replica(voter.broker, voter.labels) for voter in placement.voters]
    assert back([*every, *seeds("c")])[1] < 4


def test_of_all_choices_that_end_alike_the_one_counts_that_needs_most() -> None:
    """Where more observers are left, the controller may have lost more; and where it is left, more
    voters may be lost."""
    near = placed("b", "b", observers=("a", "a"), min_insync_replicas=2)
    voters = [Replica(one.broker, one.labels) for one in near.voters]
    third = Replica(BrokerId(106), Labels(region="a"))
    rules = Rules(2, shrinks=True, controllers=[*voters, third], promotion="under-min-isr")
    gone = one_of(outcomes([(near, (0,))], rules), "1 region and 1 broker")
    assert (gone.course, gone.left, gone.back) == (Course.GONE, 0, 2)
    spread = placed("a", "a", "b", "b", "c", min_insync_replicas=4)
    first = Replica(spread.voters[0].broker, spread.voters[0].labels)
    rules = Rules(4, controllers=[first, *seeds("b", "c")])
    found = outcomes([(spread, (0,))], rules, goals=[parse_goal("3 brokers")])
    two, three = one_of(found, "2 brokers"), one_of(found, "3 brokers")
    assert (two.course, two.back) == (Course.RETURN, 1)
    assert (three.course, three.back) == (Course.RETURN, 2)


def test_observers_that_are_left_where_no_voter_is_are_told() -> None:
    placement = placed("a/1", "a/2", observers=("b", "b"), min_insync_replicas=2)
    for promotion in ("", "under-min-isr"):
        found = outcomes([(placement, (0,))], Rules(2, True, promotion=promotion))  # type: ignore[arg-type]
        gone = one_of(found, "1 region")
        assert (gone.course, gone.observers) == (Course.GONE, 2)
        assert gone.back == (1 if promotion else 2)


def test_as_many_observers_stand_in_as_are_missing_or_none_is_enough() -> None:
    rules = {"shrinks": True, "min_insync_replicas": 3, "promotion": "under-min-isr"}
    one = placed(*THREE, observers=("d",), min_insync_replicas=3)
    assert told(one, **rules)["1 broker"] == ("stands-in", 2)
    four = {**rules, "min_insync_replicas": 4}
    halves = placed(*HALVES, observers=("c",), min_insync_replicas=4)
    assert told(halves, **four)["1 region"] == ("lower-min-insync", 2)
    # Where the controller is lost with them, nobody is promoted.
    found = told(one, **rules, controllers=seeds("a", "a", "d"))
    assert found["1 region"] == ("return", 2)


def test_observers_count_for_nothing_without_a_promotion() -> None:
    without = told(placed("a", "b"), shrinks=True)
    found = told(placed("a", "b", observers=("c", "c")), shrinks=True)
    # But they are at a third site.
    assert found == {**without, "link": ("arbitration", 1)}
    assert without["1 region"] == ("arbitration", 1)
    assert without["2 brokers"] == ("gone", 0)


def test_one_replica_is_all_there_is() -> None:
    found = outcomes([(placed("a/1"), (0,))], Rules())
    assert {one.loss: one.course for one in found} == {
        "1 region": Course.GONE,
        "1 zone": Course.GONE,
        "1 broker": Course.GONE,
    }
    assert not any(one.keeps_data or one.acts_alone for one in found)


def test_a_region_with_a_write_quorum_goes_on_when_it_is_cut_off() -> None:
    found = outcomes([(placed("a", "a", "b"), (0,))], Rules(controllers=seeds("b", "b", "c")))
    cut = one_of(found, "1 region", is_cut=True)
    assert (cut.course, cut.left, cut.keeps_data) == (Course.ELECTION, 2, True)
    assert one_of(found, "1 region").course == Course.MAY_LACK


def link(placement: Placement, **rules: object) -> tuple[str, int] | None:
    """What becomes of it where a link between two regions is cut, and voters that are left; None
    where nothing is told of that."""
    return told(placement, **rules).get("link")


def test_a_cut_link_leaves_each_side_those_whom_both_reach() -> None:
    """Whoever leads, three of five voters hear it, or of those who do a majority elects another."""
    assert link(placed(*TALK)) == ("election", 3)
    assert link(placed("a", "a", "b", "c", "d")) == ("election", 3)
    # One of the two in the two regions leads, and has no majority: the other side elects one.
    assert link(placed("a", "a", "a", "b", "b", "c")) == ("election", 4)


def test_of_a_link_between_the_only_regions_nothing_is_told() -> None:
    """Each is cut off then, which is told already."""
    assert link(placed(*HALVES)) is None
    assert link(placed(*HALVES), controllers=seeds("a", "a", "b")) is None
    assert link(placed("a", "b", "")) is None, "who does not say where it is may be anywhere"
    assert link(placed("a", "a", "a"), controllers=seeds("a", "b", "c")) is None


def test_halves_whose_link_is_cut_are_appointed_by_a_controller_that_reaches_one() -> None:
    third = {"controllers": seeds("a", "b", "c")}
    assert link(placed(*HALVES), **third) == ("let-voters-leave", 2)
    assert link(placed(*HALVES), **third, shrinks=True) == ("arbitration", 2)
    beside = placed(*HALVES, observers=("c",))
    assert link(beside) == ("let-voters-leave", 2)
    # The cut leaves the controller no majority either.
    assert link(beside, shrinks=True, controllers=seeds("a", "b")) == ("return", 2)
    assert link(beside, shrinks=True, controllers=seeds("a", "a", "b")) == ("arbitration", 2)


def test_an_observer_stands_in_where_it_is_on_whichever_side_may_be_chosen() -> None:
    """Who leads the controller from one of the regions hears that side alone; from a third one it
    chooses the side that has enough copies."""
    rules = {"shrinks": True, "min_insync_replicas": 3, "promotion": "under-min-isr"}
    third = placed(*HALVES, observers=("c",), min_insync_replicas=3)
    assert link(third, **rules, controllers=seeds("a", "b", "c")) == ("stands-in", 2)
    one_side = placed(*HALVES, observers=("a",), min_insync_replicas=3)
    assert link(one_side, **rules, controllers=seeds("a", "b", "c")) == ("lower-min-insync", 2)
    assert link(one_side, **rules, controllers=seeds("a", "a", "c")) == ("stands-in", 2)
    assert link(one_side, **rules, controllers=seeds("c", "c", "c")) == ("stands-in", 2)
    # A region that others hear is never taken for down.
    lost = {**rules, "promotion": "region-lost", "regions": of_regions(third)}
    assert link(third, **lost, controllers=seeds("a", "b", "c")) == ("lower-min-insync", 2)


def test_a_majority_that_is_too_few_for_a_write_waits_for_the_link_or_does_without_the_others() -> (
    None
):
    placement = placed(*THREE, min_insync_replicas=3)
    assert link(placement, min_insync_replicas=3) == ("return", 2)
    assert link(placement, min_insync_replicas=3, shrinks=True) == ("lower-min-insync", 2)
    rules = {"min_insync_replicas": 3, "shrinks": True, "promotion": "under-min-isr"}
    assert link(placed(*THREE, observers=("d",), min_insync_replicas=3), **rules) == (
        ("stands-in", 2)
    )
    assert link(placed(*THREE, observers=("a",), min_insync_replicas=3), **rules) == (
        ("lower-min-insync", 2)
    )


def test_a_leader_that_does_not_reach_the_controller_gives_way_to_one_that_both_sides_hear() -> (
    None
):
    """The controller is led from region b, or nowhere: its voters in a and d are no majority."""
    rules = {"min_insync_replicas": 4, "shrinks": True, "controllers": seeds("b", "b", "d")}
    reached = placed("a", "a", "a", "b", "d", min_insync_replicas=5)
    given = {**rules, "min_insync_replicas": 5}
    # From a to b it is given way; between others it is reached.
    assert link(reached, **given) == ("lower-min-insync", 2 + 2)
    # Nobody else hears both sides: three of four stay with their leader, and wait.
    alone = placed("a", "a", "a", "b", min_insync_replicas=4)
    assert link(alone, **rules) == ("return", 3)


@given(
    st.lists(st.sampled_from(("a", "b", "c", "e")), min_size=1, max_size=7),
    st.integers(1, 4),
)
def test_after_a_cut_link_whoever_may_lead_has_those_who_hear_it(
    regions: list[str], least: int
) -> None:
    """By every pair of regions and every leader before: who has a majority stays, else one of those
    who have it is elected."""
    placement = placed(*regions, observers=("d",), min_insync_replicas=least)
    quorum, majority = placement.quorum, len(regions) // 2 + 1
    found: list[int] = []
    for pair in combinations(sorted(set(regions)), 2):

        def heard(by: str, pair: tuple[str, ...] = pair) -> int:
            return sum(by == one or {by, one} != {*pair} for one in regions)

        able = [one for one in regions if heard(one) >= majority]
        found += [heard(one) for one in able] or [heard(pair[0])]
    told_of = link(placement, min_insync_replicas=least)
    assert (told_of is None) == (not found)
    if told_of is not None:
        assert told_of[1] == min(found)
        assert (told_of[0] == "election") == (min(found) >= quorum.write_quorum)


def test_the_weakest_partition_counts_and_is_named() -> None:
    found = outcomes([(placed(*THREE), (0, 2)), (placed("a", "a", "b"), (1, 3))], Rules())
    lost = one_of(found, "1 region")
    assert (lost.course, lost.partitions) == (Course.MAY_LACK, (1, 3))
    assert one_of(found, "1 broker").partitions == (0, 1, 2, 3)


@given(
    paths=st.lists(st.sampled_from(("a/1", "a/2", "b/1", "b/2", "c/1")), min_size=1, max_size=6),
    min_insync=st.integers(1, 4),
    shrinks=st.booleans(),
    count=st.integers(1, 3),
)
def test_what_survives_goes_on_and_what_may_be_lost_is_told(
    paths: list[str], min_insync: int, *, shrinks: bool, count: int
) -> None:
    """By every choice of so many brokers: an election where a write quorum is left; data is at risk
    exactly where a write quorum can lie among those that are lost."""
    placement = placed(*paths, min_insync_replicas=min_insync)
    found = outcomes(
        [(placement, (0,))],
        Rules(min_insync, shrinks),
        goals=[parse_goal(f"{count} brokers")],
    )
    voters = [one.broker for one in placement.voters]
    quorum = placement.quorum.write_quorum
    for one in found:
        if one.is_cut or set(one.loss.split()) - {
            "1",
            "2",
            "3",
            "4",
            "5",
            "6",
            "broker",
            "brokers",
        }:
            continue
        lost = int(one.loss.split()[0])
        choices = list(combinations(voters, lost))
        assert (one.course == Course.ELECTION) == (len(voters) - lost >= quorum)
        can_hold_all = any(len(choice) >= quorum for choice in choices)
        assert one.keeps_data == (not can_hold_all)
        enough = quorum
        if shrinks and min(min_insync, len(voters)) <= len(voters) // 2:
            enough = len(voters) - len(voters) // 2  # As many as the controller appoints.
        assert one.back == (0 if one.acts_alone else max(enough - (len(voters) - lost), 0))


@pytest.mark.parametrize("shrinks", [False, True])
def test_only_voters_that_may_leave_are_arbitrated(*, shrinks: bool) -> None:
    found = outcomes([(placed(*HALVES), (0,))], Rules(shrinks=shrinks))
    assert any(one.course == Course.ARBITRATION for one in found) == shrinks
