"""Small scopes of arbitration, explored to the end; and every rule, broken, is found out."""

from dataclasses import replace

import pytest
from tests.raft.explorer.broken import BROKEN, Broken
from tests.raft.explorer.checks import STATES_MAX, explore_renamed, explore_whole
from tests.raft.explorer.scope import Kind, Scope
from tests.raft.explorer.scopes import LARGE, LOST_SMALL, SMALL, WALKED
from tests.raft.explorer.search import BreachError, Search
from tests.raft.explorer.space import Space
from tests.raft.explorer.walks import walk

TINY = Scope(observers=0, timeouts=1, proposals=0, late=0)


@pytest.mark.parametrize("scope", SMALL, ids=str)
def test_every_schedule_of_a_small_scope_keeps_every_property(scope: Scope) -> None:
    explore_whole(Space(scope), grant_count=scope.grants)


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.name)
def test_a_broken_rule_is_found(broken: Broken) -> None:
    with broken.patch(), pytest.raises(BreachError, match=f"^{broken.found}"):
        Search(broken.space(broken.scope)).explore(STATES_MAX)


def test_the_scopes_take_every_kind_of_step() -> None:
    named = {kind for scope in (*SMALL, *LARGE, *LOST_SMALL) for kind in scope.kinds()}
    assert named | {Kind.ORDERED, Kind.KEEP} == set(Kind)


def test_a_step_that_a_scope_names_and_that_is_never_taken_is_told() -> None:
    search = Search(Space(replace(TINY, voters=1, grants=0)))
    assert search.explore(STATES_MAX)
    assert search.not_taken == {Kind.VOTE, Kind.REPLICATE}


@pytest.mark.parametrize(
    "scope",
    [
        TINY,
        replace(TINY, voters=2, observers=2, changes=1, grants=0),
        replace(TINY, voters=2, restarts=1, holds=1),
    ],
    ids=str,
)
def test_states_that_differ_by_names_stand_for_each_other(scope: Scope) -> None:
    explore_renamed(Space(scope))


@pytest.mark.parametrize("scope", WALKED, ids=str)
def test_random_walks_beyond_the_scopes_keep_every_property(scope: Scope) -> None:
    done = walk(scope, seed=1, count=4)
    assert {Kind.STAND, Kind.REPLICATE, Kind.APPOINT, Kind.REPORT} <= done.taken.keys()


def test_one_seed_is_one_walk() -> None:
    assert walk(TINY, seed=7, count=10) == walk(TINY, seed=7, count=10)
    assert walk(TINY, seed=7, count=10) != walk(TINY, seed=17, count=10)


def test_random_walks_find_a_broken_rule() -> None:
    scope = replace(TINY, timeouts=2, proposals=2, grants=2)
    broken = next(one for one in BROKEN if one.name.startswith("R4"))
    with pytest.raises(BreachError, match=r"^NoAcknowledgedWriteLost"):
        walk(scope, seed=1, count=200, kind_of_space=broken.space)
