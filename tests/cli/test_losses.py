"""What is told of each class of loss, and shown on the page; that it is so,
`tests/broker/test_remedies.py` does.

Source: decision 0026."""

import json
from pathlib import Path

import pytest
from tests.cli.command_line import run
from tests.cli.explain_world import FROM_TOPIC, Lines, World, cells, told, world
from tests.placement.test_outcomes import HALVES, THREE, one_of, seeds
from tests.placement.test_survival import placed

from strandline.cli.text.live_cluster import LiveTopic
from strandline.cli.text.losses import LossForecast, tell, tell_losses
from strandline.model.ids import BrokerId
from strandline.placement.explain.outcomes import LINK, outcomes
from strandline.placement.explain.topics import PartitionState
from strandline.placement.policy.document import Policy, Promotion
from strandline.placement.solver.request import Request
from strandline.placement.survival.courses import Rules

__all__ = ["run", "told", "world"]


def how(paths: tuple[str, ...], observers: tuple[str, ...], promotion: Promotion) -> str:
    """How the loss of a region goes, where three have to acknowledge and voters may leave."""
    placement = placed(*paths, observers=observers, min_insync_replicas=3)
    rules = Rules(min_insync_replicas=3, shrinks=True, promotion=promotion)
    request = Request(policy=Policy(), min_insync_replicas=3)
    topic = LiveTopic("orders", "", request, (), {}, shrinks=True)
    return tell(topic, one_of(outcomes([(placement, (0,))], rules), "1 region"))


LOWER = "acks=all is refused until: strandline topic alter orders -c min.insync.replicas=2"


@pytest.mark.parametrize(
    ("paths", "begin"),
    [
        (THREE, "the remaining 2 of 3 voters continue; "),
        (
            HALVES,
            "the controller appoints a leader among the remaining 2 of 4 voters; ",
        ),
    ],
)
def test_what_an_observer_gives_is_told(paths: tuple[str, ...], begin: str) -> None:
    stands_in = "then 1 observer stands in: acks=all goes on"
    assert how(paths, ("d/1",), "under-min-isr") == begin + stands_in
    assert how(paths, (), "under-min-isr") == begin + LOWER
    assert how(paths, ("d/1",), "leader-is-observer") == begin + LOWER
    assert how(paths, ("a/1",), "under-min-isr") == begin + LOWER, "it is lost with a region"


def of_a_region(*paths: str, least: int, shrinks: bool) -> str:
    """How the loss of a region goes for these voters."""
    placement = placed(*paths, min_insync_replicas=least)
    request = Request(policy=Policy(), min_insync_replicas=least)
    topic = LiveTopic("orders", "", request, (), {}, shrinks=shrinks)
    found = outcomes([(placement, (0,))], Rules(least, shrinks))
    return tell(topic, one_of(found, "1 region"))


@pytest.mark.parametrize(
    ("least", "shrinks", "text"),
    [
        (
            2,
            True,
            "the controller appoints the remaining voter of 2 as leader; acks=all is refused",
        ),
        (
            2,
            False,
            "no leader; the remaining voter of 2 holds every acknowledged record, and continues "
            "after: strandline topic alter orders -c voters.shrink.enable=true",
        ),
    ],
)
def test_one_voter_is_told_in_the_singular(least: int, shrinks: bool, text: str) -> None:
    assert of_a_region("a/1", "b/1", least=least, shrinks=shrinks).startswith(text)


def test_a_row_about_some_partitions_names_them(capsys: pytest.CaptureFixture[str]) -> None:
    """As `partition 0` or `partitions 0,2`."""
    request = Request(policy=Policy(), min_insync_replicas=1)
    spread, together = (
        placed(*paths, min_insync_replicas=1) for paths in (THREE, ("a/1", "a/2", "a/3"))
    )
    states = tuple(PartitionState(index, (BrokerId(1),)) for index in range(3))
    topic = LiveTopic("orders", "", request, states, {}, shrinks=False)
    for some, named in (((0,), "(partition 0)"), ((0, 2), "(partitions 0,2)")):
        others = tuple(one for one in range(3) if one not in some)
        found = outcomes([(spread, others), (together, some)], Rules(1, shrinks=False))
        tell_losses(LossForecast(topic, found, ()))
        assert named in capsys.readouterr().out


def of_a_link(*paths: str, observers: str = "", least: int = 1, shrinks: bool = True) -> str:
    """How it goes where the link between two regions is cut; the controller is in three."""
    placement = placed(*paths, observers=tuple(observers), min_insync_replicas=least)
    rules = Rules(least, shrinks, seeds("a", "b", "c"), "under-min-isr")
    request = Request(policy=Policy(), min_insync_replicas=least)
    topic = LiveTopic("orders", "", request, (), {}, shrinks=shrinks)
    return tell(topic, one_of(outcomes([(placement, (0,))], rules), LINK, is_cut=True))


