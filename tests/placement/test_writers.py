"""When leadership goes to the region that produces most, and when it stays: by a clock that jumps.

Source: decision 0014."""

from collections.abc import Callable, Mapping
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.model.ids import NO_BROKER, BrokerId, GroupId
from strandline.placement.writers import (
    CODES,
    DOUBLINGS_MAX,
    LATELY_RATIO,
    UNKNOWN,
    Departures,
    Hindrance,
    Sight,
    Verdict,
    WriterWatch,
)

LOOK_MS = 5_000
PERIOD_MS = 60_000
EAST, WEST, SOUTH = BrokerId(1), BrokerId(2), BrokerId(3)
TRANSFER_TARGETS: dict[str, BrokerId | Hindrance] = {"east": EAST, "west": WEST, "south": SOUTH}
RATE = 1_000


def sight(
    region: str = "east",
    *,
    preferred: str | None = None,
    transfer_targets: Mapping[str, BrokerId | Hindrance] = TRANSFER_TARGETS,
) -> Sight:
    return Sight(
        period_ms=PERIOD_MS,
        region=region,
        preferred=region if preferred is None else preferred,
        transfer_target_in=transfer_targets.get,
    )


class Leader:
    """One leader, and the time."""

    def __init__(self, *, returns: int = 0, now_ms: int = 0) -> None:
        self.now_ms = now_ms
        self.watch = WriterWatch(now_ms, returns=returns)

    def look(self, produced: Mapping[str, int], seen: Sight | None = None) -> Verdict:
        """One look later, so much more was produced."""
        self.now_ms += LOOK_MS
        verdict = self.watch.step(self.now_ms, produced, seen or sight())
        assert verdict.code in CODES and verdict.text
        assert (verdict.transfer_target != NO_BROKER) == (verdict.code == "goes")
        return verdict

    def until(
        self, code: str, produced: Mapping[str, int], seen: Sight | None = None, *, limit_ms: int
    ) -> Verdict:
        """Looks until the verdict is this one; the others on the way are of `waits`."""
        end_ms = self.now_ms + limit_ms
        while (verdict := self.look(produced, seen)).code != code:
            assert verdict.code == "waits" and self.now_ms < end_ms, verdict
        return verdict


def test_the_leader_goes_once_another_region_was_ahead_for_the_whole_period() -> None:
    leader = Leader()
    verdict = leader.until("goes", {"west": RATE}, limit_ms=2 * PERIOD_MS)
    assert verdict.transfer_target == WEST
    assert leader.now_ms == LOOK_MS + PERIOD_MS  # The first look is the first to see it.


