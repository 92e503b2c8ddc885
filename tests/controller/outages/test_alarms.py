"""Each thing that goes on is told once, and once that it is over. Source: decision 0018."""

import pytest
from tests.controller.outages.watched_world import LOST_AFTER_MS, WEST_B, Watched

from strandline.model.cluster import Ruling


@pytest.fixture
def watched() -> Watched:
    return Watched()


def told(watched: Watched) -> list[str]:
    """Of which kind, and what, in the log; a line that begins with "-" tells what is over."""
    raised = [one for one in watched.raised if not one.is_posted_only]
    watched.raised.clear()
    return [f"{'- ' if one.is_over else ''}{one.kind}: {one.text}" for one in raised]


def posted(watched: Watched) -> list[str]:
    """Of which kind, and about what, to who keeps a list of these; as in `told`."""
    raised, watched.raised = watched.raised, []
    return [f"{'- ' if one.is_over else ''}{one.kind}: {one.subject}" for one in raised]


def test_a_zone_is_told_when_it_goes_down_and_when_it_is_back(watched: Watched) -> None:
    watched.silent = {7, 8, 9}
    watched.wait(720_000)
    assert told(watched) == ["zone: zone b is down since 22:14 UTC, 3 of 3 brokers silent"]
    watched.silent = {9}
    watched.wait(60_000)
    assert told(watched) == [
        "broker: broker 9 is silent since 22:14 UTC, 1 of 3 in zone b",
        "- zone: zone b is back, 2 of 3 brokers reachable, after 12 min",
    ]
    watched.silent = set()
    watched.wait(LOST_AFTER_MS)
    assert told(watched) == ["- broker: broker 9 is back, after 13 min"]


def test_what_only_grows_is_not_over(watched: Watched) -> None:
    watched.silent = {9}
    watched.wait(60_000)
    watched.silent = {7, 8, 9}
    watched.wait(60_000)
    watched.silent = {4, 5, 6, 7, 8, 9}
    watched.wait(60_000)
    assert [one.split(" is ")[0] for one in told(watched)] == [
        "broker: broker 9", "zone: zone b", "region: region west",
    ]  # fmt: skip
    watched.silent = set()
    watched.wait(60_000)
    assert [one.split(" is ")[0] for one in told(watched)] == ["- region: region west"]


def test_whatever_is_posted_is_posted_to_be_over_by_the_same_name(watched: Watched) -> None:
    watched.silent = {9}
    watched.wait(60_000)
    assert posted(watched) == ["broker: broker 9"]
    watched.silent = {7, 8, 9}
    watched.wait(60_000)
    assert watched.raised[-1].text == "broker 9 continues as zone: zone b"
    assert posted(watched) == ["zone: zone b", "- broker: broker 9"]
    watched.rule(WEST_B, Ruling.HOLD)
    watched.wait(60_000)
    assert posted(watched) == ["planned: zone b", "- zone: zone b"]
    watched.silent = {4, 5, 6, 7, 8, 9}
    watched.wait(60_000)
    assert watched.raised[-1].text == "zone b continues as region: region west"
    assert posted(watched) == ["region: region west", "- planned: zone b"]
    watched.new_controller()
    watched.wait(60_000)
    watched.silent = set()
    watched.wait(60_000)
    assert posted(watched) == ["region: region west", "- region: region west"]


def test_who_is_heard_by_some_again_is_over_as_a_silent_broker(watched: Watched) -> None:
    watched.silent = {9}
    watched.wait(60_000)
    watched.silent = set()
    watched.unheard = {one: {9} for one in (1, 2, 3)}
    watched.wait(60_000)
    over = next(one for one in watched.raised if one.is_over)
    assert over.text == "broker 9: its heartbeats reach some brokers only"
    assert posted(watched) == [
        "broker: broker 9", "- broker: broker 9", "network-cut: zone b",
    ]  # fmt: skip


def test_the_next_controller_posts_again_what_still_goes_on(watched: Watched) -> None:
    watched.silent = {3, 7, 8, 9}
    watched.wait(60_000)
    before = sorted((one.kind, one.subject, one.text) for one in watched.raised)
    watched.raised.clear()
    watched.new_controller()
    watched.wait(60_000)
    assert sorted((one.kind, one.subject, one.text) for one in watched.raised) == before
    assert told(watched) == []


def test_a_cut_is_told_and_that_it_is_healed(watched: Watched) -> None:
    watched.unheard = {4: {9}, 5: {9}, 6: {9}}
    watched.wait(60_000)
    watched.unheard = {}
    watched.wait(60_000)
    assert told(watched) == [
        (
            "network-cut: heartbeats of broker 9 in zone b reach zone east/a, zone b, but not "
            "zone west/a"
        ),
        "- network-cut: zone b is connected again, after 1 min",
    ]


def test_the_next_controller_tells_nothing_again_and_what_ended_meanwhile(
    watched: Watched,
) -> None:
    watched.silent = {3, 7, 8, 9}
    watched.wait(60_000)
    assert len(told(watched)) == 2
    watched.new_controller()
    watched.wait(60_000)
    assert told(watched) == []
    watched.new_controller()
    watched.silent = {3}
    watched.wait(60_000)
    assert told(watched) == ["- zone: zone b is back, 3 of 3 brokers reachable"]


def test_what_is_ruled_meanwhile_changes_the_kind_and_is_not_over(watched: Watched) -> None:
    watched.silent = {7, 8, 9}
    watched.wait(60_000)
    watched.rule(WEST_B, Ruling.HOLD)
    watched.wait(60_000)
    assert [one.split(":")[0] for one in told(watched)] == ["zone", "planned"]
    watched.silent = set()
    watched.wait(60_000)
    assert [one.split(":")[0] for one in told(watched)] == ["- planned"]


def test_brokers_in_maintenance_are_told_as_planned(watched: Watched) -> None:
    watched.spared = watched.silent = {9}
    watched.wait(60_000)
    watched.silent = set()
    watched.wait(60_000)
    assert told(watched) == [
        "planned: broker 9 is down, and in maintenance",
        "- planned: broker 9 is back, after 1 min",
    ]
