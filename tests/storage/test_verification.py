"""Verification finds every kind of damage, says where it is, and tells it from a torn tail.

Source: docs/reference/cli.md, `strandline log verify`; the model test looks after every crash."""

import random

import pytest
from tests.storage.journal_world import PATH, Answers, fresh_disk, open_journal, state
from tests.storage.log_world import DIRECTORY, World
from tests.storage.storage_world import ForgetfulDisk

from strandline.base.errors import StorageError
from strandline.model.ids import Epoch, GroupId, Offset
from strandline.records.batch import iterate_headers, read_header, seal
from strandline.records.marker import build_epoch_marker
from strandline.storage.layout import SegmentSummary, checksum, read_checked, write_checked
from strandline.storage.log.index import INDEX_ENTRY_BYTES
from strandline.storage.recovery.survey import read_batches, survey_log
from strandline.storage.recovery.verification import (
    Finding,
    FindingKind,
    verify_journal,
    verify_log,
    verify_state,
)

DAMAGE, TORN, STALE = FindingKind.DAMAGE, FindingKind.TORN, FindingKind.STALE


def written_world(batch_count: int = 30, **config: int | bool) -> World:
    """Several segments, two epochs, flushed."""
    world = World(index_interval_bytes=200, **config)
    world.mark(1)
    for at in range(batch_count):
        if at == 20:
            world.mark(2)
        world.append(1 + at % 3, epoch=1 + at // 20, timestamp=1_000 + 7 * at % 50)
    world.flush()
    return world


def findings(world: World) -> list[Finding]:
    return verify_log(world.disk, DIRECTORY).findings


def batches(world: World, name: str) -> list[tuple[int, int, int]]:
    """(position, offset, end offset) of each batch of a segment's file."""
    file = world.disk.open(f"{DIRECTORY}/{name}")
    headers = iterate_headers(file.pread(file.size(), 0))
    return [(one.position, one.base_offset, one.next_offset) for one in headers]


def contents(disk: ForgetfulDisk) -> dict[str, dict[str, bytes]]:
    return {
        directory: {name: bytes(content.seen) for name, content in names.items()}
        for directory, names in disk.names.items()
    }


def rewrite(world: World, name: str, data: bytes) -> None:
    file = world.disk.open(f"{DIRECTORY}/{name}")
    file.pwrite((data,), 0)
    file.truncate(len(data))


def test_a_sound_log_has_no_findings_and_every_batch_was_read() -> None:
    world = written_world()
    verified = verify_log(world.disk, DIRECTORY)
    assert (verified.findings, verified.batch_count) == ([], 32)
    assert (verified.size_bytes, verified.last_epoch) == (world.log.size_bytes(), 2)
    world.log.close()
    assert findings(world) == []


def test_a_look_changes_nothing_whatever_it_finds() -> None:
    world = written_world()
    world.log.close()
    for name in (*world.files()[::2], *world.files(".summary")[::3], *world.files(".index")):
        world.disk.flip_bit(f"{DIRECTORY}/{name}", 20)
    before = contents(world.disk)
    assert findings(world)
    survey_log(world.disk, DIRECTORY)
    assert contents(world.disk) == before


def test_every_flipped_byte_of_a_closed_log_is_damage_at_its_batch() -> None:
    world = written_world()
    world.log.close()
    sound = {name: batches(world, name) for name in world.files()}
    places = [
        (name, position)
        for name in world.files()
        for position in range(0, world.disk.open(f"{DIRECTORY}/{name}").size(), 7)
    ]
    for name, position in places:
        world.disk.flip_bit(f"{DIRECTORY}/{name}", position)
        start, offset, end = next(one for one in reversed(sound[name]) if one[0] <= position)
        first = next(one for one in findings(world) if one.path.endswith(name))
        assert (first.kind, first.position, first.offset) == (DAMAGE, start, offset)
        assert first.end_offset >= end
        world.disk.flip_bit(f"{DIRECTORY}/{name}", position)


def test_damage_in_two_places_of_a_segment_is_told_apart() -> None:
    world = written_world(segment_bytes=3_000)
    world.log.close()
    name = world.files()[0]
    sound = batches(world, name)
    assert len(sound) > 15
    for at in (3, 12):
        world.disk.flip_bit(f"{DIRECTORY}/{name}", sound[at][0] + 40)
    found = findings(world)
    assert [(one.kind, one.position) for one in found] == [
        (DAMAGE, sound[3][0]),
        (DAMAGE, sound[12][0]),
    ]
    assert found[0].end_offset <= found[1].offset <= sound[12][1] < found[1].end_offset
    assert found[1].end_offset < sound[-1][2], "what is behind it is sound"


def test_a_tail_is_damage_below_the_flushed_mark_and_torn_above_it() -> None:
    world = World()
    world.append(3)
    world.flush()
    world.clock.advance(10_000)  # Long enough for a note of what is durable.
    world.append(3)
    name = world.files()[0]
    (_, first, _), (torn, second, _) = batches(world, name)
    path = f"{DIRECTORY}/{name}"
    world.disk.flip_bit(path, torn + 70)
    (found,) = findings(world)
    assert (found.kind, found.position, found.offset) == (TORN, torn, second)
    world.disk.flip_bit(path, 70)
    (found,) = findings(world)
    assert (found.kind, found.position, found.offset) == (DAMAGE, 0, first)
    assert found.end_offset == second


def test_what_is_called_damage_is_what_a_start_refuses() -> None:
    rng = random.Random(5)
    refused = 0
    for _ in range(150):
        world = World(preallocate=rng.random() < 0.5)
        for _ in range(rng.randint(1, 25)):
            world.append(rng.randint(1, 3))
            if rng.random() < 0.3:
                world.clock.advance(rng.choice((0, 6_000)))
                world.flush()
        name = rng.choice(world.files())
        file = world.disk.open(f"{DIRECTORY}/{name}")
        if rng.random() < 0.3:
            file.truncate(rng.randint(0, file.size()))
        else:
            world.disk.flip_bit(file.path, rng.randrange(max(1, file.size())))
        found = {one.kind for one in findings(world)}
        end_index = world.log.last_index
        try:
            log = world.open()
            for index in range(log.start_index, log.last_index + 1):
                log.batch_start(type(end_index)(index))
            is_refused = False
        except StorageError:
            is_refused = True
        assert (DAMAGE in found) is is_refused
        if not is_refused and log.last_index < end_index:
            assert TORN in found
        refused += is_refused
    assert 20 < refused < 130


@pytest.mark.parametrize("at", [0, 2, -1])
def test_a_segment_that_is_gone_is_missed(at: int) -> None:
    world = written_world()
    world.log.close()
    names = world.files()
    world.disk.remove(f"{DIRECTORY}/{names[at]}")
    found = [one for one in findings(world) if one.kind is DAMAGE]
    if at == 0:
        assert found == [], "the log begins later: that is retention, or a loss that nobody can see"
    else:
        assert len(found) == 1
        assert found[0].offset == int(names[at].split("-")[0])


def test_an_index_of_another_checksum_is_stale_and_one_that_lies_is_damage() -> None:
    world = written_world()
    world.log.close()
    stem = world.files()[1].removesuffix(".log")
    for suffix in (".index", ".timeindex"):
        path = f"{DIRECTORY}/{stem}{suffix}"
        data = bytearray(world.disk.open(path).pread(1 << 20, 0))
        assert len(data) >= 2 * INDEX_ENTRY_BYTES
        sound = bytes(data)
        data[-1 if suffix == ".index" else 5] ^= 1
        rewrite(world, stem + suffix, bytes(data))
        assert [(one.kind, one.path) for one in findings(world)] == [(STALE, path)]
        summary_path = f"{DIRECTORY}/{stem}.summary"
        summary = read_checked(world.disk, summary_path, SegmentSummary)
        assert summary is not None
        fields = {name: getattr(summary, name) for name in SegmentSummary.__struct_fields__}
        fields["index_crc" if suffix == ".index" else "time_index_crc"] = checksum(data)
        write_checked(world.disk, summary_path, SegmentSummary(**fields))
        assert (DAMAGE, path) in [(one.kind, one.path) for one in findings(world)]
        rewrite(world, stem + suffix, sound)
        write_checked(world.disk, summary_path, summary)
    assert findings(world) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [("max_timestamp", 5), ("max_timestamp_offset", 1), ("markers", []), ("end_offset", 900)],
)
def test_a_summary_that_does_not_agree_with_its_segment_is_damage(
    field: str, value: object
) -> None:
    world = written_world()
    world.log.close()
    path = f"{DIRECTORY}/{world.files()[0].removesuffix('.log')}.summary"
    summary = read_checked(world.disk, path, SegmentSummary)
    assert summary is not None
    fields = {name: getattr(summary, name) for name in SegmentSummary.__struct_fields__}
    write_checked(world.disk, path, SegmentSummary(**{**fields, field: value}))
    (found,) = findings(world)
    assert (found.kind, found.path) == (DAMAGE, path)
    assert found.reason.startswith(field)


