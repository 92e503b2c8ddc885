"""An audit of buckets names each difference once, at its offset, and is silent otherwise.

Source: docs/decisions/0052-comparing-replicas.md, "Buckets"."""

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pipeline.audit.buckets.bucket_world import (
    TIERED,
    World,
    flip,
    fork,
    only,
)
from tests.storage.digest_world import filled
from tests.storage.digest_world import fork as fork_record

from strandline.pipeline.audit.report import render_report
from strandline.pipeline.audit.results import FindingKind, Verdict
from strandline.pipeline.audit.text import as_json, lines_of

UNCOMPRESSED = [(0, 0, 0), (1, 2, 10)]
"""(object, batch in it, base offset) of batches of the bucket east that can be forked."""
LOCAL_STARTS = [0, 14]


@pytest.mark.parametrize("local_start", LOCAL_STARTS)
def test_equal_buckets_are_equal(tmp_path: Path, local_start: int) -> None:
    world = World(tmp_path, local_start=local_start)
    result = world.audit()
    assert result.verdict is Verdict.EQUAL, (result.findings, result.not_compared)
    (partition,) = result.partitions
    assert {name: one.object_count for name, one in partition.buckets.items()} == {
        "east": 3,
        "west": 3,
    }
    of_east = [row for row in partition.rows if row.bucket == "east"]
    assert {row.status for row in of_east} == {"equal"}
    assert sum(row.records for row in of_east) == 20
    assert world.looks == 1
    assert result.bucket_bytes == sum(
        one.data_bytes for entries in world.live.values() for one in entries
    )
    assert "; 6 objects in 2 buckets" in next(lines_of(result))


@pytest.mark.parametrize("range_bytes", [100, 300, 100_000])
@pytest.mark.parametrize("local_start", LOCAL_STARTS)
def test_a_flipped_bit_is_found_at_its_batch(
    tmp_path: Path, local_start: int, range_bytes: int
) -> None:
    for number, batch in ((0, 0), (0, 2), (1, 3), (2, 1)):
        world = World(tmp_path / f"{number}-{batch}", local_start=local_start)
        header = world.change("east", number, batch, flip)
        found = only(world.audit(range_bytes=range_bytes))
        assert (found.kind, found.offset) == (FindingKind.DAMAGED, header.base_offset)
        assert found.end_offset == header.next_offset
        assert (found.brokers, found.buckets) == ((), ("east",))
        assert found.object_name == world.live["east"][number].name
        assert "a batch with the checksum" in found.reason


