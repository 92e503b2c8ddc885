"""Which links between single brokers are cut, and when that is told. Source: decision 0018."""

import pytest
from tests.controller.outages.watched_world import Watched

from strandline.controller.outages.links import LINK_MS
from strandline.model.ids import BrokerId

BETWEEN = "between zone west/a and zone b"
OVER = f"no single link {BETWEEN} is cut any more"


@pytest.fixture
def watched() -> Watched:
    return Watched()


def raised(watched: Watched) -> list[str]:
    return [f"{'- ' if one.is_over else ''}{one.kind}: {one.text}" for one in watched.raised]


def test_a_link_between_two_brokers_is_told_and_that_it_is_mended(watched: Watched) -> None:
    watched.unheard = {4: {9}, 9: {4}}
    watched.wait(LINK_MS - 1)
    assert not watched.kinds
    watched.wait(45_001)
    assert watched.kinds == [f"network-cut: links {BETWEEN}"]
    assert not watched.condition.down_since_ms and not watched.found.held
    watched.unheard = {}
    watched.wait(1_000)
    assert raised(watched) == [
        f"network-cut: some links {BETWEEN} are cut: brokers 4 and 9 do not reach each other",
        f"- network-cut: {OVER}, after 1 min",
    ]


def test_one_way_is_told_apart_and_of_many_three_are_named(watched: Watched) -> None:
    watched.unheard = {4: {7, 8, 9}, 5: {7}, 7: {4}}
    watched.wait(60_000)
    assert [text for text in watched.told if "broker 9" in text] == [
        (
            f"some links {BETWEEN} are cut: brokers 4 and 7 do not reach each other; broker "
            "4 receives nothing from broker 8; broker 4 receives nothing from broker 9; and "
            "1 more such links"
        )
    ]


def test_a_link_inside_a_zone_is_told(watched: Watched) -> None:
    watched.unheard = {4: {5}}
    watched.wait(60_000)
    assert watched.told == [
        "some links inside zone west/a are cut: broker 4 receives nothing from broker 5"
    ]


def test_each_moment_of_hearing_begins_anew(watched: Watched) -> None:
    for _ in range(10):
        watched.unheard = {4: {9}}
        watched.wait(LINK_MS - 2_000)
        watched.unheard = {}
        watched.wait(1_000)
    assert not watched.told


def test_who_is_silent_is_not_cut_off_from_anybody(watched: Watched) -> None:
    watched.silent = {9}
    watched.wait(60_000)
    assert watched.kinds == ["broker: broker 9"]


def test_what_whole_zones_do_not_hear_is_told_once(watched: Watched) -> None:
    """Broker 9 hears nobody of west/a, as its neighbours do; and nobody there hears it."""
    watched.unheard = {4: {9}, 5: {9}, 6: {9}, 9: {4, 5, 6}}
    watched.wait(60_000)
    assert watched.kinds == ["network-cut: zone b"]


def test_whom_the_controller_alone_does_not_hear_is_told_once(watched: Watched) -> None:
    watched.unheard = {1: {9}}
    watched.wait(60_000)
    assert watched.kinds == ["network-cut: zone b"]


def test_a_link_that_becomes_a_cut_of_the_zone_is_over_when_it_is_mended(watched: Watched) -> None:
    watched.unheard = {4: {9}, 9: {4}}
    watched.wait(60_000)
    watched.unheard = {4: {9}, 5: {9}, 6: {9}, 9: {4}}
    watched.wait(60_000)
    assert watched.kinds == ["network-cut: zone b", f"network-cut: links {BETWEEN}"]
    watched.unheard = {5: {9}, 6: {9}}
    watched.wait(60_000)
    assert raised(watched)[2:] == [
        "- network-cut: zone b is connected again, after 1 min",
        f"- network-cut: {OVER}, after 2 min",
        f"network-cut: some links {BETWEEN} are cut: broker 5 receives nothing from broker 9; "
        "broker 6 receives nothing from broker 9",
    ]


@pytest.mark.parametrize("silent_ms", [4_000, 60_000])
def test_a_restart_that_mends_a_link_is_the_end_of_it(watched: Watched, silent_ms: int) -> None:
    watched.unheard = {4: {9}, 9: {4}}
    watched.wait(60_000)
    watched.silent = {9}
    watched.wait(silent_ms)
    watched.silent, watched.unheard = set(), {}
    watched.wait(60_000)
    assert [one for one in raised(watched) if "single link" in one] == [
        f"- network-cut: {OVER}, after {1 + silent_ms // 60_000} min"
    ]
    assert not watched.kinds


def test_what_flickers_or_does_not_answer_is_told_once(watched: Watched) -> None:
    watched.unheard = {4: {9}, 9: {4}}
    watched.wait(60_000)
    for _ in range(3):
        watched.silent = {9}
        watched.wait(3_000)
        watched.silent = set()
        watched.is_answered = False
        watched.wait(6_000)
        watched.is_answered = True
        watched.wait(30_000)
    assert [one.is_over for one in watched.raised] == [False]


def test_it_is_over_for_who_has_left_the_cluster(watched: Watched) -> None:
    watched.unheard = {4: {9}, 9: {4}}
    watched.wait(60_000)
    del watched.labels[BrokerId(9)]
    watched.wait(1_000)
    assert raised(watched)[1:] == [f"- network-cut: {OVER}, after 1 min"]