def test_a_sound_marker_of_no_known_kind_is_damage_since_no_start_cuts_it() -> None:
    world = World()
    marker = bytearray(build_epoch_marker(Offset(0), Epoch(1), 0))
    header = read_header(marker)
    assert header is not None
    marker[marker.index(b"\x00\x00\x00\x0a", 61) + 3] = 99
    seal(marker, header)
    world.disk.open(f"{DIRECTORY}/{world.files()[0]}").pwrite((marker,), 0)
    (found,) = findings(world)
    assert found.kind is DAMAGE
    assert "unknown kind 99" in found.reason
    with pytest.raises(StorageError):
        world.open()


def test_a_batch_with_another_number_of_records_than_it_says_is_damage() -> None:
    world = World()
    data = bytearray(world.append(3))
    header = read_header(data)
    assert header is not None
    data[57:61] = (2).to_bytes(4, "big")
    seal(data, header)
    world.disk.open(f"{DIRECTORY}/{world.files()[0]}").pwrite((data,), 0)
    (found,) = findings(world)
    assert (found.kind, found.position, found.offset, found.end_offset) == (DAMAGE, 0, 0, 3)


def test_a_survey_shows_what_a_start_would_find() -> None:
    world = written_world()
    survey = survey_log(world.disk, DIRECTORY)
    log = world.open()
    assert (survey.end_offset, survey.last_index) == (log.end_offset, log.last_index)
    assert survey.history.epochs == log.epochs
    assert survey.producers_count == len(log.producers)
    world.disk.flip_bit(f"{DIRECTORY}/{world.files()[0]}", 100)
    segment = survey.segments[0].segment
    assert [is_sound for _, is_sound, _ in read_batches(segment)].count(False) == 1


