"""When lost voters vote again, and when observers stand in. Source: decisions 0020 and 0025."""

from collections.abc import Callable

import pytest
from tests.storage.storage_world import ManualClock

from strandline.broker.groups.voter_reconciliation import (
    CALM_MS,
    FREE_RETURNS,
    GRANTS_CALM_MS,
    RETURN_DOUBLINGS_MAX,
    RETURN_MS,
    Health,
    Lag,
    PromotionInputs,
    VoterReconciliation,
)
from strandline.controller.arbitration.promotion import HANDOVER_RETRY_MS, Bounds, Code
from strandline.model.cluster import Partition
from strandline.model.ids import BrokerId, GroupId


def health(keeps_up: Callable[[BrokerId], bool]) -> Health:
    """All are heard; a member that does not keep up leaves at once."""
    return Health(keeps_up, lambda broker: True, lambda broker: 0, lag_ms=0)


def test_an_observer_that_leads_hands_over_until_it_has() -> None:
    """A caller that does not follow the verdict has not handed over."""
    clock = ManualClock()
    acting = VoterReconciliation(clock)
    group, own = GroupId(7), (BrokerId(1), BrokerId(2))
    observer = BrokerId(4)
    partition = Partition("t", 0, group, own, observers=(observer,), acting=(*own, observer))
    promotion = PromotionInputs(
        policy="under-replicated",
        min_insync=1,
        bounds=Bounds(demote_ms=0),
        lag=lambda broker: Lag(0, 0),
        levels=lambda one, other: 0,
        regions={},
        regions_down=frozenset(),
    )

    def code() -> Code | None:
        clock.advance(RETURN_MS)
        found = acting.choose(
            partition,
            observer,
            health(lambda broker: True),
            min_insync=1,
            is_ready=lambda broker: True,
            promotion=promotion,
        )
        return None if found.verdict is None else found.verdict.code

    assert [code(), code()] == [Code.HAND_OVER, Code.HAND_OVER]
    acting.note_handed_over(group)
    assert [code(), code()] == [Code.HEALING, Code.HEALING]
    clock.advance(HANDOVER_RETRY_MS)
    assert code() is Code.HAND_OVER


class Short:
    """A group of three of which broker 3 does not vote."""

    own = (BrokerId(1), BrokerId(2), BrokerId(3))

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.acting = VoterReconciliation(self.clock)
        self.is_present, self.is_ready, self.grant = False, True, 0

    def returns(self, min_insync: int) -> bool:
        """Whether it should vote."""
        partition = Partition("t", 0, GroupId(7), self.own, acting=self.own[:2], grant=self.grant)
        choice = self.acting.choose(
            partition,
            self.own[0],
            health(lambda broker: broker != self.own[2] or self.is_present),
            min_insync=min_insync,
            is_ready=lambda broker: self.is_ready,
        )
        return choice.voters == self.own

    def come_after(self, ms: int) -> None:
        """It is away for so long, and then keeps up."""
        self.is_present = False
        assert not self.returns(3)
        self.clock.advance(ms)
        self.is_present = True


@pytest.mark.parametrize(("min_insync", "is_short"), [(2, False), (3, True), (9, True)])
def test_who_comes_back_votes_at_once_where_acks_all_is_refused_without_it(
    min_insync: int, *, is_short: bool
) -> None:
    """Where enough vote, it has to keep up for a while first: it may be gone again."""
    group = Short()
    group.come_after(RETURN_MS)
    assert group.returns(min_insync) == is_short
    group.clock.advance(RETURN_MS)
    assert group.returns(min_insync)


def test_who_lacks_what_was_written_meanwhile_does_not() -> None:
    group = Short()
    group.come_after(RETURN_MS)
    group.is_ready = False
    assert not group.returns(3)
    group.is_ready = True
    assert group.returns(3)


def test_who_costs_a_grant_each_time_comes_back_later_and_later() -> None:
    """A partition has 2,047 grants in its life; a voter that stays well for an hour starts
    again."""

    def waits_ms() -> int:
        group.come_after(1_000)
        waited = 0
        while not group.returns(2):
            group.clock.advance(1_000)
            waited += 1_000
        group.grant += 1
        return waited

    group = Short()
    usual = [RETURN_MS] * (FREE_RETURNS + 1)
    doubled = [RETURN_MS << count for count in range(1, RETURN_DOUBLINGS_MAX + 1)]
    assert [waits_ms() for _ in range(12)] == [*usual, *doubled, doubled[-1]]
    group.clock.advance(GRANTS_CALM_MS)
    assert waits_ms() == RETURN_MS


def test_who_leaves_without_a_grant_comes_back_as_soon_as_ever() -> None:
    group = Short()
    for _ in range(12):
        group.come_after(1_000)
        assert not group.returns(2)
        group.clock.advance(RETURN_MS)
        assert group.returns(2)


def test_nor_who_comes_and_goes() -> None:
    """Where it takes what is left with it each time, each time costs one of the grants."""
    group = Short()
    group.come_after(RETURN_MS)
    assert group.returns(3) and group.returns(3)
    for _ in range(3):
        group.acting.forget(GroupId(7))
        group.come_after(RETURN_MS)
        assert not group.returns(3)
        group.clock.advance(RETURN_MS)
        assert group.returns(3)
    group.come_after(CALM_MS)
    assert group.returns(3)
