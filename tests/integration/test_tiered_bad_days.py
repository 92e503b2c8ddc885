"""What the page about tiered storage has to say of bad days is typed: a bucket that stays away, the
rehearsal of a restore, and the way back.

Source: docs/operating/tiered.md; decision 0057."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.conftest import COMMAND, COMMAND_TIMEOUT_S, wait_until
from tests.integration.pages import commands
from tests.integration.ports import port_base

pytestmark = pytest.mark.integration

PAGE = "tiered.md"
LINES = [f"order {number}" for number in range(500)]
REGIONS = "--regions east=1,west=1,south=1"
CONFIG = " -c remote.storage.enable=true -c segment.ms=1000 -c local.retention.ms=1000"
QUICK = (
    " --set tiered.export_interval_ms=1000 --set tiered.check_interval_ms=100"
    " --set storage.retention_check_interval_ms=500"
)
TIMEOUT_S = 60


class Place:
    """A directory with the page's file of lines; commands are typed there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.buckets = path / "strandline-dev/buckets"
        (path / "lines.txt").write_text("\n".join(LINES) + "\n")

    def try_line(self, line: str) -> subprocess.CompletedProcess[str]:
        kept = {name: one for name, one in os.environ.items() if not name.startswith("STRANDLINE")}
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", line.replace("strandline", COMMAND, 1)],
            cwd=self.path, env=kept, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S,
        )  # fmt: skip

    def type(self, *lines: str) -> list[str]:
        """What each of them prints."""
        told = []
        for line in lines:
            done = self.try_line(line)
            assert done.returncode == 0, f"{line}: {done.stdout}\n{done.stderr}"
            told.append(done.stdout)
        return told

    def left(self) -> int:
        """How many records are in the leaders' logs still."""
        rows = self._rows()
        return sum(row["high_watermark"] - row["local_start_offset"] for row in rows)

    def total(self, count: str) -> dict[str, int]:
        """{bucket: the sum over all partitions}"""
        found: dict[str, int] = {}
        for row in self._rows():
            for one in row["buckets"]:
                found[one["bucket"]] = found.get(one["bucket"], 0) + one[count]
        return found

    def until_left(self, count: int) -> None:
        wait_until(lambda: self.left() == count, what="retention", timeout_s=TIMEOUT_S)

    def _rows(self) -> list[dict[str, object]]:  # type: ignore[misc]
        """One for each partition: right after a start, a leader may have yet to answer."""
        line = "strandline tiered status history --json"
        found: list[dict[str, object]] = []

        def answered() -> bool:
            done = self.try_line(line)
            found[:] = json.loads(done.stdout)["partitions"] if done.returncode == 0 else []
            return bool(found)

        wait_until(answered, what=line, timeout_s=TIMEOUT_S)
        return found


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """With a cluster and a topic as the page has them."""
    made = Place(tmp_path)
    try:
        made.type(
            f"strandline dev start {REGIONS} --tiered --port-base {port_base()}{QUICK}",
            f"strandline topic create history -p 2 -r 3{CONFIG}",
            "strandline produce history --file lines.txt",
        )
        yield made
    finally:
        made.try_line("strandline dev stop")


def _refuse_writes(place: Place) -> None:
    """A bucket is away, and a small limit stops the topic until it is back."""
    away = place.path / "away"
    small = "-c remote.copy.lag.max.bytes=100 -c remote.copy.lag.max.action=refuse-writes"
    place.type(f"strandline topic alter history {small}")
    (place.buckets / "south").rename(away)
    place.type("strandline produce history --file lines.txt")

    def is_stopped() -> bool:
        shown = json.loads(place.try_line("strandline cluster status --json").stdout)
        lines = [line for some in shown["text"].values() for line in some]
        return any("writes are refused" in one for one in lines)

    wait_until(is_stopped, what="the alarm of refused writes", timeout_s=TIMEOUT_S)
    refused = place.try_line("strandline produce history --file lines.txt --timeout 3")
    assert refused.returncode, refused.stdout
    assert "remote.copy.lag.max.bytes=100" in refused.stderr
    away.rename(place.buckets / "south")
    wait_until(
        lambda: place.try_line("strandline produce history --file lines.txt").returncode == 0,
        what="writes again",
        timeout_s=TIMEOUT_S,
    )
    place.type("strandline topic alter history --unset remote.copy.lag.max.bytes")


def test_a_bucket_stays_away_and_the_operator_chooses(place: Place) -> None:
    place.until_left(0)
    healthy, status = place.type(*commands(PAGE, "Lag"))
    (cost,) = place.type(*commands(PAGE, "What it costs"))
    heads, *rows = (line.split() for line in cost.splitlines())
    told = {row[0]: dict(zip(heads, row, strict=True)) for row in rows}
    assert told.keys() == {"east", "west", "south"}
    assert all(int(one["PUTS"]) > 0 and int(one["SENT-BYTES"]) > 0 for one in told.values())
    assert "Nothing is down, stopped or at risk." in healthy and "PENDING-AGE-S" in status
    (consumed,) = place.type("strandline consume history --exit-at-end")
    assert sorted(consumed.splitlines()) == sorted(LINES)

    # A bucket stays away: the disks keep what it lacks, until two copies are said to be enough.
    away = place.path / "away"
    (place.buckets / "south").rename(away)
    place.type("strandline produce history --file lines.txt")
    wait_until(lambda: place.total("pending_bytes")["south"] > 0, what="a lag", timeout_s=TIMEOUT_S)
    assert place.left() > 0
    place.type(*commands(PAGE, "A bucket stays away, and disks fill up", 0))
    place.until_left(0)
    (consumed,) = place.type("strandline consume history --exit-at-end")
    assert sorted(consumed.splitlines()) == sorted(LINES * 2)
    assert not (place.buckets / "south").exists()
    away.rename(place.buckets / "south")
    wait_until(
        lambda: len(set(place.total("bytes").values())) == 1,
        what="the bucket gets the rest from another one",
        timeout_s=TIMEOUT_S,
    )
    place.type(*commands(PAGE, "A bucket stays away, and disks fill up", 1))
    place.type("strandline tiered verify")
    for block in (2, 3):
        place.type(*commands(PAGE, "A bucket stays away, and disks fill up", block))
    _refuse_writes(place)

    (rehearsal,) = commands(PAGE, "Rehearse the loss of everything")
    wait_until(
        lambda: "history" in place.try_line(rehearsal).stdout,
        what="the cluster's state in the buckets",
        timeout_s=TIMEOUT_S,
    )
    place.until_left(0)
    place.type(*commands(PAGE, "Take it off a topic"))
    wait_until(
        lambda: sum(place.total("objects").values()) == 0, what="no object", timeout_s=TIMEOUT_S
    )
    assert place.type("strandline consume history --exit-at-end") == [""]
