"""Digests are equal for equal logs, and differ where logs differ.

Source: docs/decisions/0052-comparing-replicas.md."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.storage.digest_world import (
    ALL_BYTES,
    COMPACTED,
    CONFIG,
    DIRECTORY,
    Copy,
    Pair,
    filled,
    flip,
    fork,
    fork_epoch,
    ranges_of,
)

from strandline.model.ids import Offset
from strandline.records.batch import iterate_headers, read_header
from strandline.records.record import Record, build_batch, decode_batches
from strandline.storage.digests.contents import digest_contents
from strandline.storage.digests.latest import KeyShare, digest_latest
from strandline.storage.digests.ranges import DigestKind
from strandline.storage.digests.walk import PACE_RECORDS
from strandline.storage.layout import LOG


def test_equal_logs_have_equal_digests_however_they_are_cut_into_segments() -> None:
    one, other = filled(), filled(replace(CONFIG, segment_bytes=2_000, index_interval_bytes=50))
    assert one.digest(0, 5, 10, 24) == other.digest(0, 5, 10, 24)
    whole = one.digest(0, 24).ranges[0]
    assert (whole.records, whole.batches, whole.markers) == (24, 12, 1)
    assert (whole.first_offset, whole.last_offset) == (0, 23)
    assert whole == other.digest(0, 24).ranges[0]


def test_a_range_holds_the_batches_that_begin_in_it_and_nothing_twice() -> None:
    copy = filled()
    found = copy.digest(0, 5, 10, 24).ranges
    assert [one.batches for one in found] == [3, 2, 7]
    assert [(one.first_offset, one.last_offset) for one in found] == [(0, 5), (6, 9), (10, 23)]
    assert sum(one.size_bytes for one in found) == copy.digest(0, 24).ranges[0].size_bytes


def test_markers_at_the_first_offset_count_only_if_asked_for() -> None:
    copy = filled()
    assert [one.markers for one in copy.digest(12, 14, 24).ranges] == [0, 0]
    assert [one.markers for one in copy.digest(12, 24, first_markers=True).ranges] == [1]
    assert [one.markers for one in copy.digest(10, 12, 24).ranges] == [0, 1]


def test_a_log_that_begins_later_has_the_digests_of_one_that_begins_earlier() -> None:
    one, other = filled(), filled()
    one.flush()
    one.log.remove_segments_before(one.log.index_of(Offset(14)))
    start = one.log.start_offset
    assert 0 < start <= 14
    assert one.digest(start, 24) == other.digest(start, 24)


@pytest.mark.parametrize("change", [fork, fork_epoch])
@pytest.mark.parametrize("offset", [0, 10, 12, 22])
def test_a_changed_batch_changes_the_digest_of_its_range_alone(
    change: Callable[[bytearray], None], offset: int
) -> None:
    one, other = filled(), filled()
    bounds = (0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24)
    other.overwrite(offset, change)
    if change is fork_epoch:  # The log knows its epochs without reading the batch.
        damage = other.digest(*bounds).damage
        assert damage is not None and damage.offset == offset and "epoch" in damage.reason
        return
    sound, changed = one.digest(*bounds).ranges, other.digest(*bounds).ranges
    differ = [2 * at for at, (a, b) in enumerate(zip(sound, changed, strict=True)) if a != b]
    assert differ == [offset]


def test_damage_ends_the_answer_and_names_the_batch() -> None:
    copy = filled()
    copy.overwrite(10, flip)
    found = copy.digest(0, 4, 8, 16, 24)
    assert len(found.ranges) == 2 and found.damage is not None
    assert (found.damage.offset, found.damage.end_offset) == (10, 12)
    assert "checksum" in found.damage.reason
    behind = copy.digest(12, 24)
    assert behind.damage is None and behind == filled().digest(12, 24)
    before = copy.digest(0, 10)
    assert before.damage is None and before == filled().digest(0, 10)


def test_a_batch_that_is_not_there_is_damage_at_its_offset() -> None:
    copy = filled()
    part = copy.log.parts.find(Offset(0), Offset(1))[0]
    first = read_header(part.file.pread(part.end, part.place.position))
    assert first is not None
    rest = part.file.pread(part.end, first.size)
    part.file.pwrite([rest + bytes(first.size)], part.place.position)  # Its marker is gone.
    found = copy.digest(0, 24)
    assert found.damage is None or found.damage.offset >= 0  # Markers take no offset.
    second = read_header(rest)
    assert second is not None
    part.file.pwrite([rest[second.size :] + bytes(first.size + second.size)], part.place.position)
    missing = copy.digest(0, 24).damage
    assert missing is not None and missing.offset == 0 and "offset 2, not 0" in missing.reason


def test_the_answer_ends_after_the_range_that_reaches_the_limit() -> None:
    copy = filled()
    assert len(copy.digest(0, 8, 16, 24, bytes_max=1).ranges) == 1
    assert len(copy.digest(0, 8, 16, 24).ranges) == 3
    assert copy.digest(0, 8, 16, 24, bytes_max=1).ranges == copy.digest(0, 8).ranges


def test_a_pace_that_ends_leaves_only_whole_ranges() -> None:
    copy = Copy()
    for number in range(200):
        copy.append([(b"k", b"%d" % number)])
    stopped = copy.digest(0, 50, 100, 200, pace=lambda _: False)
    assert stopped.damage is None
    assert stopped.ranges == copy.digest(0, 50).ranges


@pytest.mark.parametrize("kind", [DigestKind.RECORDS, DigestKind.LATEST])
def test_a_large_batch_is_decoded_in_small_pieces(kind: DigestKind) -> None:
    copy = Copy(COMPACTED)
    copy.append([(b"k%d" % number, b"v") for number in range(10 * PACE_RECORDS)])
    calls: list[int] = []

    def pace(size: int) -> bool:
        calls.append(size)
        return True

    ranges = ranges_of(0, 10 * PACE_RECORDS, first_markers=False)
    parts = copy.log.parts.find(ranges[0].start, ranges[-1].end)
    if kind is DigestKind.LATEST:
        digest_latest(parts, ranges, share=KeyShare(), keys_max=1_000, pace=pace)
    else:
        digest_contents(parts, ranges, kind=kind, bytes_max=ALL_BYTES, pace=pace)
    assert len(calls) == 10


def test_digests_are_the_same_when_they_come_from_the_disk() -> None:
    copy = filled()
    copy.flush()
    assert copy.digest(0, 24, evicts=True) == copy.digest(0, 24)


def test_records_in_other_batches_have_the_same_digest_of_records() -> None:
    one, other = Copy(), Copy()
    pairs: list[Pair] = [(b"a", b"1"), (None, b"2"), (b"c", None)]
    records = [Record(n, 1_000, *pair) for n, pair in enumerate(pairs)]
    one.put(build_batch(records, epoch=1))
    for n, pair in enumerate(pairs):
        other.put(build_batch([Record(0, 1_000, *pair)], base_offset=n, epoch=1, codec=n))
    assert one.digest(0, 3) != other.digest(0, 3)
    found = [copy.digest(0, 1, 2, 3, kind=DigestKind.RECORDS).ranges for copy in (one, other)]
    assert [one.digest for one in found[0]] == [one.digest for one in found[1]]
    assert [one.records for one in found[0]] == [1, 1, 1]


def test_the_record_that_differs_within_a_batch_is_found() -> None:
    one, other = Copy(), Copy()
    one.append([(b"a", b"1"), (b"b", b"2"), (b"c", b"3")], codec=4)
    other.append([(b"a", b"1"), (b"b", b"X"), (b"c", b"3")], codec=4)
    found = [copy.digest(0, 1, 2, 3, kind=DigestKind.RECORDS).ranges for copy in (one, other)]
    assert [a.digest == b.digest for a, b in zip(*found, strict=True)] == [True, False, True]


# ---- compacted logs ----------------------------------------------------------------------------


def test_a_compacted_log_has_the_digest_of_one_that_was_not_compacted() -> None:
    one, other = filled(COMPACTED), filled(COMPACTED)
    before = one.log.size_bytes()
    one.compact()
    assert one.log.size_bytes() < before
    assert one.digest(0, 24) != other.digest(0, 24)
    bounds = (0, 3, 10, 24)
    assert [each.digest for each in one.latest(*bounds).ranges] == [
        each.digest for each in other.latest(*bounds).ranges
    ]
    assert sum(each.records for each in one.latest(*bounds).ranges) == 3 + 12


def test_a_tombstone_counts_as_its_key_being_gone() -> None:
    one, other = Copy(COMPACTED), Copy(COMPACTED)
    one.append([(b"a", b"1"), (b"b", b"2")])
    other.append([(b"a", b"1"), (b"b", b"2")])
    one.append([(b"a", None)])
    other.append([(b"c", None)])
    assert one.latest(0, 3).ranges[0].records == 1
    assert one.latest(0, 3) != other.latest(0, 3)


def test_what_compaction_may_not_remove_is_missed() -> None:
    one, other = Copy(COMPACTED), Copy(COMPACTED)
    for copy, last in ((one, b"3"), (other, b"X")):
        copy.append([(b"a", b"1")])
        copy.append([(b"b", b"2")])
        copy.append([(b"a", last)])
    found = [copy.latest(0, 1, 2, 3).ranges for copy in (one, other)]
    assert [a.digest == b.digest for a, b in zip(*found, strict=True)] == [True, True, False]


def test_shares_of_keys_add_up_and_bound_the_memory() -> None:
    copy = filled(COMPACTED)
    assert copy.latest(0, 24, keys_max=14).has_too_many_keys
    shares = [copy.latest(0, 24, share=KeyShare(n, 3)).ranges[0] for n in range(3)]
    assert sum(one.records for one in shares) == copy.latest(0, 24).ranges[0].records
    total = sum(int.from_bytes(one.digest, "big") for one in shares) % (1 << 128)
    assert total == int.from_bytes(copy.latest(0, 24).ranges[0].digest, "big")


def test_damage_in_a_compacted_log_gives_no_digests() -> None:
    copy = filled(COMPACTED)
    copy.overwrite(10, flip)
    found = copy.latest(0, 5, 24)
    assert found.ranges == () and found.damage is not None and found.damage.offset == 10


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.lists(
            st.tuples(st.sampled_from([b"a", b"b", b"c", None]), st.sampled_from([b"1", None])),
            min_size=1,
            max_size=4,
        ),
        min_size=1,
        max_size=12,
    ),
    st.sets(st.integers(0, 11)),
    st.integers(1, 40),
)
def test_the_latest_records_are_those_of_a_dictionary(
    batches: list[list[Pair]], compact_after: set[int], split: int
) -> None:
    copy, plain = Copy(COMPACTED), Copy(COMPACTED)
    for number, pairs in enumerate(batches):
        copy.append(pairs)
        plain.append(pairs)
        if number in compact_after:
            copy.compact()
    end = copy.log.end_offset
    bounds = (0, split, end) if split < end else (0, end)
    one, other = copy.latest(*bounds).ranges, plain.latest(*bounds).ranges
    assert [each.digest for each in one] == [each.digest for each in other]
    slices = plain.log.read_records(Offset(0), ALL_BYTES, end)
    table = {record.key: record.value for _, record in decode_batches(slices.bytes())}
    alive = [key for key, value in table.items() if key is not None and value is not None]
    assert sum(each.records for each in one) == len(alive)


def test_a_part_of_a_replaced_segment_can_still_be_read() -> None:
    copy, other = filled(COMPACTED), filled(COMPACTED)
    ranges = ranges_of(0, 24, first_markers=False)
    parts = copy.log.parts.find(Offset(0), Offset(24))
    copy.compact()
    found = digest_contents(
        parts, ranges, kind=DigestKind.BYTES, bytes_max=ALL_BYTES, pace=lambda _: True
    )
    assert found == other.digest(0, 24)
    assert copy.disk.exists(f"{DIRECTORY}/{0:020d}-0-0{LOG}")


def test_the_digest_of_batches_knows_no_marker() -> None:
    """An object in a bucket has the log's batches without its markers."""
    marked, plain = filled(), Copy()
    for part in marked.log.parts.find(Offset(0), Offset(24)):
        data = part.file.pread(part.end, 0)
        for header in iterate_headers(data):
            if not header.is_marker:
                plain.put(bytearray(data[header.position : header.position + header.size]))
    bounds = (0, 6, 12, 18, 24)
    found = marked.digest(*bounds, kind=DigestKind.BATCHES)
    assert found.ranges == plain.digest(*bounds, kind=DigestKind.BATCHES).ranges
    assert [one.markers for one in found.ranges] == [0] * 4
    assert [one.batches for one in found.ranges] == [3] * 4
    marked.overwrite(10, fork)
    changed = marked.digest(*bounds, kind=DigestKind.BATCHES).ranges
    assert [a == b for a, b in zip(found.ranges, changed, strict=True)] == [True, False, True, True]
