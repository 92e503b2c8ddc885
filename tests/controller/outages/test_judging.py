"""What is held, what is repaired, what is told. Source: design section 8; decision 0018."""

from collections.abc import Collection

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.controller.outages.watched_world import (
    LOST_AFTER_MS,
    WALL_MS,
    WEST,
    WEST_A,
    WEST_B,
    Watched,
)

from strandline.config.cluster import ClusterConfig
from strandline.controller.outages.happenings import Kind
from strandline.controller.outages.judging import Rules
from strandline.controller.outages.marks import Marks, configured, everywhere
from strandline.controller.outages.sight import Verdict
from strandline.model.cluster import Domain, Ruling
from strandline.model.ids import BrokerId


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_a_healthy_cluster_has_nothing_to_tell_in_half_an_hour(watched: Watched) -> None:
    watched.wait(1_800_000)
    assert not watched.told and not watched.outages and not watched.found.held


def test_a_single_broker_is_told_and_replaced(watched: Watched) -> None:
    watched.silent = {9}
    watched.wait(LOST_AFTER_MS)
    assert watched.kinds == ["broker: broker 9"]
    assert watched.told == ["broker 9 is silent since 22:14 UTC, 1 of 3 in zone b"]
    assert watched.replaced == {9} and not watched.found.held and not watched.down


def test_a_zone_that_is_down_is_held_and_back_it_is_not(watched: Watched) -> None:
    watched.silent = {7, 8, 9}
    watched.wait(9_000)
    assert not watched.told
    watched.wait(LOST_AFTER_MS)
    assert watched.down == {WEST_B} and watched.kinds == ["zone: zone b"]
    assert watched.told == ["zone b is down since 22:14 UTC, 3 of 3 brokers silent"]
    assert watched.condition.lost == {7, 8, 9} and not watched.replaced
    assert watched.found.held[BrokerId(8)][1].endswith("or you run `strandline zone release b`")
    watched.silent = set()
    watched.look()
    assert not watched.down and not watched.kinds and not watched.outages
    watched.wait(LOST_AFTER_MS)
    assert not watched.found.held and not watched.condition.lost


def test_who_comes_back_is_replaced_at_no_moment(watched: Watched) -> None:
    watched.silent = {7, 8, 9}
    watched.wait(2 * LOST_AFTER_MS)
    for back in (9, 8, 7):
        watched.silent.discard(back)
        for _ in range(60):
            watched.now_ms += 1_000
            watched.look()
            assert not watched.replaced


def test_who_was_held_and_falls_silent_again_before_it_settles_is_not_lost_at_once(
    watched: Watched,
) -> None:
    watched.rule(WEST_B, Ruling.HOLD)
    watched.silent = {9}
    watched.wait(2 * LOST_AFTER_MS)
    watched.silent = set()
    watched.wait(2_000)
    watched.rule(WEST_B, Ruling.NONE)
    watched.wait(2_000)
    watched.silent = {9}
    watched.wait(LOST_AFTER_MS - 5_000)
    assert not watched.replaced
    assert watched.found.held[BrokerId(9)][1] == (
        "broker 9 returned briefly: it counts as lost after 900 s"
    )
    watched.wait(5_000)
    assert watched.replaced == {9}


def test_a_zone_that_falls_silent_again_before_it_settles_is_replaced_at_no_moment() -> None:
    for back_ms in range(3_000, 6_000, 500):
        watched = Watched(Rules(lost_after_ms=4_000))
        watched.silent = {7, 8, 9}
        watched.wait(30_000)
        watched.silent = set()
        watched.wait(0)
        watched.now_ms += back_ms
        watched.silent = {7, 8, 9}
        for _ in range(30):
            watched.look()
            assert not watched.replaced
            watched.now_ms += 1_000


def test_what_is_missing_when_a_zone_is_back_is_given_time_and_then_replaced(
    watched: Watched,
) -> None:
    watched.silent = {7, 8, 9}
    watched.wait(2 * LOST_AFTER_MS)
    watched.silent = {9}
    watched.wait(LOST_AFTER_MS - 5_000)
    assert not watched.down and not watched.replaced
    assert "is back" in watched.found.held[BrokerId(9)][1]
    watched.wait(5_000)
    assert watched.replaced == {9}


