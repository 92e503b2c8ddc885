"""Which voters hear each other, and which of them go on where no majority does.

Source: decision 0020, "Cut off from each other"."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.controller.arbitration.arbiter import register_of
from strandline.controller.arbitration.sides import Need, Reach, cuts_of, sides_of
from strandline.model.cluster import Partition
from strandline.model.ids import BrokerId, GroupId

ALL = (1, 2, 3, 4, 5)
YORK, BOSTON = (1, 2), (4, 5)
NEED = Need(3, promotes=True)


def ids(some: Iterable[int]) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, some))


def between(*sides: Iterable[int]) -> dict[int, set[int]]:
    """{who tells: whom it does not hear}, where these sides do not hear each other."""
    told = {}
    for side in map(set, sides):
        others = {one for other in sides for one in other} - side
        told |= dict.fromkeys(side, others)
    return told


def reach(silent: Mapping[int, Iterable[int]], heard: Iterable[int] = ALL) -> Reach:
    told = {BrokerId(one): ids(others) for one, others in silent.items()}
    return Reach(frozenset(ids(heard)), cuts_of(told, ids(heard)))


def partition(voters: Iterable[int], observers: Iterable[int] = ()) -> Partition:
    return Partition("t", 0, GroupId(7), ids(voters), observers=ids(observers))


def still(found: Reach, one: Partition) -> bool:
    return found.stands_still(one, found.heard)


def test_two_and_two_voters_that_a_third_site_hears_stand_still() -> None:
    assert still(reach(between(YORK, BOSTON)), partition((4, 1, 5, 2), (3,)))
    assert not still(reach({}), partition((4, 1, 5, 2), (3,)))


@pytest.mark.parametrize("who_tells", [{1: (4, 5), 2: (4, 5)}, {4: (1, 2), 5: (1, 2)}])
def test_a_cut_of_one_way_is_one(who_tells: dict[int, tuple[int, ...]]) -> None:
    """Whoever of them does not hear the other: votes and acknowledgements need both ways."""
    found = reach(who_tells)
    assert still(found, partition((4, 1, 5, 2)))
    assert found.side(partition((4, 1, 5, 2)), found.heard, NEED) == set(BOSTON)


def test_where_the_voter_at_the_third_site_makes_a_majority_with_one_side_nothing_is_done() -> None:
    assert not still(reach(between(YORK, BOSTON)), partition((1, 2, 3, 4, 5)))
    assert not still(reach(between(YORK, BOSTON)), partition((1, 3, 4)))


def test_nothing_is_done_where_no_side_holds_all_that_was_acknowledged() -> None:
    apart = between((1,), (2,), (4,), (5,))
    found = reach(apart)
    assert not still(found, partition((4, 1, 5, 2), (3,)))
    assert found.side(partition((4, 1, 5, 2), (3,)), found.heard, NEED) == set()


def test_who_is_not_heard_here_is_on_no_side_and_cuts_nobody_off() -> None:
    """All tell that the dead are silent."""
    found = reach({1: (4, 5), 2: (4, 5), 3: (4, 5)}, heard=(1, 2, 3))
    assert found.cuts == {}
    assert still(found, partition((4, 1, 5, 2)))
    assert not still(found, partition((1, 2, 4)))


def test_the_side_of_the_preferred_leader_goes_on() -> None:
    found = reach(between(YORK, BOSTON))
    for voters, side in (((4, 1, 5, 2), BOSTON), ((1, 4, 2, 5), YORK)):
        assert found.side(partition(voters, (3,)), found.heard, NEED) == {*side, 3}


def test_but_first_of_all_one_with_enough_copies_for_acks_all() -> None:
    """The observer is heard in York alone."""
    found = reach(between((*YORK, 3), BOSTON))
    one = partition((4, 1, 5, 2), (3,))
    assert found.side(one, found.heard, NEED) == {1, 2, 3}
    assert found.side(one, found.heard, Need(3, promotes=False)) == set(BOSTON)
    assert found.side(one, found.heard, Need(2, promotes=True)) == set(BOSTON)


def test_of_a_third_side_that_is_too_small_nothing_is_asked() -> None:
    """Boston's two do not hear each other either."""
    found = reach(between(YORK, (4,), (5,)))
    one = partition((4, 1, 5, 2), (3,))
    assert still(found, one)
    assert found.side(one, found.heard, NEED) == {1, 2, 3}


