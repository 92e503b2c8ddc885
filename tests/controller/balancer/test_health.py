"""Who is lost, who is settled, and for how long.

Source: docs/decisions/0010-the-balancer.md (damping)."""

from collections.abc import Collection

from tests.controller.balancer.balancer_world import ids

from strandline.controller.balancer.health import (
    SETTLE_MS,
    UNSEEN_MS_MAX,
    Condition,
    Health,
    own_look_ms,
)
from strandline.model.ids import BrokerId

BROKERS = ids(1, 2)
LOST_AFTER_MS = 900_000


class Watch:
    """Health, looked at once a second."""

    def __init__(self) -> None:
        self.health = Health()
        self.now_ms = 0
        self.lost_after_ms = LOST_AFTER_MS
        self.silent_ms: dict[BrokerId, int] = {}

    def pass_by(self, duration_ms: int, *alive: int) -> Condition:
        """Let time go by while these are heard."""
        end_ms = self.now_ms + duration_ms
        condition = self._look(ids(*alive))
        while self.now_ms < end_ms:
            self.now_ms = min(end_ms, self.now_ms + 1_000)
            condition = self._look(ids(*alive))
        return condition

    def _look(self, alive: Collection[int]) -> Condition:
        return self.health.step(
            self.now_ms,
            brokers=BROKERS,
            alive=[one for one in BROKERS if one in alive],
            lost_after_ms=self.lost_after_ms,
            silent_ms=self.silent_ms,
        )


def test_a_broker_is_lost_after_the_time_that_is_set_and_not_before() -> None:
    watch = Watch()
    assert watch.pass_by(SETTLE_MS, 1, 2).is_calm
    assert watch.pass_by(LOST_AFTER_MS - 1, 1).lost == frozenset()
    assert watch.pass_by(1, 1).lost == frozenset(ids(2))


def test_one_that_was_never_heard_counts_from_the_first_look() -> None:
    watch = Watch()
    assert watch.pass_by(LOST_AFTER_MS - 1, 1).lost == frozenset()
    assert watch.pass_by(1, 1).lost == frozenset(ids(2))


def test_one_that_returns_is_lost_until_it_has_stayed_for_a_while() -> None:
    watch = Watch()
    watch.pass_by(LOST_AFTER_MS, 1)
    assert watch.pass_by(SETTLE_MS - 1, 1, 2).lost == frozenset(ids(2))
    assert watch.pass_by(1_000, 1).lost == frozenset(ids(2))  # It is gone again.
    condition = watch.pass_by(2 * SETTLE_MS, 1, 2)
    assert condition.lost == frozenset() and condition.is_calm


def test_each_time_that_it_went_down_lately_doubles_that_while() -> None:
    watch = Watch()
    watch.pass_by(SETTLE_MS, 1, 2)
    for times in (2, 4, 8):
        watch.pass_by(1_000, 1)
        assert watch.pass_by(times * SETTLE_MS - 1, 1, 2).settled == frozenset(ids(1))
        assert watch.pass_by(1, 1, 2).settled == frozenset(ids(1, 2))
    for _ in range(20):
        watch.pass_by(1_000, 1)
        watch.pass_by(1_000, 1, 2)
    assert watch.pass_by(LOST_AFTER_MS, 1, 2).is_calm


def test_who_raises_the_limit_in_an_outage_is_heeded() -> None:
    watch = Watch()
    watch.pass_by(LOST_AFTER_MS, 1)
    watch.lost_after_ms = 2 * LOST_AFTER_MS
    assert watch.pass_by(1_000, 1).lost == frozenset()
    watch.lost_after_ms = 60_000
    assert watch.pass_by(1_000, 1).lost == frozenset(ids(2))


def test_nothing_is_copied_to_who_has_been_down_for_a_while() -> None:
    watch = Watch()
    watch.pass_by(SETTLE_MS, 1, 2)
    assert watch.pass_by(SETTLE_MS - 1, 1).absent == frozenset()
    assert watch.pass_by(1, 1).absent == frozenset(ids(2))


def test_a_new_controller_goes_on_where_others_were() -> None:
    watch = Watch()
    watch.silent_ms = {BrokerId(2): LOST_AFTER_MS - 60_000}
    assert watch.pass_by(59_999, 1).lost == frozenset()
    assert watch.pass_by(1, 1).lost == frozenset(ids(2))


def test_nobody_is_lost_to_a_controller_that_has_not_missed_it_for_a_while_itself() -> None:
    watch = Watch()
    watch.silent_ms = {BrokerId(1): LOST_AFTER_MS, BrokerId(2): 10 * LOST_AFTER_MS}
    own_ms = own_look_ms(LOST_AFTER_MS)
    assert watch.pass_by(own_ms - 1, 1).lost == frozenset()
    assert watch.pass_by(1, 1).lost == frozenset(ids(2))
    # What was known of who is heard meanwhile counts no more.
    watch = Watch()
    watch.silent_ms = {BrokerId(2): LOST_AFTER_MS}
    watch.pass_by(own_ms - 1_000, 1)
    watch.pass_by(1_000, 1, 2)
    assert watch.pass_by(LOST_AFTER_MS - 1, 1).lost == frozenset()


def test_what_a_controller_slept_through_was_no_silence() -> None:
    watch = Watch()
    watch.pass_by(SETTLE_MS, 1, 2)
    watch.pass_by(1_000, 1)
    watch.now_ms += 10 * LOST_AFTER_MS
    assert watch.pass_by(1_000, 1).lost == frozenset()
    left_ms = LOST_AFTER_MS - UNSEEN_MS_MAX - 2_000
    assert watch.pass_by(left_ms - 1, 1).lost == frozenset()
    assert watch.pass_by(1, 1).lost == frozenset(ids(2))
