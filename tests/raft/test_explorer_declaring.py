"""Small scopes in which replicas are declared lost, explored to the end (decision 0027)."""

from dataclasses import replace

import pytest
from tests.raft.explorer.checks import STATES_MAX, explore_renamed, explore_whole
from tests.raft.explorer.declaring import (
    BornBefore,
    Declaring,
    Hasty,
    Remembering,
    Selective,
    Unfenced,
    Unstruck,
)
from tests.raft.explorer.scope import Kind, Scope
from tests.raft.explorer.scopes import LOST_SMALL
from tests.raft.explorer.search import BreachError, Search

TINY = Scope(observers=0, timeouts=1, proposals=0, grants=0, late=0, declares=1)
OBSERVED = replace(TINY, voters=2, observers=2, appoints_observers=False)


@pytest.mark.parametrize("scope", LOST_SMALL, ids=str)
def test_every_schedule_keeps_all_that_was_not_given_up(scope: Scope) -> None:
    explore_whole(Declaring(scope), grant_count=1)


@pytest.mark.parametrize("broken", [Remembering, BornBefore])
def test_who_comes_back_and_counts_is_found_out(broken: type[Declaring]) -> None:
    with pytest.raises(BreachError, match=r"^(OneSuccessor|NoAck|OldSide)"):
        Search(broken(replace(TINY, timeouts=2))).explore(STATES_MAX)


def test_an_appointment_that_some_of_who_is_left_can_give_is_found_out() -> None:
    """Of five two are left, and one of them alone has what was not given up."""
    scope = replace(TINY, voters=5, min_insync=3)
    with pytest.raises(BreachError, match=r"^NoAcknowledgedWriteLost"):
        Search(Hasty(scope)).explore(STATES_MAX)


def test_an_observer_that_is_chosen_and_not_fenced_is_found_out() -> None:
    """It alone has what was not given up."""
    scope = replace(TINY, observers=1, appoints_observers=False)
    with pytest.raises(BreachError, match=r"^NoAcknowledgedWriteLost"):
        Search(Unfenced(scope)).explore(STATES_MAX)


def test_an_observer_that_hears_late_of_a_commit_is_found_out() -> None:
    """It was not fenced, and the leader that was appointed lacks what it knows to be committed."""
    scope = replace(OBSERVED, late=1)
    with pytest.raises(BreachError, match="a peer has more of this epoch than its leader"):
        Search(Selective(replace(scope, proposals=1))).explore(STATES_MAX)


def test_voters_that_are_not_struck_are_found_out() -> None:
    """Nobody is ever appointed."""
    search = Search(Unstruck(TINY))
    assert search.explore(STATES_MAX)
    assert search.not_taken >= {Kind.CHOOSE, Kind.APPOINT}


@pytest.mark.parametrize("scope", [TINY, replace(TINY, proposals=1), OBSERVED], ids=str)
def test_states_that_differ_by_names_stand_for_each_other(scope: Scope) -> None:
    explore_renamed(Declaring(scope))