def test_a_journal_is_sound_torn_or_damaged() -> None:
    disk = fresh_disk()
    assert verify_journal(disk, PATH) == ({}, [])
    journal = open_journal(disk)
    for epoch in (1, 2, 3):
        journal.put(GroupId(7), state(epoch, 2), Answers())
        disk.run()
    states, found = verify_journal(disk, PATH)
    assert (states, found) == ({GroupId(7): state(3, 2)}, [])
    journal.put(GroupId(7), state(4, 2), Answers())
    disk.flip_bit(PATH, journal._end - 16)
    states, found = verify_journal(disk, PATH)
    assert states == {GroupId(7): state(3, 2)}
    assert [one.kind for one in found] == [TORN]
    disk.flip_bit(PATH, 20)
    states, found = verify_journal(disk, PATH)
    assert states is None
    assert [(one.kind, one.path) for one in found] == [(DAMAGE, PATH)]


def test_a_journal_that_forgot_an_epoch_of_the_log_is_damage() -> None:
    assert verify_state(PATH, GroupId(1), state(4), last_epoch=4) == []
    assert verify_state(PATH, GroupId(1), None, last_epoch=0) == []
    for remembered in (None, state(3)):
        (found,) = verify_state(PATH, GroupId(1), remembered, last_epoch=4)
        assert found.kind is DAMAGE


def test_flipping_any_byte_beside_a_closed_log_is_never_called_sound() -> None:
    world = written_world(batch_count=12)
    world.log.close()
    for suffix in (".index", ".timeindex"):
        for name in world.files(suffix):
            path = f"{DIRECTORY}/{name}"
            for position in range(0, world.disk.open(path).size(), 3):
                world.disk.flip_bit(path, position)
                assert findings(world)
                world.disk.flip_bit(path, position)