def test_what_is_missing_when_a_zone_is_back_is_given_time_by_the_next_controller_too(
    watched: Watched,
) -> None:
    watched.silent = {7, 8, 9}
    watched.wait(2 * LOST_AFTER_MS)
    watched.silent = {9}
    watched.wait(LOST_AFTER_MS // 2)
    watched.new_controller()
    watched.wait(LOST_AFTER_MS // 2 - 5_000)
    assert watched.condition.lost == {9} and not watched.replaced
    assert "is back" in watched.found.held[BrokerId(9)][1]
    watched.wait(5_000)
    assert watched.replaced == {9}


def test_between_the_marks_a_zone_stays_down_whoever_is_the_controller() -> None:
    marks_of = everywhere(Marks(high_percent=100))
    watched = Watched(Rules(lost_after_ms=LOST_AFTER_MS, marks_of=marks_of))
    watched.silent = {7, 8, 9}
    watched.wait(20_000)
    watched.silent = {9}
    for _ in range(3):
        watched.new_controller()
        watched.wait(20_000)
        assert watched.down == {WEST_B} and not watched.replaced
    watched.silent = set()
    watched.look()
    assert not watched.down


def test_regions_zones_and_single_ones_have_marks_of_their_own() -> None:
    config = ClusterConfig.from_values({"outage.marks": "*=60-90,*/*=10-20,west/b=40-100"})
    watched = Watched(Rules(lost_after_ms=LOST_AFTER_MS, marks_of=configured(config)))
    watched.silent = {4, 5, 7, 8}
    watched.wait(20_000)
    # A third of each zone lives: enough for zone a, too little for zone b and for the region.
    assert watched.down == {WEST, WEST_B} and watched.kinds == ["region: region west"]
    watched.silent = {4, 7}
    watched.wait(20_000)
    assert watched.down == {WEST, WEST_B} and not watched.replaced
    watched.silent = {4, 5}
    watched.wait(20_000)
    assert watched.down == {WEST} and watched.kinds[0] == "region: region west"
    watched.silent = set()
    watched.wait(20_000)
    assert not watched.down


def test_without_rows_of_their_own_all_have_the_usual_marks() -> None:
    usual = configured(ClusterConfig.from_values({"outage.low.percent": "70"}))
    assert usual(WEST) == usual(WEST_A) == Marks(low_percent=70, high_percent=66)
    assert usual(WEST).back_percent == 70


def test_a_region_is_told_once_and_its_zones_are_not(watched: Watched) -> None:
    watched.silent = {4, 5, 6, 7, 8, 9}
    watched.wait(20_000)
    assert watched.down == {WEST, WEST_A, WEST_B} and watched.kinds == ["region: region west"]
    assert "release west`" in watched.found.held[BrokerId(4)][1]


def test_who_is_merely_cut_off_is_told_and_not_replaced(watched: Watched) -> None:
    watched.unheard = {one: {7, 8, 9} for one in (1, 2, 3)}
    watched.unheard |= {one: {1, 2, 3} for one in (7, 8, 9)}
    watched.wait(LOST_AFTER_MS + 20_000)
    assert watched.condition.lost == {7, 8, 9} and not watched.replaced and not watched.down
    assert watched.kinds == ["network-cut: zone b"]
    assert watched.told == [
        "heartbeats of brokers 7, 8, 9 in zone b reach zone west/a, but not zone east/a"
    ]
    watched.unheard = {}
    for _ in range(60):
        watched.now_ms += 1_000
        watched.look()
        assert not watched.replaced


def test_a_new_controller_takes_nothing_for_down_before_others_have_told_it(
    watched: Watched,
) -> None:
    watched.unheard = {one: {7, 8, 9} for one in (1, 2, 3)}
    watched.unheard |= {one: {1, 2, 3} for one in (7, 8, 9)}
    watched.wait(60_000)
    watched.raised.clear()
    watched.new_controller()
    watched.is_answered = False
    watched.wait(9_000)
    assert not watched.kinds and not watched.outages and not watched.raised
    watched.is_answered = True
    watched.wait(60_000)
    assert {one.kind for one in watched.raised} <= {Kind.CUT} and not watched.outages


def test_a_new_controller_that_nobody_answers_judges_once_it_has_looked_long_enough(
    watched: Watched,
) -> None:
    watched.silent = {7, 8, 9}
    watched.wait(9_000)
    watched.new_controller()
    watched.is_answered = False
    watched.wait(9_000)
    assert not watched.kinds and not watched.raised
    watched.wait(1_000)
    assert watched.kinds == ["zone: zone b"] and watched.outages.keys() == {WEST_B}


def test_a_new_controller_waits_for_no_answer_of_those_who_were_silent_before(
    watched: Watched,
) -> None:
    watched.silent = {7, 8, 9}
    watched.wait(9_000)
    watched.new_controller()
    watched.wait(1_000)
    assert watched.kinds == ["zone: zone b"]


def test_a_cut_far_from_the_controller_is_told(watched: Watched) -> None:
    watched.unheard = {4: {9}, 5: {9}, 6: {9}}
    watched.wait(20_000)
    assert watched.kinds == ["network-cut: zone b"] and not watched.condition.down_since_ms


def test_brokers_in_maintenance_are_planned_and_do_not_count(watched: Watched) -> None:
    watched.spared = watched.silent = {8, 9}
    watched.wait(LOST_AFTER_MS)
    assert watched.kinds == ["planned: broker 8", "planned: broker 9"] and not watched.down
    watched.silent = {7, 9}
    watched.spared = {9}
    watched.wait(LOST_AFTER_MS)
    assert "broker: broker 7" in watched.kinds and not watched.down


def test_a_released_zone_is_repaired_until_it_is_back(watched: Watched) -> None:
    watched.silent = {7, 8, 9}
    watched.wait(LOST_AFTER_MS)
    watched.rule(WEST_B, Ruling.RELEASE)
    watched.look()
    assert watched.replaced == {7, 8, 9} and watched.down == {WEST_B}
    watched.silent = set()
    watched.look()
    assert not watched.outages


def test_a_zones_release_counts_before_its_regions_outage(watched: Watched) -> None:
    watched.silent = {4, 5, 6, 7, 8, 9}
    watched.wait(LOST_AFTER_MS)
    watched.rule(WEST_B, Ruling.RELEASE)
    watched.look()
    assert watched.replaced == {7, 8, 9}
    watched.rule(WEST, Ruling.RELEASE)
    watched.rule(WEST_B, Ruling.HOLD)
    watched.look()
    assert watched.replaced == {4, 5, 6}


def test_what_is_declared_lost_is_not_waited_for(watched: Watched) -> None:
    watched.silent = {7, 8, 9}
    watched.wait(15_000)
    watched.rule(WEST_B, Ruling.LOST)
    watched.look()
    assert watched.replaced == {7, 8, 9} and not watched.condition.lost
    watched.silent = {7}
    watched.look()
    assert not watched.outages and watched.down == set()


def declare_early(watched: Watched) -> None:
    """All of a zone are silent, and declared lost before that is told as an outage."""
    watched.silent = {7, 8, 9}
    watched.wait(3_000)
    watched.rule(WEST_B, Ruling.LOST)


def test_what_is_declared_lost_before_it_is_told_stays_lost(watched: Watched) -> None:
    declare_early(watched)
    watched.wait(4_000)
    assert watched.outages[WEST_B].ruling is Ruling.LOST and not watched.replaced
    watched.wait(3_000)
    assert watched.replaced == {7, 8, 9} and watched.outages[WEST_B].is_down
    watched.silent = set()
    watched.look()
    assert not watched.outages and not watched.replaced


def test_what_is_declared_lost_and_is_back_before_it_is_told_is_lost_no_more(
    watched: Watched,
) -> None:
    declare_early(watched)
    watched.wait(1_000)
    watched.silent = {7}
    watched.wait(60_000)
    assert not watched.outages and not watched.replaced


def test_who_turns_out_to_be_merely_cut_off_is_not_lost_whatever_was_declared(
    watched: Watched,
) -> None:
    declare_early(watched)
    watched.silent = set()
    watched.unheard = {one: {7, 8, 9} for one in (1, 2, 3)}
    watched.unheard |= {one: {1, 2, 3} for one in (7, 8, 9)}
    watched.wait(2 * LOST_AFTER_MS)
    assert watched.condition.lost == {7, 8, 9} and not watched.replaced


def test_a_hold_by_hand_holds_single_failures_until_it_is_over(watched: Watched) -> None:
    watched.rule(WEST_B, Ruling.HOLD, until_ms=WALL_MS + 3 * LOST_AFTER_MS)
    watched.silent = {9}
    watched.wait(2 * LOST_AFTER_MS)
    assert not watched.replaced
    assert watched.found.held[BrokerId(9)][1] == (
        "zone b is held by hand until 22:58 UTC or you run `strandline zone release b`"
    )
    watched.wait(LOST_AFTER_MS)
    assert watched.replaced == {9} and not watched.outages


def test_an_outage_under_a_hold_is_planned(watched: Watched) -> None:
    watched.rule(WEST_B, Ruling.HOLD)
    watched.silent = {7, 8, 9}
    watched.wait(20_000)
    assert watched.kinds == ["planned: zone b"]


def test_a_single_broker_that_is_silent_under_a_hold_is_planned(watched: Watched) -> None:
    for held, where in ((WEST_B, "zone b"), (WEST, "region west")):
        watched.rule(held, Ruling.HOLD)
        watched.silent = {9}
        watched.wait(20_000)
        assert watched.kinds == ["planned: broker 9"]
        assert watched.told[-1].endswith(f"1 of 3 in zone b; {where} is held by hand")
        watched.silent = set()
        del watched.outages[held]
        watched.wait(20_000)
    watched.rule(WEST, Ruling.HOLD)
    watched.rule(WEST_B, Ruling.RELEASE)
    watched.silent = {9}
    watched.wait(20_000)
    assert watched.kinds == ["broker: broker 9"]


def test_a_zone_that_is_down_in_a_region_that_is_held_by_hand_is_planned(
    watched: Watched,
) -> None:
    watched.rule(WEST, Ruling.HOLD)
    watched.silent = {7, 8, 9}
    watched.wait(20_000)
    assert watched.kinds == ["planned: zone b"]


def held(watched: Watched) -> set[Domain]:
    return {one for one, view in watched.found.domains.items() if view.is_held}


def test_a_zone_is_held_with_its_region_and_released_with_it(watched: Watched) -> None:
    watched.silent = {4, 7, 8, 9}
    watched.wait(LOST_AFTER_MS)
    assert watched.down == {WEST, WEST_B} and held(watched) == {WEST, WEST_A, WEST_B}
    watched.rule(WEST, Ruling.RELEASE)
    watched.look()
    assert held(watched) == set() and watched.replaced == {4, 7, 8, 9}
    watched.rule(WEST_B, Ruling.HOLD)
    watched.look()
    assert held(watched) == {WEST_B} and watched.replaced == {4}


def test_a_zone_that_is_not_down_is_released_from_its_regions_outage_until_that_is_over(
    watched: Watched,
) -> None:
    watched.silent = {4, 7, 8, 9}
    watched.wait(LOST_AFTER_MS)
    watched.rule(WEST_A, Ruling.RELEASE)
    watched.new_controller()
    watched.wait(20_000)
    assert watched.replaced == {4} and held(watched) == {WEST, WEST_B}
    watched.silent = {4}
    watched.wait(20_000)
    assert not watched.outages


def test_a_region_is_released_from_its_zones_outage_until_that_is_over(watched: Watched) -> None:
    watched.silent = {7, 8, 9}
    watched.wait(LOST_AFTER_MS)
    assert watched.down == {WEST_B}
    watched.rule(WEST, Ruling.RELEASE)
    watched.wait(20_000)
    assert watched.replaced == {7, 8, 9} and not held(watched)
    watched.silent = set()
    watched.wait(20_000)
    assert not watched.outages


def test_who_is_cut_off_is_replaced_once_released_until_the_cut_is_over(watched: Watched) -> None:
    watched.unheard = {one: {8, 9} for one in (1, 2, 3)}
    watched.unheard |= {one: {1, 2, 3} for one in (8, 9)}
    watched.wait(LOST_AFTER_MS + 20_000)
    assert not watched.replaced
    assert watched.found.held[BrokerId(9)] == (
        "cut-off",
        (
            "broker 9 is cut off from the controller, but other brokers reach it: held "
            "until it returns or you run `strandline zone release b`"
        ),
    )
    watched.rule(WEST_B, Ruling.RELEASE)
    watched.wait(20_000)
    assert watched.replaced == {8, 9} and not watched.down
    watched.new_controller()
    watched.is_answered = False
    watched.wait(8_000)
    watched.is_answered = True
    watched.wait(20_000)
    assert watched.replaced == {8, 9}
    watched.unheard = {}
    watched.wait(LOST_AFTER_MS)
    assert not watched.outages and not watched.replaced


def test_a_release_ends_where_it_lets_nothing_be_repaired_that_would_wait(
    watched: Watched,
) -> None:
    """Else the next outage of that zone would be repaired, whoever remembers why."""
    watched.unheard = {one: {9} for one in (1, 2, 3)}
    watched.wait(20_000)
    watched.rule(WEST_B, Ruling.RELEASE)
    watched.wait(20_000)
    assert watched.outages[WEST_B].ruling is Ruling.RELEASE
    watched.silent, watched.unheard = {9}, {}
    watched.wait(LOST_AFTER_MS)
    assert not watched.outages and watched.replaced == {9}
    watched.silent = {7, 8, 9}
    watched.wait(LOST_AFTER_MS)
    assert watched.down == {WEST_B} and not watched.replaced & {7, 8}


def test_a_zone_is_not_back_for_all_its_silent_brokers_being_planned(watched: Watched) -> None:
    watched.silent = {7, 8, 9}
    watched.wait(60_000)
    watched.rule(WEST_B, Ruling.RELEASE)
    watched.spared = {7, 8, 9}
    for _ in range(2):
        watched.wait(20_000)
        assert watched.down == {WEST_B} and not [one for one in watched.raised if one.is_over]
        assert watched.outages[WEST_B].ruling is Ruling.RELEASE
        watched.new_controller()
    watched.silent = set()
    watched.wait(20_000)
    assert not watched.outages
    over = next(one.text for one in watched.raised if one.is_over)
    assert over.startswith("zone b is back, 3 of 3 brokers reachable")


def test_what_is_down_no_more_as_its_silent_brokers_are_planned_is_not_told_to_be_back(
    watched: Watched,
) -> None:
    watched.silent = {7, 8}
    watched.wait(60_000)
    assert watched.down == {WEST_B}
    watched.spared = {7, 8}
    watched.wait(20_000)
    assert not watched.down
    assert [one.text for one in watched.raised if one.is_over] == [
        (
            "zone b is no longer down, 1 of 1 brokers reachable; brokers 7, 8 no longer count: "
            "in maintenance, or being decommissioned, after 1 min"
        )
    ]


def test_a_hold_without_a_person_ends_only_where_that_is_configured() -> None:
    watched = Watched(Rules(lost_after_ms=LOST_AFTER_MS, hold_max_ms=2 * LOST_AFTER_MS))
    watched.silent = {7, 8, 9}
    watched.wait(2 * LOST_AFTER_MS - 5_000)
    assert not watched.replaced
    watched.wait(5_000)
    assert watched.replaced == {7, 8, 9} and watched.down == {WEST_B}


def test_a_zone_without_brokers_is_forgotten(watched: Watched) -> None:
    watched.silent = {7, 8, 9}
    watched.wait(20_000)
    watched.labels = {one: kept for one, kept in watched.labels.items() if one < 7}
    watched.look()
    assert not watched.outages and watched.down == set()


class Spell:
    """Some brokers are silent, some are not heard by some."""

    def __init__(self, silent: Collection[int], deaf: dict[int, set[int]], ms: int) -> None:
        self.silent, self.deaf, self.duration_ms = set(silent), deaf, ms

    def __repr__(self) -> str:
        return f"Spell({self.silent}, {self.deaf}, {self.duration_ms})"


spells = st.builds(
    Spell,
    st.sets(st.integers(2, 9)),
    st.dictionaries(st.integers(1, 9), st.sets(st.integers(2, 9)), max_size=3),
    st.sampled_from((1_000, 5_000, 12_000, 400_000, LOST_AFTER_MS)),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(spells, min_size=1, max_size=6), st.integers(0, 5))
def test_in_any_history_repair_of_a_zone_that_is_down_is_held_and_controllers_agree(
    history: list[Spell], changed_at: int
) -> None:
    watched, again = Watched(), Watched()
    for number, spell in enumerate(history):
        for one in (watched, again):
            one.silent, one.unheard = spell.silent, spell.deaf
            if number == changed_at:
                one.new_controller()
            one.wait(spell.duration_ms)
            for view in one.found.domains.values():
                if view.is_down:
                    assert not view.silent & one.replaced
        assert watched.found == again.found
        for broker in watched.replaced & watched.condition.down_since_ms.keys():
            assert watched.found.seen[broker].verdict is Verdict.SILENT


def test_who_comes_back_is_not_cut_off_for_what_others_told_before() -> None:
    watched = Watched(Rules(lost_after_ms=4_000))
    watched.unheard = {4: {9}, 5: {9}, 6: {9}}
    watched.wait(9_000)
    watched.unheard = {}
    watched.wait(60_000)
    assert not watched.told
