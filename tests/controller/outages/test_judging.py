"""What is held, what is repaired, what is told. Source: design section 8; decision 0018."""

from collections.abc import Collection

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.controller.balancer.health import UNSEEN_MS_MAX, Health
from strandline.controller.outages.judging import Judgement, Outages, Rules, Scene
from strandline.controller.outages.marks import Marks
from strandline.controller.outages.sight import Verdict
from strandline.model.cluster import NO_END_MS, Domain, Labels, Outage, Ruling
from strandline.model.ids import BrokerId

LOST_AFTER_MS = 900_000
WALL_MS = 1_700_000_000_000  # 22:13 UTC
EAST, WEST, EAST_A, WEST_A, WEST_B = (
    ("east",), ("west",), ("east", "a"), ("west", "a"), ("west", "b")
)  # fmt: skip


class Watched:
    """Brokers 1-3 in east/a, 4-6 in west/a, 7-9 in west/b; broker 1 is the controller."""

    def __init__(self, rules: Rules | None = None) -> None:
        self.rules = rules or Rules(lost_after_ms=LOST_AFTER_MS)
        places = (EAST_A, WEST_A, WEST_B)
        self.labels = {
            BrokerId(number): Labels(region=region, zone=zone)
            for number, (region, zone) in enumerate((one for one in places for _ in range(3)), 1)
        }
        self.silent: set[int] = set()
        self.unheard: dict[int, set[int]] = {}
        """{who tells: whom it does not hear though it lives}"""
        self.spared: set[int] = set()
        self.outages: dict[Domain, Outage] = {}
        self.now_ms = 0
        self.told: list[str] = []
        self.new_controller()
        self.wait(60_000)

    def new_controller(self) -> None:
        self.judge, self.health = Outages(), Health()

    def wait(self, duration_ms: int, *, is_noted: bool = True) -> Judgement:
        end_ms = self.now_ms + duration_ms
        while True:
            self.look(is_noted=is_noted)
            if self.now_ms >= end_ms:
                return self.found
            self.now_ms = min(end_ms, self.now_ms + UNSEEN_MS_MAX)

    def look(self, *, is_noted: bool = True) -> Judgement:
        alive = self.labels.keys() - self.silent
        hears = {one: frozenset(alive - self.unheard.get(one, set())) for one in alive}
        own = hears[BrokerId(1)]
        self.condition = self.health.step(
            self.now_ms,
            brokers=self.labels,
            alive=own,
            lost_after_ms=self.rules.lost_after_ms,
            spared=set(map(BrokerId, self.spared)),
        )
        scene = Scene(
            controller=BrokerId(1),
            now_ms=self.now_ms,
            wall_ms=WALL_MS + self.now_ms,
            brokers=self.labels,
            condition=self.condition,
            hears={one: them for one, them in hears.items() if one in own},
            outages=self.outages,
        )
        self.found = self.judge.step(scene, self.rules)
        for domain, outage in self.found.wanted.items() if is_noted else ():
            if outage == Outage():
                self.outages.pop(domain, None)
            else:
                self.outages[domain] = outage
        for one in self.found.happenings:
            if one.text not in self.told:
                self.told.append(one.text)
        return self.found

    @property
    def replaced(self) -> set[BrokerId]:
        """Whose replicas are made anew elsewhere."""
        return set((self.condition.lost | self.found.lost) - self.found.held.keys())

    @property
    def down(self) -> set[Domain]:
        return {one for one, view in self.found.domains.items() if view.is_down}

    @property
    def kinds(self) -> list[str]:
        return [f"{one.kind}: {one.subject}" for one in self.found.happenings]

    def rule(self, domain: Domain, ruling: Ruling, until_ms: int = NO_END_MS) -> None:
        known = self.outages.get(domain, Outage())
        self.outages[domain] = Outage(known.is_down, ruling, until_ms)


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
    assert watched.found.held[BrokerId(8)].endswith("or by `strandline zone release b`")
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


def test_what_is_missing_when_a_zone_is_back_is_given_time_and_then_replaced(
    watched: Watched,
) -> None:
    watched.silent = {7, 8, 9}
    watched.wait(2 * LOST_AFTER_MS)
    watched.silent = {9}
    watched.wait(LOST_AFTER_MS - 5_000)
    assert (
        not watched.down and not watched.replaced and "is back" in watched.found.held[BrokerId(9)]
    )
    watched.wait(5_000)
    assert watched.replaced == {9}


def test_between_the_marks_a_zone_stays_down_whoever_is_the_controller() -> None:
    watched = Watched(Rules(lost_after_ms=LOST_AFTER_MS, marks=Marks(high_percent=80)))
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


def test_a_region_is_told_once_and_its_zones_are_not(watched: Watched) -> None:
    watched.silent = {4, 5, 6, 7, 8, 9}
    watched.wait(20_000)
    assert watched.down == {WEST, WEST_A, WEST_B} and watched.kinds == ["region: region west"]
    assert "release west`" in watched.found.held[BrokerId(4)]


def test_who_is_merely_cut_off_is_told_and_not_replaced(watched: Watched) -> None:
    watched.unheard = {one: {7, 8, 9} for one in (1, 2, 3)}
    watched.unheard |= {one: {1, 2, 3} for one in (7, 8, 9)}
    watched.wait(LOST_AFTER_MS + 20_000)
    assert watched.condition.lost == {7, 8, 9} and not watched.replaced and not watched.down
    assert watched.kinds == ["network-cut: zone b"]
    assert watched.told == [
        "brokers 7, 8, 9 in zone b are heard from zone west/a and not from zone east/a"
    ]
    watched.unheard = {}
    for _ in range(60):
        watched.now_ms += 1_000
        watched.look()
        assert not watched.replaced


def test_a_cut_far_from_the_controller_is_told(watched: Watched) -> None:
    watched.unheard = {4: {9}, 5: {9}, 6: {9}}
    watched.wait(20_000)
    assert watched.kinds == ["network-cut: zone b"] and not watched.condition.down_since_ms


def test_brokers_in_maintenance_are_planned_and_do_not_count(watched: Watched) -> None:
    watched.spared = watched.silent = {8, 9}
    watched.wait(LOST_AFTER_MS)
    assert watched.kinds == ["planned: broker 8", "planned: broker 9"] and not watched.down
    watched.silent = {7, 8, 9}
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


def test_a_hold_by_hand_holds_single_failures_until_it_is_over(watched: Watched) -> None:
    watched.rule(WEST_B, Ruling.HOLD, until_ms=WALL_MS + 3 * LOST_AFTER_MS)
    watched.silent = {9}
    watched.wait(2 * LOST_AFTER_MS)
    assert not watched.replaced
    assert watched.found.held[BrokerId(9)] == (
        "zone b is held by hand: until 22:58 UTC, or by `strandline zone release b`"
    )
    watched.wait(LOST_AFTER_MS)
    assert watched.replaced == {9} and not watched.outages


def test_an_outage_under_a_hold_is_planned(watched: Watched) -> None:
    watched.rule(WEST_B, Ruling.HOLD)
    watched.silent = {7, 8, 9}
    watched.wait(20_000)
    assert watched.kinds == ["planned: zone b"]


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
