"""A link between two brokers is cut while every zone hears both: it is reported, and why a
partition has no leader.

Source: docs/decisions/0018-outages.md."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.broker.moving_world import MovingWorld, moving_world
from tests.broker.test_outages import shown_status

from strandline.client.operations.zone_rows import CALM
from strandline.model.ids import BrokerId

PAGE = Path(__file__).parents[2] / "docs/operating/outages.md"
REGIONS = {1: "east", 2: "east", 3: "north", 4: "west", 5: "west"}
NO_LEADER = "no-leader: "
ENDS = (BrokerId(1), BrokerId(4))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[MovingWorld]:
    """Two regions of two, and a third site; a topic whose voters are at the ends of a link."""
    with moving_world(monkeypatch, ENDS, REGIONS) as made:
        yield made


def test_a_link_that_leaves_a_partition_without_a_leader_is_shown_as_on_the_page(
    world: MovingWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = partial(shown_status, world, capsys)

    def await_sight(condition: Callable[[list[str]], bool]) -> list[str]:
        for _ in range(60):
            if condition(shown()):
                break
            world.advance(1_000)
        lines = shown()
        assert condition(lines), lines
        return lines

    section = PAGE.read_text().partition("## A network is cut\n")[2].partition("\n## ")[0]
    (line,) = [one for one in section.splitlines() if one.startswith("network-cut: some links")]
    world.until(lambda: world.controller_leader() != 0)
    while world.controller_leader() in ENDS:
        world.lose_power_of(world.controller_leader(), for_ms=500)
        world.until(lambda: world.controller_leader() != 0)
    for way in (ENDS, ENDS[::-1]):
        world.fabric.cut(*way)
    lines = await_sight(lambda found: line in found and NO_LEADER in "".join(found))
    assert CALM not in lines
    for way in (ENDS, ENDS[::-1]):
        world.fabric.heal(*way)
    await_sight(lambda found: CALM in found and NO_LEADER not in "".join(found))
