"""Small scopes of arbitration, explored to the end; and every rule, broken, is found out."""

import pytest
from tests.raft.explorer.broken import BROKEN, Broken
from tests.raft.explorer.run import SMALL
from tests.raft.explorer.space import BreachError, Scope, Space

from strandline.model.ids import grant_of

STATES_MAX = 1_000_000


@pytest.mark.parametrize("scope", SMALL, ids=str)
def test_every_schedule_of_a_small_scope_keeps_every_property(scope: Scope) -> None:
    space = Space(scope)
    assert space.explore(STATES_MAX), "the scope has grown"
    grants = {grant_of(epoch) for epoch, _ in space.acknowledged.values}
    assert grants == set(range(scope.grants + 1)), "nothing was ever acknowledged after a grant"


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.name)
def test_a_broken_rule_is_found(broken: Broken) -> None:
    with broken.patch(), pytest.raises(BreachError, match=r"OneSuccessor|NoAck|OldSide"):
        broken.space(broken.scope).explore(STATES_MAX)
