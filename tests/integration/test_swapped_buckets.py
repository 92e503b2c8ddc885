"""Two buckets are exchanged, one is lost for good, objects are lost and cut: typed on real brokers.

Source: decision 0068; docs/operating/tiered.md."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.conftest import wait_until
from tests.integration.ports import port_base
from tests.integration.test_tiered_bad_days import CONFIG, LINES, QUICK, REGIONS, TIMEOUT_S, Place

pytestmark = pytest.mark.integration

START = f"strandline dev start {REGIONS} --tiered{QUICK}"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    made.type(
        f"{START} --port-base {port_base()}",
        f"strandline topic create history -p 1 -r 3{CONFIG}",
        "strandline produce history --file lines.txt",
    )
    try:
        made.until_left(0)
        yield made
    finally:
        made.try_line("strandline dev stop --remove")


def lines(place: Place) -> list[str]:
    """All that a consumer gets from the beginning."""
    (out,) = place.type("strandline consume history --exit-at-end")
    return out.splitlines()


def logs(place: Place) -> str:
    return "".join(one.read_text() for one in place.buckets.parent.glob("*/broker.log"))


def exchange(place: Place) -> None:
    east, west, away = place.buckets / "east", place.buckets / "west", place.buckets / "away"
    east.rename(away)
    west.rename(east)
    away.rename(west)


def test_a_cluster_with_exchanged_buckets_loses_nothing_and_goes_on_once_they_are_back(
    place: Place,
) -> None:
    ends = place.total("end_offset")
    assert set(ends.values()) == {len(LINES)}
    place.type("strandline dev stop")
    exchange(place)
    before = {
        one: sorted(str(path) for path in (place.buckets / one).rglob("*.segment"))
        for one in ("east", "west")
    }
    place.type("strandline dev start", "strandline produce history --file lines.txt")
    wait_until(
        lambda: "it is bucket west of this cluster" in logs(place),
        what="the refusal",
        timeout_s=TIMEOUT_S,
    )
    wait_until(
        lambda: place.total("end_offset")["south"] > ends["south"],
        what="the other bucket",
        timeout_s=TIMEOUT_S,
    )
    assert lines(place) == LINES * 2
    found = place.total("end_offset")
    assert (found["east"], found["west"]) == (ends["east"], ends["west"])
    assert before == {
        one: sorted(str(path) for path in (place.buckets / one).rglob("*.segment"))
        for one in ("east", "west")
    }
    done = place.try_line("strandline tiered verify")
    assert done.returncode == 1 and "is not the one that the cluster uses" in done.stderr
    place.type("strandline dev stop")
    exchange(place)
    place.type("strandline dev start")
    place.until_left(0)
    assert set(place.total("end_offset").values()) == {2 * len(LINES)}
    assert lines(place) == LINES * 2
    place.type("strandline tiered verify")


def test_a_bucket_that_is_lost_for_good_is_replaced_and_lost_objects_are_put_again(
    place: Place,
) -> None:
    (place.buckets / "west").rename(place.buckets / "lost")
    (place.buckets / "west").mkdir()
    place.type("strandline produce history --file lines.txt")
    wait_until(
        lambda: place.total("end_offset")["east"] == 2 * len(LINES),
        what="the other buckets",
        timeout_s=TIMEOUT_S,
    )
    assert not list((place.buckets / "west").rglob("*.segment"))
    assert place.left() > 0, "local segments wait for all buckets"
    (told,) = place.type("strandline tiered replace west")
    assert "bucket west: " in told
    place.until_left(0)
    assert lines(place) == LINES * 2
    place.type("strandline tiered verify")
    objects = sorted((place.buckets / "east").rglob("*.segment"))
    objects[0].unlink()
    os.truncate(objects[-1], 100)
    (told,) = place.type("strandline tiered verify --repair")
    assert f"{min(len(objects), 2)} put again" in told
    place.type("strandline tiered verify")
    assert lines(place) == LINES * 2
