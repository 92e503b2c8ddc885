"""In which order brokers may be restarted: nothing stops at any step.

Source: docs/decisions/0011-the-life-of-a-broker.md; docs/operating/brokers.md."""

from hypothesis import given
from hypothesis import strategies as st

from strandline.model.ids import BrokerId
from strandline.placement.survival.restarts import (
    QuorumGroup,
    Unit,
    hurt_by,
    plan_restarts,
    stopped_by,
)


def brokers(*numbers: int) -> frozenset[BrokerId]:
    return frozenset(map(BrokerId, numbers))


def group(
    *voters: int, quorum: int = 0, ready: tuple[int, ...] | None = None, name: str = "flights-0"
) -> QuorumGroup:
    return QuorumGroup(
        name=name,
        voters=brokers(*voters),
        quorum=quorum or len(voters) // 2 + 1,
        ready=brokers(*(voters if ready is None else ready)),
    )


def unit(name: str, *numbers: int) -> Unit:
    return Unit(name, brokers(*numbers))


A, B, C = unit("a", 1, 2), unit("b", 3, 4), unit("c", 5, 6)


def names(*steps: tuple[Unit, ...]) -> list[list[str]]:
    return [[one.name for one in step] for step in steps]


def test_each_domain_by_itself_and_the_controllers_one_last() -> None:
    groups = [group(1, 3, 5), group(2, 4, 6)]
    plan = plan_restarts([A, B, C], groups, last=BrokerId(1))
    assert names(*plan.steps) == [["b"], ["c"], ["a"]]
    assert plan.never == plan.split == ()


def test_domains_that_share_nothing_go_together() -> None:
    plan = plan_restarts([A, B, C], [group(1, 3, 7), group(2, 5, 8, 9, 10)])
    assert names(*plan.steps) == [["a", "c"], ["b"]]


def test_a_domain_with_two_of_three_is_taken_broker_by_broker() -> None:
    plan = plan_restarts([A, B], [group(1, 2, 3)])
    assert names(*plan.steps) == [["broker 1"], ["broker 2"], ["b"]]
    assert plan.split == (A,)


def test_who_cannot_be_done_without_is_told_with_whom_it_stops() -> None:
    alone = group(1, name="alone-0")
    plan = plan_restarts([A, B], [alone, group(3, 4, 5, quorum=3, name="all-0")])
    assert [(one.name, by.name) for one, by in plan.never] == [
        ("broker 1", "alone-0"),
        ("broker 3", "all-0"),
        ("broker 4", "all-0"),
    ]
    assert names(*plan.steps) == [["broker 2"]]


def test_now_depends_on_who_is_down_or_behind() -> None:
    behind = group(1, 3, 5, ready=(1, 3))
    up = brokers(1, 3, 5, 7)
    assert list(hurt_by(A.brokers, [behind], up=up)) == [behind]
    assert not list(hurt_by(C.brokers, [behind], up=up))
    stopped = group(1, 3, 5, ready=(1,))
    assert list(hurt_by(C.brokers, [stopped], up=brokers(1))) == [stopped]
    assert not list(hurt_by(brokers(7), [stopped], up=brokers(1)))


def test_who_is_in_maintenance_may_go_down_at_any_time() -> None:
    whole, up = group(1, 3, 5), brokers(1, 3, 5)
    assert not list(hurt_by(brokers(1), [whole], up=up))
    assert list(hurt_by(brokers(1), [whole], up=up, spared=brokers(5))) == [whole]
    assert not list(hurt_by(brokers(1), [whole], up=up, spared=brokers(1)))


def test_what_has_stopped_anyhow_holds_up_who_restarts_and_nobody_else() -> None:
    stopped, up = group(1, 3, 5, ready=(1,)), brokers(1)
    assert list(hurt_by(brokers(1), [stopped], up=up)) == [stopped]
    assert not list(hurt_by(brokers(1), [stopped], up=up, counts_stopped=False))
    behind = group(1, 3, 5, ready=(1,))  # It stands still until two have caught up.
    assert list(hurt_by(brokers(1), [behind], up=brokers(1, 3, 5), counts_stopped=False))


@given(
    st.lists(st.sets(st.integers(1, 9), min_size=1, max_size=5), max_size=8),
    st.lists(st.integers(0, 3), min_size=9, max_size=9),
    st.integers(1, 9),
)
def test_no_step_stops_anything_and_every_broker_is_named_once(
    voters: list[set[int]], domains: list[int], last: int
) -> None:
    groups = [group(*one) for one in voters]
    units = [
        unit(str(name), *(number for number, one in enumerate(domains, start=1) if one == name))
        for name in sorted(set(domains))
    ]
    plan = plan_restarts(units, groups, last=BrokerId(last))
    for step in plan.steps:
        assert stopped_by(frozenset().union(*(one.brokers for one in step)), groups) is None
    named = [broker for step in plan.steps for one in step for broker in one.brokers]
    named += [broker for one, _ in plan.never for broker in one.brokers]
    assert sorted(named) == list(range(1, 10))
    planned = [one for step in plan.steps for one in step if last in one.brokers]
    assert not planned or planned[0] in plan.steps[-1]