@settings(max_examples=30, deadline=None)
@given(number=st.integers(0, 2), at=st.floats(0, 1, exclude_max=True), data=st.data())
def test_any_flipped_bit_of_an_object_is_found_once(
    tmp_path_factory: pytest.TempPathFactory, number: int, at: float, data: st.DataObject
) -> None:
    world = World(tmp_path_factory.mktemp("world"), local_start=data.draw(st.sampled_from([0, 14])))
    path, entry = world.path("west", number), world.live["west"][number]
    content = bytearray(path.read_bytes())
    content[int(at * len(content))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    found = only(world.audit())
    assert found.buckets == ("west",) and found.object_name == entry.name
    assert entry.base_offset <= found.offset < entry.end_offset
    assert found.kind in (FindingKind.DAMAGED, FindingKind.DIFFERENT)


@pytest.mark.parametrize("range_bytes", [1, 40, 300, 100_000])
@pytest.mark.parametrize("local_start", LOCAL_STARTS)
@pytest.mark.parametrize(("number", "batch", "base"), UNCOMPRESSED)
def test_a_fork_in_a_bucket_is_found_at_its_record(
    tmp_path: Path, local_start: int, number: int, batch: int, base: int, range_bytes: int
) -> None:
    """By a replica, or by the other bucket, whose object is the one that the log names. Ranges may
    end within a batch."""
    world = World(tmp_path, local_start=local_start)
    world.change("east", number, batch, fork)
    found = only(world.audit(range_bytes=range_bytes))
    assert (found.kind, found.offset, found.buckets) == (
        FindingKind.DIFFERENT,
        base + 1,
        ("east",),
    )
    assert "another record" in found.reason
    assert "another checksum than the log says" in found.reason


def test_a_fork_that_only_the_log_contradicts_is_found_in_its_chunk(tmp_path: Path) -> None:
    world = World(tmp_path, local_start=14)
    world.live["west"].clear()
    world.change("east", 0, 0, fork)
    found = only(world.audit("east"))
    entry = world.live["east"][0]
    assert (found.kind, found.offset, found.end_offset) == (FindingKind.DAMAGED, 0, 6)
    assert "another checksum than the log says" in found.reason
    assert found.object_name == entry.name


def test_what_a_forked_replica_uploaded_is_named_with_the_replica(tmp_path: Path) -> None:
    """The object is what the log says, for it was made of wrong records."""
    forked = filled(TIERED)
    forked.overwrite(10, fork_record)
    world = World(tmp_path, uploader=forked)
    found = only(world.audit())
    assert (found.kind, found.offset, found.buckets) == (FindingKind.DIFFERENT, 10, ("east",))
    world.cluster.brokers[2].copy.overwrite(10, fork_record)
    result = world.audit()
    assert {(one.offset, one.brokers, one.buckets) for one in result.findings} == {
        (10, (2,), ()),
        (10, (), ("east",)),
    }


def test_two_buckets_that_nothing_decides_between_are_both_named(tmp_path: Path) -> None:
    forked = filled(TIERED)
    forked.overwrite(0, fork_record)
    world = World(tmp_path, uploader=forked, local_start=14)
    found = only(world.audit())
    assert (found.kind, found.offset, found.buckets) == (FindingKind.DIFFERENT, 0, ("east", "west"))
    assert found.object_name == ""


def test_an_object_that_is_gone_is_missing_unless_it_was_retired(tmp_path: Path) -> None:
    world = World(tmp_path, local_start=14)
    world.path("east", 1).unlink()
    found = only(world.audit())
    assert (found.kind, found.offset, found.end_offset) == (FindingKind.MISSING, 6, 14)
    assert found.buckets == ("east",) and "the bucket has no such object" in found.reason
    assert world.looks == 2
    world.looks = 0
    world.retired.add(world.live["east"][1].name)
    result = world.audit()
    assert result.verdict is Verdict.EQUAL, (result.findings, result.not_compared)


@pytest.mark.parametrize("local_start", LOCAL_STARTS)
@pytest.mark.parametrize("kept", ["nothing", "a batch", "half a batch", "data", "less trailer"])
def test_an_object_that_is_cut_is_found_where_its_batches_end(
    tmp_path: Path, local_start: int, kept: str
) -> None:
    world = World(tmp_path, local_start=local_start)
    path, entry = world.path("east", 1), world.live["east"][1]
    content = path.read_bytes()
    first = int.from_bytes(content[8:12], "big") + 12
    size, offset = {
        "nothing": (0, 6),
        "a batch": (first, 8),
        "half a batch": (first + 30, 8),
        "data": (entry.data_bytes, 6),
        "less trailer": (entry.size_bytes - 1, 6),
    }[kept]
    path.write_bytes(content[:size])
    found = only(world.audit())
    has_all = kept in ("data", "less trailer")
    assert found.kind is (FindingKind.DAMAGED if has_all else FindingKind.MISSING)
    assert (found.offset, found.end_offset, found.buckets) == (offset, 14, ("east",))
    assert f"it has {size} bytes, and the log says {entry.size_bytes}" in found.reason


def test_an_object_that_ends_early_is_found_where_it_ends(tmp_path: Path) -> None:
    """The log says more of it than it has."""
    world = World(tmp_path)
    world.live["east"][-1] = replace_entry(world, end_offset=22)
    found = only(world.audit())
    assert (found.kind, found.offset, found.end_offset) == (FindingKind.MISSING, 20, 22)
    assert found.reason == "its batches end at offset 20, and the log says 22"


def replace_entry(world: World, **changes: int) -> object:
    import msgspec

    return msgspec.structs.replace(world.live["east"][-1], **changes)


def test_an_object_in_the_place_of_another_is_found_once(tmp_path: Path) -> None:
    """The same offsets with other records, sound in itself: as of a cluster that was cloned."""
    forked = filled(TIERED)
    forked.overwrite(10, fork_record)
    world = World(tmp_path, local_start=14)
    other = World(tmp_path / "other", uploader=forked)
    world.path("east", 1).write_bytes(other.path("east", 1).read_bytes())
    found = only(world.audit())
    assert (found.kind, found.offset, found.buckets) == (FindingKind.DIFFERENT, 10, ("east",))
    assert "the trailer has another checksum than the log says" in found.reason


def test_a_dropped_batch_and_what_follows_a_damaged_header(tmp_path: Path) -> None:
    world = World(tmp_path)
    path, entry = world.path("east", 1), world.live["east"][1]
    content = path.read_bytes()
    first = int.from_bytes(content[8:12], "big") + 12
    path.write_bytes(content[first : entry.data_bytes] + bytes(first) + content[entry.data_bytes :])
    found = only(world.audit())
    assert (found.kind, found.offset) == (FindingKind.DAMAGED, 6)
    assert "a batch at offset 8 (1 more places, up to offset 14)" in found.reason
    path.write_bytes(bytes(20) + content[20:])
    found = only(world.audit())
    assert (found.kind, found.offset, found.reason) == (
        FindingKind.DAMAGED,
        6,
        "no header of a batch",
    )


def test_offsets_that_are_in_no_object_are_missing(tmp_path: Path) -> None:
    world = World(tmp_path)
    del world.live["east"][1]
    found = only(world.audit())
    assert (found.kind, found.offset, found.end_offset) == (FindingKind.MISSING, 6, 14)
    assert found.buckets == ("east",)
    assert found.reason == "no object of the bucket has offsets 6 to 14"


def test_records_that_are_nowhere_are_missing(tmp_path: Path) -> None:
    world = World(tmp_path, local_start=14)
    del world.live["east"][0], world.live["west"][0]
    found = only(world.audit())
    assert (found.kind, found.offset, found.end_offset) == (FindingKind.MISSING, 0, 6)
    assert found.reason == "no bucket and no replica has offsets 0 to 6"
    world.live["east"].pop(), world.live["west"].clear()
    found = [one for one in world.audit("east").findings if one.offset]
    assert found == [], "the local logs begin where the last object ends"


@pytest.mark.parametrize("what", ["unnamed", "away"])
def test_a_bucket_that_cannot_be_read_makes_the_audit_incomplete(tmp_path: Path, what: str) -> None:
    world = World(tmp_path)
    if what == "away":
        shutil.rmtree(tmp_path / "west")
    result = world.audit(*(["east"] if what == "unnamed" else []))
    assert result.verdict is Verdict.INCOMPLETE
    assert {one.bucket for one in result.not_compared} == {"west"}
    reason = "--buckets does not name it" if what == "unnamed" else "is its file system mounted?"
    assert reason in result.not_compared[0].text
    assert "1 part of buckets could not be compared" in next(lines_of(result))


def test_page_lines_and_json_name_bucket_and_object(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.change("east", 1, 2, flip)
    result = world.audit()
    name = world.live["east"][1].name
    text = "\n".join(lines_of(result))
    assert "t-0 offset 10: damaged in bucket east: a batch with the checksum" in text
    assert f"object {name}" in text and name in render_report(result)
    told = json.loads(json.dumps(as_json(result)))
    assert told["findings"][0]["buckets"] == ["east"]
    assert told["findings"][0]["object_name"] == name
    assert told["partitions"][0]["buckets"]["west"]["object_count"] == 3
    assert told["bucket_bytes"] > 0
