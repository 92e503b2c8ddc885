"""The policies that docs/operating/placement.md shows do what it says."""

import random
import re
from pathlib import Path

import pytest

from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId
from strandline.placement.policy.text import decode_policy
from strandline.placement.solver.refusal import Refusal
from strandline.placement.solver.request import Request
from strandline.placement.solver.solve import Solution, solve
from strandline.placement.topology.universe import Candidate

PAGE = (Path(__file__).parents[2] / "docs/operating/placement.md").read_text()
BLOCKS = re.findall(r"### ([^\n]*)\n\nBrokers: ([^\n]*)\n\n```yaml\n(.*?)```\n", PAGE, re.DOTALL)


def candidates(text: str) -> list[Candidate]:
    """Brokers of "east/a=2 west=1": region, or region and zone, and how many.

    The first in each place has a fast disk."""
    found: list[Candidate] = []
    for part in text.split():
        place, count = part.split("=")
        region, _, zone = place.partition("/")
        for number in range(int(count)):
            disk = "hdd" if number else "ssd"
            labels = Labels(region=region, zone=zone, free=(("disk", disk),))
            found.append(Candidate(id=BrokerId(len(found) + 1), labels=labels))
    return found


def solved(title: str, *, min_insync_replicas: int = 1) -> tuple[Solution | Refusal, list[str]]:
    """What becomes of a policy of the page, and the region of broker 1, 2, ..."""
    brokers, policy = next((brokers, text) for name, brokers, text in BLOCKS if name == title)
    request = Request(policy=decode_policy(policy), min_insync_replicas=min_insync_replicas)
    known = candidates(brokers)
    found = solve(request, known, partitions=30, rng=random.Random(1))
    return found, [one.labels.region for one in known]


def counted(title: str, *, min_insync_replicas: int = 1) -> set[tuple[int, ...]]:
    """How many replicas the regions of a partition get, sorted, over all partitions."""
    found, regions = solved(title, min_insync_replicas=min_insync_replicas)
    assert isinstance(found, Solution), found
    counts = set()
    for placed in found.partitions:
        each = [regions[broker - 1] for broker in placed.voters]
        counts.add(tuple(sorted(each.count(region) for region in set(each))))
    return counts


def test_the_page_has_nine_policies() -> None:
    assert len(BLOCKS) == 9 and PAGE.count("## Nine policies") == 1


@pytest.mark.parametrize(
    ("title", "counts"),
    [
        ("A region may go", {(1, 1, 1)}),
        ("A region, or any two brokers", {(1, 2, 2)}),
        ("A region while a broker is being repaired", {(1, 2, 2, 2)}),
        ("Two zones near, one far, leaders near", {(1, 2)}),
        ("Data stays in the country", {(1, 1, 1)}),
        ("Fast disks where there are some", {(1, 1, 1)}),
    ],
)
def test_a_policy_of_the_page_is_met_as_it_says(title: str, counts: set[tuple[int, ...]]) -> None:
    assert counted(title) == counts


def test_three_in_sync_replicas_need_five() -> None:
    assert counted("A region may go", min_insync_replicas=3) == {(1, 2, 2)}


def test_leaders_are_near() -> None:
    found, regions = solved("Two zones near, one far, leaders near")
    assert isinstance(found, Solution)
    assert {regions[placed.voters[0] - 1] for placed in found.partitions} == {"east"}


def test_fast_disks_are_preferred() -> None:
    found, _ = solved("Fast disks where there are some")
    assert isinstance(found, Solution)
    assert {broker for placed in found.partitions for broker in placed.voters} == {1, 4, 7}


def test_the_far_copy_is_an_observer_and_survives_for_nobody() -> None:
    title = "A copy far away that nobody waits for"
    found, regions = solved(title)
    assert isinstance(found, Solution)
    assert counted(title) == {(1, 2)}
    for placed in found.partitions:
        assert "south" not in {regions[one - 1] for one in placed.voters}
        assert [regions[one - 1] for one in placed.observers] == ["south"]


def test_data_stays_in_the_country() -> None:
    found, regions = solved("Data stays in the country")
    assert isinstance(found, Solution)
    for placed in found.partitions:
        assert {regions[one - 1] for one in placed.replicas} == {"east", "west", "north"}


def test_what_is_left_of_the_country_cannot_lose_a_region() -> None:
    found, _ = solved("Data stays in the country, and too few regions are left")
    assert isinstance(found, Refusal)
    assert found.nearest is not None and "residency" not in " ".join(found.nearest.changes)
    assert any("5" in map(str, one.brokers) for one in found.refused), str(found)
    assert found.newcomers == "one more broker in another region"
