"""Marks of regions, of zones, and of single ones: what is read, what is refused, what counts."""

import pytest

from strandline.config.cluster import validate_cluster_config
from strandline.config.outage_marks import OutageMarks, Pair

TABLE = ("*=34-60", "*/*=50-66", "west=10-20", "west/*=40-50", "west/a=20-30", "/lab=1-100")


@pytest.mark.parametrize(
    ("domain", "pair"),
    [
        (("east",), (34, 60)),
        (("west",), (10, 20)),
        (("east", "a"), (50, 66)),
        (("west", "a"), (20, 30)),  # Of rows that fit the narrowest.
        (("west", "b"), (40, 50)),
        (("", "lab"), (1, 100)),  # Of a zone in no region.
        (("", "a"), (50, 66)),
    ],
)
def test_the_narrowest_row_counts_in_whichever_order(domain: tuple[str, ...], pair: Pair) -> None:
    assert OutageMarks(TABLE).of(domain) == pair
    assert OutageMarks(tuple(reversed(TABLE))).of(domain) == pair


def test_a_row_of_regions_says_nothing_of_zones_and_the_other_way_round() -> None:
    assert OutageMarks(("*=34-60", "west=1-2")).of(("west", "a")) is None
    assert OutageMarks(("*/*=34-60", "west/*=1-2")).of(("west",)) is None
    assert OutageMarks().of(("west",)) is None


@pytest.mark.parametrize("text", ["", "*=34-60", " west / a = 20 - 40 , */* = 100-100", "/a=1-1"])
def test_what_is_a_table_is_taken(text: str) -> None:
    assert validate_cluster_config("outage.marks", text) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("west", "must look like WHERE=LOW-HIGH"),
        ("west=50", "must look like WHERE=LOW-HIGH"),
        ("=40-60", "must look like WHERE=LOW-HIGH"),
        ("west=40-sixty", "must look like WHERE=LOW-HIGH"),
        ("west=4.5-60", "must look like WHERE=LOW-HIGH"),
        ("west=60-40", "gives west the marks 60-40"),
        ("west=0-40", "the low one must be at least 1"),
        ("west=40-101", "nor above 100"),
        ("west=40-9999", "must look like WHERE=LOW-HIGH"),
        ("west/a/1=40-60", "must name a region, or a zone as region/zone"),
        ("west/=40-60", "must name a region, or a zone as region/zone"),
        ("*/a=40-60", "must say the region of zone 'a', or */* for all zones"),
        ("we st=40-60", "names a region or zone that must be"),
        ("west=40-60,west=50-66", "gives the marks of west twice"),
        ("west/a=40-60,west / a=50-66", "gives the marks of west/a twice"),
    ],
)
def test_what_is_no_table_is_refused_in_one_line(text: str, says: str) -> None:
    reason = validate_cluster_config("outage.marks", text)
    assert reason is not None and reason.startswith("outage.marks ")
    assert says in reason and "\n" not in reason
