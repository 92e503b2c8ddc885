"""Buckets of a compacted topic are equal if each makes the same table, whenever it was compacted.

Source: docs/decisions/0052-comparing-replicas.md, "Buckets"; decision 0066."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.pipeline.audit.buckets.bucket_world import END, World, flip, only
from tests.storage.digest_world import COMPACTED, Copy, filled, fork

from strandline.pipeline.audit.results import FindingKind, Verdict

TIERED = replace(COMPACTED, remote_storage=True)
EAST, WEST = (0, 6, 14, 20, END), (0, 10, END)


def copies(*, compacts: str = "101") -> list[Copy]:
    """Replicas with the same records, some of them compacted."""
    made = [filled(TIERED) for _ in compacts]
    for copy, word in zip(made, compacts, strict=True):
        if word == "1":
            copy.compact()
    return made


def world(path: Path, *, uploader: Copy | None = None, local_start: int = 0) -> World:
    """The bucket east has what `uploader` had, or all records; west is compacted."""
    source = uploader or filled(TIERED)
    return World(
        path,
        copies=copies(),
        uploader=source,
        east=EAST,
        west=WEST,
        local_start=local_start,
    )


def forked(offset: int) -> Copy:
    copy = filled(TIERED)
    copy.overwrite(offset, fork)
    return copy


@pytest.mark.parametrize("range_bytes", [100, 100_000])
@pytest.mark.parametrize("local_start", [0, 14])
def test_buckets_are_equal_whenever_they_were_compacted(
    tmp_path: Path, local_start: int, range_bytes: int
) -> None:
    made = world(tmp_path, local_start=local_start)
    result = made.audit(range_bytes=range_bytes)
    assert result.verdict is Verdict.EQUAL, (result.findings, result.not_compared)
    rows = [row for row in result.partitions[0].rows if row.bucket]
    assert {row.bucket for row in rows} == {"east", "west"}
    assert {(row.kind, row.status) for row in rows} == {("latest", "equal")}
    assert made.looks == 1


@pytest.mark.parametrize("range_bytes", [100, 100_000])
@pytest.mark.parametrize(("offset", "local_start"), [(20, 0), (20, 14), (10, 14), (10, 0)])
def test_another_last_record_of_a_key_is_found_at_its_offset(
    tmp_path: Path, offset: int, local_start: int, range_bytes: int
) -> None:
    made = world(tmp_path, uploader=forked(offset), local_start=local_start)
    result = made.audit(range_bytes=range_bytes)
    if offset == 10:  # Its first record is not the last of its key: every table is the same.
        assert result.verdict is Verdict.EQUAL, (result.findings, result.not_compared)
        return
    found = only(result)
    assert (found.kind, found.offset, found.buckets) == (FindingKind.DIFFERENT, 20, ("east",))
    assert found.object_name == made.live["east"][3].name
    assert "the last record of a key" in found.reason


@pytest.mark.parametrize("change", [flip])
def test_a_damaged_object_is_named_once(
    tmp_path: Path, change: Callable[[bytearray], None]
) -> None:
    made = world(tmp_path)
    header = made.change("east", 1, 2, change)
    found = only(made.audit())
    assert (found.kind, found.offset, found.buckets) == (
        FindingKind.DAMAGED,
        header.base_offset,
        ("east",),
    )


def test_a_bucket_that_ends_earlier_is_compared_once_it_has_caught_up(tmp_path: Path) -> None:
    made = world(tmp_path)
    made.live["east"].pop()
    result = made.audit()
    assert result.verdict is Verdict.INCOMPLETE
    (missed,) = result.not_compared
    assert missed.bucket == "east"
    expected = f"it ends at offset 20, and others at {END}: compared once it has caught up"
    assert missed.reason == expected


def test_a_difference_says_nothing_if_buckets_grew_meanwhile(tmp_path: Path) -> None:
    made = world(tmp_path, uploader=forked(20))
    made.grown_to = 30
    result = made.audit()
    assert result.verdict is Verdict.INCOMPLETE and result.findings == []
    assert "compaction went on during the audit" in result.not_compared[0].reason


def test_keys_are_taken_in_shares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from strandline.pipeline.audit.buckets import reading

    whole = world(tmp_path / "whole").audit().partitions[0].rows
    monkeypatch.setattr(reading, "KEYS_MAX", 5)
    by_shares = world(tmp_path / "shares").audit()
    assert by_shares.verdict is Verdict.EQUAL, by_shares.not_compared
    assert [(one.digest, one.records) for one in by_shares.partitions[0].rows if one.bucket] == [
        (one.digest, one.records) for one in whole if one.bucket
    ]