def test_a_share_that_is_not_above_the_threshold_never_moves_it() -> None:
    leader = Leader()
    for _ in range(20 * PERIOD_MS // LOOK_MS):
        verdict = leader.look({"east": 410, "west": 590})
    assert verdict.code == "shared"
    assert verdict.text == (
        "west produces 59 %; leadership goes to a region that produces more than 60 % for 60 s"
    )


def test_a_share_just_above_it_does() -> None:
    assert (
        Leader().until("goes", {"east": 390, "west": 610}, limit_ms=2 * PERIOD_MS).transfer_target
        == WEST
    )


def test_a_share_that_falls_back_for_one_look_begins_anew() -> None:
    leader = Leader()
    for _ in range(PERIOD_MS // LOOK_MS):
        assert leader.look({"west": RATE}).code == "waits"
    assert leader.look({"east": 50 * RATE}).code == "here"
    began_ms = leader.now_ms
    while leader.look({"west": RATE}).code != "waits":
        pass
    leader.until("goes", {"west": RATE}, limit_ms=2 * PERIOD_MS)
    assert leader.now_ms - began_ms > PERIOD_MS


def test_it_stays_where_most_is_produced() -> None:
    leader = Leader()
    for _ in range(30):
        verdict = leader.look({"east": 700, "west": 300})
    assert verdict == Verdict("here", "east produces 70 %")


def test_bytes_from_unknown_addresses_count_for_no_region_and_in_the_whole() -> None:
    leader = Leader()
    for _ in range(10 * PERIOD_MS // LOOK_MS):
        verdict = leader.look({UNKNOWN: 500, "west": 500})
    assert verdict.code == "unknown"
    assert "west produces 50 %" in verdict.text and "50 % comes from addresses" in verdict.text
    only = Leader()
    for _ in range(10 * PERIOD_MS // LOOK_MS):
        verdict = only.look({UNKNOWN: RATE})
    assert verdict == Verdict(
        "unknown", "100 % comes from addresses in no network of client.networks"
    )


def test_a_few_unknown_bytes_do_not_hold_it() -> None:
    verdict = Leader().until("goes", {UNKNOWN: 200, "west": 800}, limit_ms=2 * PERIOD_MS)
    assert verdict.transfer_target == WEST


@pytest.mark.parametrize(
    ("seen", "code", "says"),
    [
        (sight(transfer_targets={"east": EAST}), "no-voter", "no replica is there"),
        (
            sight(
                transfer_targets=TRANSFER_TARGETS | {"west": ("behind", "broker 2 is not in sync")}
            ),
            "behind",
            "2",
        ),
        (
            sight(transfer_targets=TRANSFER_TARGETS | {"west": ("spared", "in maintenance")}),
            "spared",
            "maintenance",
        ),
        (sight(transfer_targets={"west": ("paused", "x.enable is false")}), "paused", "x.enable"),
        (sight(preferred="west"), "returns", "preferred"),
    ],
)
def test_what_keeps_it_is_said_with_the_share(seen: Sight, code: str, says: str) -> None:
    leader = Leader()
    verdict = leader.until(code, {"west": RATE}, seen, limit_ms=2 * PERIOD_MS)
    assert verdict.text.startswith("west produces 100 %") and says in verdict.text
    # Once nothing is in the way any more, it goes at the next look.
    if code != "returns":
        assert leader.look({"west": RATE}).transfer_target == WEST


def test_who_leads_where_most_is_produced_becomes_the_preferred_one() -> None:
    """After a failure it was elected there, and the first replica is elsewhere."""
    leader = Leader(returns=3)
    verdict = leader.until("goes", {"west": RATE}, sight("west", preferred="east"), limit_ms=90_000)
    assert verdict.transfer_target == WEST
    assert leader.now_ms == LOOK_MS + PERIOD_MS  # Nobody has to wait for it: no longer than that.


def test_when_nobody_produces_any_more_it_stays() -> None:
    leader = Leader()
    for _ in range(PERIOD_MS // LOOK_MS):
        assert leader.look({"west": RATE}).code == "waits"
    codes = [leader.look({}).code for _ in range(3 * PERIOD_MS // LOOK_MS)]
    assert codes[-1] == "idle"
    assert leader.look({"west": RATE}).text.startswith("west produces 100 %, for 0 s of 60 s")


def test_what_was_long_ago_does_not_count_against_what_is_now() -> None:
    leader = Leader()
    for _ in range(100):
        leader.look({"east": 100 * RATE})
    waited = 0
    while leader.look({"west": 100 * RATE}).code == "here":
        waited += LOOK_MS
    assert waited < PERIOD_MS / 2


def test_each_return_soon_after_it_left_doubles_the_wait() -> None:
    waits = []
    for returns in range(DOUBLINGS_MAX + 3):
        leader = Leader(returns=returns)
        verdict = leader.look({"west": RATE})
        if returns:
            assert "has come back" in verdict.text
        leader.until("goes", {"west": RATE}, limit_ms=PERIOD_MS << 10)
        waits.append(leader.now_ms - LOOK_MS)
    assert waits[:3] == [PERIOD_MS, 2 * PERIOD_MS, 4 * PERIOD_MS]
    assert waits[DOUBLINGS_MAX] == waits[-1] == PERIOD_MS << DOUBLINGS_MAX


def test_what_comes_back_late_has_nothing_to_remember() -> None:
    departures, group = Departures(), GroupId(7)
    assert departures.returns(group, 0) == 0
    departures.note(group, 0, wait_ms=PERIOD_MS, returns=2)
    assert departures.returns(group, LATELY_RATIO * PERIOD_MS) == 3
    assert departures.returns(GroupId(8), 1) == 0
    assert departures.returns(group, LATELY_RATIO * PERIOD_MS + 1) == 0
    assert departures.returns(group, 0) == 0


# ---- producers that come and go ------------------------------------------------------------------


def moves_of(written: Callable[[int], Mapping[str, int]], *, duration_ms: int) -> list[int]:
    """When leadership moves, while `written` says what is produced at each moment."""
    departures = {region: Departures() for region in TRANSFER_TARGETS}
    group, region = GroupId(1), "east"
    leader = Leader()
    moved: list[int] = []
    while leader.now_ms < duration_ms:
        verdict = leader.look(written(leader.now_ms), sight(region))
        if verdict.code == "goes":
            now, watch = leader.now_ms, leader.watch
            wait_ms = watch.wait_ms(PERIOD_MS)
            departures[region].note(group, now, wait_ms=wait_ms, returns=watch.returns)
            region = next(
                one for one, broker in TRANSFER_TARGETS.items() if broker == verdict.transfer_target
            )
            leader = Leader(returns=departures[region].returns(group, now), now_ms=now)
            moved.append(now)
    return moved


def in_turns(half_ms: int) -> Callable[[int], Mapping[str, int]]:
    return lambda now_ms: {("east", "west")[now_ms // half_ms % 2]: RATE}


@pytest.mark.parametrize("half_ms", [5_000, 30_000, 60_000])
def test_what_changes_within_a_period_is_not_followed(half_ms: int) -> None:
    assert moves_of(in_turns(half_ms), duration_ms=200 * PERIOD_MS) == []


@pytest.mark.parametrize("periods", [2, 3, 5, 7])
def test_who_oscillates_is_followed_a_few_times_and_no_more(periods: int) -> None:
    """Whichever doubled wait is longer than a half, there it stays: for ever."""
    short = moves_of(in_turns(periods * PERIOD_MS), duration_ms=100 * periods * PERIOD_MS)
    long = moves_of(in_turns(periods * PERIOD_MS), duration_ms=300 * periods * PERIOD_MS)
    assert short == long and 1 <= len(long) <= 6


def test_who_changes_with_the_day_is_followed_each_time() -> None:
    half_ms, days = 100 * PERIOD_MS, 10
    moved = moves_of(in_turns(half_ms), duration_ms=2 * days * half_ms)
    assert len(moved) == 2 * days - 1
    lags = [now - (number + 1) * half_ms for number, now in enumerate(moved)]
    assert all(PERIOD_MS <= lag < 2 * PERIOD_MS for lag in lags)


def test_who_stays_away_after_an_oscillation_is_followed_in_the_end() -> None:
    half_ms, end_ms = 3 * PERIOD_MS, 60 * PERIOD_MS

    def written(now_ms: int) -> Mapping[str, int]:
        return in_turns(half_ms)(now_ms) if now_ms < end_ms else {"south": RATE}

    moved = moves_of(written, duration_ms=200 * PERIOD_MS)
    assert [now for now in moved if now > end_ms]


@given(
    parts=st.lists(
        st.tuples(
            st.integers(1, 40),
            st.dictionaries(
                st.sampled_from(["east", "west", "south", UNKNOWN]), st.integers(0, RATE)
            ),
        ),
        min_size=1,
        max_size=30,
    )
)
@settings(deadline=None, max_examples=200)
def test_whoever_produces_whatever_a_leader_stays_for_a_period_at_least(
    parts: list[tuple[int, dict[str, int]]],
) -> None:
    looks = [produced for count, produced in parts for _ in range(count)]

    def written(now_ms: int) -> Mapping[str, int]:
        return looks[min(now_ms // LOOK_MS, len(looks)) - 1]

    moved = moves_of(written, duration_ms=len(looks) * LOOK_MS)
    assert all(later - earlier > PERIOD_MS for earlier, later in pairwise([0, *moved]))
    # No more than the doublings leave room for, whatever is done.
    assert len(moved) <= len(looks) * LOOK_MS // PERIOD_MS