def test_what_a_cut_link_does_is_told() -> None:
    alter = "strandline topic alter orders"
    assert of_a_link(*THREE) == (
        "2 of 3 voters continue with their leader; the others catch up when the link is repaired"
    )
    assert of_a_link(*HALVES) == (
        "neither side elects a leader: the controller appoints a leader on one side, with 2 "
        "of 4 voters; the others catch up when the link is repaired"
    )
    appointed = (
        "neither side elects a leader: the controller appoints a leader on one side, with 2 "
        "of 4 voters"
    )
    assert of_a_link(*HALVES, observers="c", least=3) == (
        f"{appointed}; then 1 observer stands in: acks=all goes on"
    )
    assert of_a_link(*HALVES, least=3) == (
        f"{appointed}; acks=all is refused until the link is repaired, or: "
        f"{alter} -c min.insync.replicas=2"
    )
    assert of_a_link(*HALVES, observers="c", least=3, shrinks=False) == (
        "neither side elects a leader: repair the link, or let the controller appoint a "
        "leader on one side, with 2 of 4 voters and 1 observer, which hold every "
        f"acknowledged record: {alter} -c voters.shrink.enable=true"
    )
    assert of_a_link(*HALVES, shrinks=False).endswith(
        f"on one side, with 2 of 4 voters, which hold every acknowledged record: {alter} -c "
        "voters.shrink.enable=true"
    )
    assert of_a_link(*THREE, least=3) == (
        "2 of 3 voters continue with their leader; acks=all is refused until the link is "
        f"repaired, or: {alter} -c min.insync.replicas=2"
    )
    assert of_a_link(*THREE, least=3, shrinks=False) == (
        "min.insync.replicas requires 3 of 3, and 2 reach the leader: acks=all waits: "
        "repair the link"
    )


def test_a_link_beyond_which_the_controller_is_is_told() -> None:
    topic = LiveTopic("orders", "", Request(policy=Policy()), (), {}, shrinks=True)
    placement = placed(*HALVES, observers=("c",))
    found = outcomes([(placement, (0,))], Rules(1, True, seeds("a", "b")))
    assert tell(topic, one_of(found, LINK, is_cut=True)) == (
        "the controller has no majority either, or is unreachable: repair the link"
    )


REGION_LOST = (
    '{"rules":[{"count":2,"where":[{"label":"region","op":"in","values":["east"]}]},'
    '{"count":2,"where":[{"label":"region","op":"in","values":["west"]}]},'
    '{"role":"observer","count":1,"where":[{"label":"region","op":"in","values":["south"]}]}],'
    '"promotion":"region-lost"}'
)


@pytest.fixture
def halves(world: World) -> World:
    """Two voters in each of two regions and an observer in the third, of "region-lost"."""
    world.voters, world.policy = [[1, 2, 3, 4]], (REGION_LOST, FROM_TOPIC)
    world.min_insync, world.shrinks, world.observers = 3, "true", {0: [5]}
    return world


def test_a_region_that_is_taken_for_down_has_observers_stand_in(halves: World, told: Lines) -> None:
    lines = told("topic", "explain", "t")
    rows = {row[0]: row[1:] for row in cells(lines, "LOST ")}
    begin = "the controller appoints a leader among the remaining 2 of 4 voters; "
    then = "then, once the region counts as down, 1 observer stands in: acks=all goes on"
    assert rows["1 region"] == ["by itself", "kept", begin + then]
    assert rows["2 brokers"][0] == "operator"
    assert not any(line.startswith("note: ") for line in lines)


def test_regions_that_are_too_small_to_be_taken_for_down_are_noted(
    halves: World, told: Lines
) -> None:
    halves.outage_brokers_min = 3
    note = (
        "region-lost: regions east, west have fewer brokers than outage.brokers.min, too "
        "few to count as down: no observer stands in for their voters"
    )
    lines = told("topic", "explain", "t")
    assert f"note: {note}" in lines
    assert {row[0]: row[1] for row in cells(lines, "LOST ")}["1 region"] == "operator"
    assert json.loads("\n".join(told("topic", "explain", "t", "--json")))["notes"] == [note]
    assert f"note: {note}" in told("topic", "create", "t")


def test_where_no_voter_is_left_an_observer_that_may_go_on_is_told(
    halves: World, told: Lines
) -> None:
    halves.seeds = (5,)
    rows = {row[0]: row[1:] for row in cells(told("topic", "explain", "t"), "LOST ")}
    assert rows["2 regions"] == [
        "operator", "may be lost",
        "no voter is left: bring 3 back; or see what may be lost: strandline partition survivors t "
        "PARTITION, and let an observer continue without it: strandline partition declare-lost t "
        "PARTITION",
    ]  # fmt: skip
    halves.observers = {}
    rows = {row[0]: row[1:] for row in cells(told("topic", "explain", "t"), "LOST ")}
    assert rows["2 regions"] == ["operator", "lost", "no voter is left: bring 3 back"]


PAGE = Path(__file__).parents[2] / "docs/operating/outages.md"


def test_the_table_on_the_page_is_what_is_told_of_such_a_topic(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two replicas in each of two regions; a line may end before the command that it names."""
    request = Request(policy=Policy(), min_insync_replicas=1)
    partition = PartitionState(0, tuple(map(BrokerId, range(1, 5))), BrokerId(1))
    topic = LiveTopic("orders", "", request, (partition,), {}, shrinks=False)
    tell_losses(LossForecast(topic, outcomes([(placed(*HALVES), (0,))], Rules(1)), ()))
    lines = capsys.readouterr().out.splitlines()[1:]
    section = PAGE.read_text().partition("## Who acts after which loss\n")[2]
    shown = section.partition("```text\n")[2].partition("\n```")[0].splitlines()
    assert len(shown) == 4
    for line in shown:
        begin = line.removesuffix("...").split()
        assert any(one.split()[: len(begin)] == begin for one in lines), (line, lines)
