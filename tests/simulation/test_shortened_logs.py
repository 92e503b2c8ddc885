"""A log that begins later than its topic allows is noticed, whoever shortened it and how.

Source: `simulation/invariants/shortened_logs.py`; Kafka's retention.bytes."""

import pytest

from strandline.model.ids import BrokerId, GroupId, Offset
from strandline.simulation.invariants.facts import DeletionAsked, LogShortened
from strandline.simulation.invariants.invariants import InvariantError
from strandline.simulation.invariants.shortened_logs import OnlyExpiredIsRemoved

GROUP = GroupId(1)
KEPT = 1_000


def shortened(
    start: int, *, kept: int = 0, retention: int = KEPT, anew: bool = False
) -> LogShortened:
    return LogShortened(BrokerId(1), GROUP, Offset(start), anew, kept, retention)


@pytest.fixture
def promise() -> OnlyExpiredIsRemoved:
    return OnlyExpiredIsRemoved()


def test_what_is_beyond_the_retention_may_go(promise: OnlyExpiredIsRemoved) -> None:
    promise.on_log_shortened(shortened(10, kept=KEPT))
    promise.on_log_shortened(shortened(20, kept=KEPT + 1))


def test_what_is_to_be_kept_may_not(promise: OnlyExpiredIsRemoved) -> None:
    promise.on_log_shortened(shortened(10, kept=KEPT))
    with pytest.raises(InvariantError, match="begin at 11"):
        promise.on_log_shortened(shortened(11, kept=KEPT - 1))


def test_nothing_goes_where_all_is_to_be_kept(promise: OnlyExpiredIsRemoved) -> None:
    promise.on_log_shortened(shortened(0, retention=-1, anew=True))
    with pytest.raises(InvariantError, match=r"a start above 0$"):
        promise.on_log_shortened(shortened(1, kept=1 << 40, retention=-1))


def test_what_somebody_deletes_may_go_and_nothing_behind_it(promise: OnlyExpiredIsRemoved) -> None:
    promise.on_deletion_asked(DeletionAsked(GROUP, Offset(15)))
    promise.on_log_shortened(shortened(15, retention=-1))
    with pytest.raises(InvariantError, match=r"a start above 15$"):
        promise.on_log_shortened(shortened(16, retention=-1))


def test_a_log_begins_anew_as_its_leader_has_decided(promise: OnlyExpiredIsRemoved) -> None:
    """A leader may have told a follower before it did it itself."""
    promise.on_log_shortened(shortened(12, anew=True))
    promise.on_deletion_asked(DeletionAsked(GROUP, Offset(15)))
    promise.on_log_shortened(shortened(15, anew=True, retention=-1))
    with pytest.raises(InvariantError, match=r"a start above 15$"):
        promise.on_log_shortened(shortened(16, anew=True, retention=-1))
