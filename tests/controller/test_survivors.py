"""What is left of a partition, and which offsets are at risk (design section 6, 3; decision
0026)."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from strandline.controller.arbitration.survivors import GroupStatus, SurvivingLog, Survivors, assess
from strandline.model.ids import BrokerId
from strandline.raft.group.configuration import Configuration

THREE = ((1, 2, 3),)


def log(broker: int, end: int, *, committed: int = 0, epoch: int = 1, **more: bool) -> SurvivingLog:
    """A log from offset 0 on, without markers."""
    return SurvivingLog(
        broker=BrokerId(broker),
        is_led=more.get("is_led", False),
        last_epoch=epoch,
        last_index=end - 1,
        start=0,
        committed=committed,
        end=end,
        has_lost=more.get("has_lost", False),
    )


def judged(possible: tuple[tuple[int, ...], ...], *logs: SurvivingLog) -> Survivors:
    return assess([tuple(map(BrokerId, one)) for one in possible], logs)


def test_the_last_of_three_tells_what_it_knows_and_what_nobody_does() -> None:
    found = judged(THREE, log(3, 15, committed=12))
    assert (found.standing, found.best) == (GroupStatus.SHORT, 3)
    assert (found.committed, found.end) == (12, 15)
    assert (found.missing, found.wanted) == ((1, 2), 1)


def test_nothing_is_at_risk_while_somebody_leads() -> None:
    assert judged(THREE, log(3, 15, is_led=True)).standing == GroupStatus.LED
    # An observer that hears a leader knows of one, too.
    assert judged(THREE, log(3, 15), log(9, 15, is_led=True)).standing == GroupStatus.LED


def test_a_majority_elects_and_half_holds_everything() -> None:
    assert judged(THREE, log(1, 3), log(2, 4)).standing == GroupStatus.ELECTABLE
    four = ((1, 2, 3, 4),)
    assert judged(four, log(1, 3), log(2, 4)).standing == GroupStatus.WHOLE
    assert judged(four, log(2, 4)).standing == GroupStatus.SHORT
    assert judged(((1, 2),), log(2, 4)).standing == GroupStatus.WHOLE


def test_the_last_of_three_holds_everything_where_all_have_promised_to_acknowledge() -> None:
    voters = tuple(map(BrokerId, (1, 2, 3)))
    found = assess([voters], [log(3, 15, committed=12)], floor=3)
    assert (found.standing, found.best, found.wanted) == (GroupStatus.WHOLE, 3, 0)
    # What was granted since has promised nothing.
    assert assess([voters, voters], [log(3, 15)], floor=3).standing == GroupStatus.SHORT


def test_all_voters_that_may_be_in_force_count() -> None:
    """The last two were granted (1, 2) and one of them is left; the first three may be in force."""
    granted = ((1, 2, 3), (1, 2))
    assert judged(granted, log(1, 3)).standing == GroupStatus.SHORT
    found = judged(granted, log(1, 3), log(3, 3))
    assert (found.standing, found.missing) == (GroupStatus.WHOLE, (2,))
    assert judged(granted, log(1, 3), log(2, 3)).standing == GroupStatus.ELECTABLE


def test_the_best_log_is_of_the_last_epoch_and_then_the_longest() -> None:
    five = ((1, 2, 3, 4, 5),)
    longer, later = log(1, 20, epoch=3, committed=7), log(2, 15, epoch=4, committed=9)
    found = judged(five, longer, later)
    assert (found.best, found.committed, found.end) == (2, 9, 15)
    assert judged(five, log(1, 9), log(2, 12)).best == 2


def test_an_observer_s_log_may_be_the_best_that_is_left() -> None:
    found = judged(THREE, log(3, 15, committed=12), log(9, 30, committed=30))
    assert (found.standing, found.best) == (GroupStatus.SHORT, 9)
    assert (found.committed, found.end) == (30, 30)
    assert (found.missing, found.wanted) == ((1, 2), 1)
    assert judged(THREE, log(3, 15), log(1, 15, has_lost=True), log(2, 15)).best == 2
    assert judged(((2, 4, 5),), log(1, 15), log(2, 15)).best == 2  # A voter's, of equal ones.
    found = judged(THREE, log(3, 15, has_lost=True), log(9, 30))
    assert (found.standing, found.best, found.missing) == (GroupStatus.SHORT, 9, (1, 2, 3))
    assert found.wanted == 2


def test_while_voters_hold_everything_no_observer_counts() -> None:
    four = ((1, 2, 3, 4),)
    for found in (
        judged(four, log(1, 3), log(2, 4), log(3, 2), log(9, 9, committed=9)),
        judged(four, log(1, 3), log(2, 4), log(9, 9, committed=9)),
    ):
        assert (found.best, found.committed, found.end) == (2, 0, 4)


def test_logs_that_prove_nothing_do_not_count() -> None:
    found = judged(THREE, log(3, 15, has_lost=True), log(9, 30, has_lost=True))
    assert (found.standing, found.best, found.missing) == (GroupStatus.NO_LOG, None, (1, 2, 3))
    assert found.wanted == 2
    assert judged(THREE).standing == GroupStatus.NO_LOG


@given(
    st.lists(st.sets(st.integers(1, 5), min_size=1, max_size=5), min_size=1, max_size=3),
    st.sets(st.integers(1, 5)),
)
def test_at_risk_is_what_a_majority_of_some_voters_may_hold_alone(
    possible: list[set[int]], alive: set[int]
) -> None:
    """By every write quorum: it is short exactly where one of them can lie among the missing; and
    as many as are wanted back are the fewest with which that is over."""
    voters = tuple(tuple(sorted(one)) for one in possible)
    found = judged(voters, *(log(one, 5) for one in alive))
    there = alive & set().union(*possible)

    def is_short(back: frozenset[int]) -> bool:
        return any(
            not (there | back) & set(quorum)
            for one in voters
            for quorum in combinations(
                one,
                Configuration(tuple(map(BrokerId, one))).write_quorum(tuple(map(BrokerId, one))),
            )
        )

    expected = is_short(frozenset())
    assert (found.standing in (GroupStatus.SHORT, GroupStatus.NO_LOG)) == (expected or not there)
    fewer = [frozenset(one) for one in combinations(found.missing, max(found.wanted - 1, 0))]
    if found.wanted:
        assert all(is_short(one) for one in fewer)