def test_after_an_appointment_on_one_side_the_other_one_is_not_appointed() -> None:
    """Before the first has reported: it may have acknowledged something since."""
    found = reach(between(YORK, BOSTON))
    appointed = replace(partition((4, 1, 5, 2)), pending=ids(YORK), grant=1)
    assert found.side(appointed, found.heard, NEED) == set(YORK)
    without = frozenset(ids((3, *BOSTON)))
    assert not found.may_appoint(appointed, without)
    assert not found.stands_still(appointed, without)


def test_where_a_loss_was_declared_all_who_are_left_are_one_side() -> None:
    found = reach(between(YORK, BOSTON))
    declared = replace(partition((1, 2, 3)), acting=ids((1, 4)), is_declared=True, is_fenced=True)
    assert found.side(declared, found.heard, NEED) >= {1, 4}
    assert found.may_appoint(declared, found.heard)


MEMBERS = st.integers(1, 7)
PAIRS = st.sets(st.tuples(MEMBERS, MEMBERS))


@given(PAIRS)
def test_sides_are_the_largest_sets_that_hear_each_other(pairs: set[tuple[int, int]]) -> None:
    told: dict[BrokerId, list[BrokerId]] = {}
    for one, other in pairs:
        told.setdefault(BrokerId(one), []).append(BrokerId(other))
    members = ids(range(1, 8))
    cuts = cuts_of(told, members)

    def is_one(some: Iterable[BrokerId]) -> bool:
        return not any(other in cuts.get(one, ()) for one, other in combinations(some, 2))

    every = [
        frozenset(some)
        for count in range(1, 8)
        for some in combinations(members, count)
        if is_one(some)
    ]
    largest = {one for one in every if not any(one < other for other in every)}
    found = sides_of(frozenset(members), cuts)
    assert set(found) == largest and len(found) == len(largest)


@given(pairs=PAIRS, order=st.permutations(ALL), count=st.integers(1, 5), promotes=st.booleans())
def test_whoever_goes_on_may_be_appointed_by_the_register_whatever_was_told(
    pairs: set[tuple[int, int]], order: list[int], count: int, *, promotes: bool
) -> None:
    """What brokers tell of each other is no part of what makes an appointment safe."""
    told: dict[int, set[int]] = {}
    for one, other in pairs:
        told.setdefault(one, set()).add(other)
    found = reach(told)
    one = partition(order[:4], order[4:])
    side = found.side(one, found.heard, Need(count, promotes=promotes))
    assert not side or register_of(one).may_appoint(side)
    assert bool(side) == found.may_appoint(one, found.heard)


@given(PAIRS, st.lists(st.permutations(ALL), min_size=2, max_size=6), st.integers(2, 4))
def test_what_is_known_of_one_partition_is_so_of_all_like_it(
    pairs: set[tuple[int, int]], orders: list[list[int]], count: int
) -> None:
    """Thousands of them are looked at five times a second."""
    told: dict[int, set[int]] = {}
    for one, other in pairs:
        told.setdefault(one, set()).add(other)
    found = reach(told)
    for order in orders:
        plain = partition(order[:count], order[count:])
        acting = replace(plain, acting=ids(order[1 : count + 1]), pending=ids(order[:2]))
        for each in (plain, acting, replace(plain, target=ids(order[:2]), pending=ids(order[2:4]))):
            assert still(found, each) == still(reach(told), each)
