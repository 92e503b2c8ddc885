"""What every exploration to the end has to show, of whichever space.

Why:    a search that met nothing, or took two states for one that differ, would pass as well."""

from tests.raft.explorer.search import Search
from tests.raft.explorer.space import Space

from strandline.model.ids import grant_of

STATES_MAX = 100_000
"""A scope of the tests that has more has grown by mistake."""


def explore_whole(space: Space, *, grant_count: int) -> None:
    """Explore it; every step is taken, and something is acknowledged in each grant, and before."""
    search = Search(space)
    assert search.explore(STATES_MAX), "the scope has grown"
    assert search.not_taken == frozenset(), "steps that the scope names are never taken"
    acknowledged = space.judge.acknowledged.values
    grants = {grant_of(epoch) for writes in acknowledged for epoch, _ in writes}
    assert grants == set(range(grant_count + 1)), "nothing was ever acknowledged in some grant"


def explore_renamed(space: Space) -> None:
    """Explored without taking any two for one, the same states are met, and no others."""
    whole = Search(space, is_anybody_alike=False)
    reduced = Search(space)
    assert whole.explore(STATES_MAX) and reduced.explore(STATES_MAX)
    assert all(map(reduced.has_met, whole.states()))
    assert all(map(whole.has_met, reduced.states()))
    assert reduced.state_count < whole.state_count
