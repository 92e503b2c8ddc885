"""Which observer is promoted or demoted, and why. Source: decision 0025."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.controller.arbitration.promotion import (
    Bounds,
    Code,
    Observer,
    Situation,
    Verdict,
    decide_promotion,
    wanted_count,
)
from strandline.model.ids import BrokerId
from strandline.placement.policy.document import Promotion

BOUNDS = Bounds()
POLICIES: tuple[Promotion, ...] = (
    "",
    "under-min-isr",
    "under-replicated",
    "leader-is-observer",
    "region-lost",
)


def brokers(*ids: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, ids))


def observer(broker: int, **levels: int) -> Observer:
    """One that has caught up; `levels`: b1=2 shares two levels with broker 1."""
    near = {BrokerId(int(name[1:])): count for name, count in levels.items()}
    return Observer(BrokerId(broker), True, BOUNDS.ready_ms, 0, 0, near)


def three_voters(policy: Promotion, *voting: int, promoted: tuple[int, ...] = ()) -> Situation:
    """Voters 1 to 3, observers 4 and 5, min.insync.replicas 2; broker 1 leads."""
    return Situation(
        policy=policy,
        own=brokers(1, 2, 3),
        voting=brokers(*voting),
        promoted=brokers(*promoted),
        observers=(observer(4), observer(5)),
        leader=BrokerId(1),
        min_insync=2,
        regions=dict(zip(brokers(1, 2, 3), ("west", "west", "east"), strict=True)),
    )


def step(case: Situation) -> tuple[Code, int | None]:
    found = decide_promotion(case)
    return found.code, found.broker


@pytest.mark.parametrize(
    ("policy", "wanted"),
    [
        ("under-min-isr", (0, 0, 1)),
        ("under-replicated", (0, 1, 2)),
        ("leader-is-observer", (0, 0, 0)),
        ("region-lost", (0, 0, 0)),
        ("", (0, 0, 0)),
    ],
)
def test_confluent_s_examples(policy: Promotion, wanted: tuple[int, ...]) -> None:
    """Three in sync and min.insync.replicas 2: under-min-isr promotes when two fail,
    under-replicated when one does."""
    cases = [three_voters(policy, *voting) for voting in ((1, 2, 3), (1, 2), (1,))]
    assert tuple(map(wanted_count, cases)) == wanted


def test_no_more_are_wanted_than_there_are_voters() -> None:
    case = replace(three_voters("under-min-isr", 1, 2, 3), min_insync=5)
    assert wanted_count(case) == 0


def test_an_observer_that_leads_has_others_promoted_beside_it() -> None:
    case = three_voters("leader-is-observer", promoted=(4,))
    assert wanted_count(case) == 1
    led = replace(case, leader=BrokerId(4))
    assert wanted_count(led) == 2
    assert step(led) == (Code.PROMOTE, 5)


def test_who_stands_in_beside_an_observer_that_leads_stays_while_acks_all_needs_it() -> None:
    """A voter that is back may lead, and not be enough."""
    case = three_voters("leader-is-observer", 1, promoted=(4, 5))
    assert wanted_count(case) == 1
    assert wanted_count(replace(case, voting=brokers(1, 2))) == 0


def test_a_region_is_lost_when_it_is_down_and_none_of_its_voters_is_left() -> None:
    case = three_voters("region-lost", 1, 3)
    assert wanted_count(replace(case, regions_down=frozenset(("west",)))) == 0
    case = three_voters("region-lost", 3)
    assert wanted_count(case) == 0
    assert wanted_count(replace(case, regions_down=frozenset(("west",)))) == 2
    assert wanted_count(replace(case, regions_down=frozenset(("north",)))) == 0


@pytest.mark.parametrize(("voting", "wanted"), [((3,), 2), ((1, 3), 1), ((1, 2, 3), 0)])
def test_who_stands_in_for_a_region_stays_until_its_voters_are_back(
    voting: tuple[int, ...], wanted: int
) -> None:
    """Its brokers are heard before they have what they missed, and some may never come."""
    assert wanted_count(three_voters("region-lost", *voting, promoted=(4, 5))) == wanted


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({}, Code.PROMOTE),
        ({"lag_count": BOUNDS.lag_count_max, "lag_ms": BOUNDS.lag_ms_max}, Code.PROMOTE),
        ({"lag_count": BOUNDS.lag_count_max + 1}, Code.BEHIND),
        ({"lag_ms": BOUNDS.lag_ms_max + 1}, Code.BEHIND),
        ({"lag_count": -1}, Code.BEHIND),
        ({"lag_ms": -1}, Code.BEHIND),
        ({"kept_up_ms": BOUNDS.ready_ms - 1}, Code.BEHIND),
        ({"kept_up_ms": -1}, Code.BEHIND),
        ({"is_heard": False, "kept_up_ms": -1}, Code.NO_OBSERVER),
    ],
)
def test_only_who_has_caught_up_is_promoted(change: dict[str, int], code: Code) -> None:
    one = replace(observer(4), **change)  # type: ignore[arg-type]
    case = replace(three_voters("under-min-isr", 1), observers=(one,))
    assert decide_promotion(case).code is code


def test_the_bounds_are_what_the_topic_says() -> None:
    bounds = Bounds(lag_count_max=3, lag_ms_max=40, ready_ms=50, demote_ms=60)
    case = replace(three_voters("under-min-isr", 1), bounds=bounds)
    found = {
        (count, ms, ready): decide_promotion(
            replace(case, observers=(Observer(BrokerId(4), True, ready, count, ms, {}),))
        ).code
        for count, ms, ready in ((3, 40, 50), (4, 40, 50), (3, 41, 50), (3, 40, 49))
    }
    assert list(found.values()) == [Code.PROMOTE, Code.BEHIND, Code.BEHIND, Code.BEHIND]
    back = replace(case, voting=case.own, promoted=brokers(4))
    assert decide_promotion(replace(back, healed_ms=59)).code is Code.HEALING
    assert decide_promotion(replace(back, healed_ms=60)).code is Code.DEMOTE


def test_the_numbers_are_told() -> None:
    slow = replace(observer(4), lag_count=20_000, lag_ms=-1)
    case = replace(three_voters("under-min-isr", 1), observers=(slow,))
    assert decide_promotion(case) == Verdict(
        Code.BEHIND,
        "under-min-isr: 1 of 3 voters, min.insync.replicas 2, 0 of 1 observers vote; broker 4 "
        "lacks 20000 records, for an unknown time; at most 10000 for 2000 ms may be lacking",
    )


def test_who_is_near_a_missing_voter_is_promoted_first_and_then_who_is_near_the_leader() -> None:
    near_leader, near_lost = observer(4, b1=3), observer(5, b3=1)
    case = replace(three_voters("under-replicated", 1, 2), observers=(near_leader, near_lost))
    assert step(case) == (Code.PROMOTE, 5)
    case = replace(case, observers=(observer(5), near_leader))
    assert step(case) == (Code.PROMOTE, 4)


def test_one_that_is_not_needed_leaves_after_a_while_the_leader_last() -> None:
    case = three_voters("under-min-isr", 1, 2, promoted=(4, 5))
    assert step(replace(case, healed_ms=BOUNDS.demote_ms - 1)) == (Code.HEALING, None)
    healed = replace(case, healed_ms=BOUNDS.demote_ms)
    assert step(healed) == (Code.DEMOTE, 5)
    assert step(replace(healed, leader=BrokerId(5))) == (Code.DEMOTE, 4)
    alone = replace(healed, promoted=brokers(5), leader=BrokerId(5))
    assert step(alone) == (Code.HAND_OVER, 5)


def test_a_policy_that_is_gone_wants_nobody() -> None:
    case = three_voters("", 1, promoted=(4,))
    assert step(replace(case, healed_ms=BOUNDS.demote_ms)) == (Code.DEMOTE, 4)


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    own = brokers(*range(1, 1 + draw(st.integers(1, 5))))
    ids = brokers(*range(11, 11 + draw(st.integers(0, 4))))
    voting = tuple(one for one in own if draw(st.booleans()))
    promoted = tuple(one for one in ids if draw(st.booleans()))
    number = st.integers(-1, 2)
    observers = tuple(
        Observer(
            broker=one,
            is_heard=draw(st.booleans()),
            kept_up_ms=draw(number) * BOUNDS.ready_ms,
            lag_count=draw(number) * BOUNDS.lag_count_max,
            lag_ms=draw(number) * BOUNDS.lag_ms_max,
            levels={each: draw(st.integers(0, 3)) for each in own},
        )
        for one in ids
    )
    return Situation(
        policy=draw(st.sampled_from(POLICIES)),
        own=own,
        voting=voting,
        promoted=promoted,
        observers=observers,
        leader=draw(st.sampled_from((*voting, *promoted, BrokerId(99)))),
        min_insync=draw(st.integers(1, 6)),
        regions={one: draw(st.sampled_from(("", "east", "west"))) for one in own},
        regions_down=frozenset(draw(st.sets(st.sampled_from(("", "east", "west"))))),
        healed_ms=draw(st.sampled_from((0, BOUNDS.demote_ms))),
    )


@given(situations())
def test_each_step_leads_towards_what_is_wanted_and_never_past_it(case: Situation) -> None:
    """At most one observer, from the right side, and no leader is demoted."""
    found, wanted, present = decide_promotion(case), wanted_count(case), len(case.promoted)
    seen = {one.broker: one for one in case.observers}
    assert 0 <= wanted <= len(case.own) - len(case.voting)
    match found.code:
        case Code.PROMOTE:
            assert present < wanted
            assert found.broker not in case.promoted
            assert found.broker is not None and BOUNDS.has_caught_up(seen[found.broker])
        case Code.DEMOTE:
            assert present > wanted and case.healed_ms >= BOUNDS.demote_ms
            assert found.broker in case.promoted and found.broker != case.leader
        case Code.HAND_OVER:
            assert present > wanted and case.promoted == (case.leader,)
        case Code.ENOUGH:
            assert present == wanted
        case Code.NO_OBSERVER | Code.BEHIND:
            assert present < wanted
            others = [one for one in case.observers if one.broker not in case.promoted]
            assert not any(one.is_heard and BOUNDS.has_caught_up(one) for one in others)
        case Code.HEALING:
            assert present > wanted


@given(situations())
def test_steps_come_to_an_end(case: Situation) -> None:
    """While nobody's health changes, each step is followed by fewer."""
    for _ in range(len(case.observers) + 2):
        found = decide_promotion(case)
        if found.code is Code.PROMOTE:
            assert found.broker is not None
            case = replace(case, promoted=(*case.promoted, found.broker))
        elif found.code is Code.DEMOTE:
            rest = tuple(one for one in case.promoted if one != found.broker)
            case = replace(case, promoted=rest)
        elif found.code is Code.HAND_OVER and case.voting:
            case = replace(case, leader=case.voting[0])
        else:
            return
    raise AssertionError(case)
