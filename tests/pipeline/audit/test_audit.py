"""An audit finds exactly what differs, and calls nothing equal that it could not compare.

Source: docs/decisions/0052-comparing-replicas.md."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pipeline.audit.fake_cluster import FakeCluster, shorten
from tests.storage.digest_world import COMPACTED, CONFIG, Copy, filled, flip, fork

from strandline.model.ids import Offset
from strandline.pipeline.audit.report import render_report
from strandline.pipeline.audit.results import AuditResult, Finding, FindingKind, Verdict
from strandline.pipeline.audit.text import as_json, lines_of
from strandline.records.batch import HEADER_BYTES, iterate_headers, read_header, seal

END = 24


def three(*, config: object = CONFIG) -> FakeCluster:
    return FakeCluster(*(filled(config) for _ in range(3)))  # type: ignore[arg-type]


def only(result: AuditResult) -> Finding:
    assert result.verdict is Verdict.DIFFERENT
    assert len(result.findings) == 1, [one.text for one in result.findings]
    return result.findings[0]


def fork_header(batch: bytearray) -> None:
    """Another producer; the records are the same."""
    batch[52] ^= 1
    header = read_header(batch)
    assert header is not None
    seal(batch, header)


def remove_batch(copy: Copy, offset: int) -> None:
    """Close the gap in the file: the next batch lies where this one was."""
    for part in copy.log.parts.find(Offset(offset), Offset(offset + 1)):
        data = part.file.pread(part.end, 0)
        for header in iterate_headers(data):
            if header.base_offset == offset and not header.is_marker:
                rest = data[header.position + header.size :]
                part.file.pwrite([rest + bytes(header.size)], header.position)
                return
    raise AssertionError(f"no batch begins at {offset}")


def test_equal_replicas_are_equal() -> None:
    cluster = three()
    result = cluster.audit()
    assert result.verdict is Verdict.EQUAL
    (partition,) = result.partitions
    assert (partition.start, partition.end, partition.records) == (0, END, END)
    assert partition.skew == 0 and len(partition.rows) > 6
    assert {row.status for row in partition.rows} == {"equal"}
    assert sum(row.records for row in partition.rows) == 3 * END


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 11), st.integers(1, 3), st.sampled_from([40, 300, 5_000]))
def test_a_fork_is_found_at_its_record_and_replica(
    batch: int, broker: int, range_bytes: int
) -> None:
    cluster = three()
    assume_uncompressed = batch % 5 == 0
    change = fork if assume_uncompressed else fork_header
    cluster.brokers[broker].copy.overwrite(2 * batch, change)
    found = only(cluster.audit(range_bytes=range_bytes))
    assert (found.offset, found.brokers) == (2 * batch, (broker,))
    assert found.kind is FindingKind.DIFFERENT
    assert ("another record" in found.reason) == assume_uncompressed


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 11), st.integers(1, 3), st.sampled_from([40, 300, 5_000]))
def test_a_flipped_bit_is_found_at_its_batch_and_replica(
    batch: int, broker: int, range_bytes: int
) -> None:
    cluster = three()
    cluster.brokers[broker].copy.overwrite(2 * batch, flip)
    result = cluster.audit(range_bytes=range_bytes)
    found = only(result)
    assert (found.kind, found.offset, found.end_offset, found.brokers) == (
        FindingKind.DAMAGED, 2 * batch, 2 * batch + 2, (broker,),
    )  # fmt: skip
    # All the rest was compared.
    rows = [row for row in result.partitions[0].rows if row.broker == broker]
    assert sum(row.records for row in rows if row.status == "equal") == END - 2
    damaged = [(row.start_offset, row.end_offset) for row in rows if row.status == "damaged"]
    assert (damaged[0][0], damaged[-1][1]) == (2 * batch, 2 * batch + 2)


@pytest.mark.parametrize("offset", [0, 4, 12, 18])
def test_a_missing_batch_is_found_at_its_offset(offset: int) -> None:
    cluster = three()
    remove_batch(cluster.brokers[2].copy, offset)
    found = only(cluster.audit())
    assert (found.kind, found.offset, found.brokers) == (FindingKind.DAMAGED, offset, (2,))


def test_damage_on_one_replica_hides_no_difference_on_another() -> None:
    cluster = three()
    cluster.brokers[2].copy.overwrite(10, flip)
    cluster.brokers[3].copy.overwrite(20, fork_header)
    found = {(one.brokers, one.offset, one.kind) for one in cluster.audit().findings}
    assert found == {((2,), 10, FindingKind.DAMAGED), ((3,), 20, FindingKind.DIFFERENT)}


def test_without_a_majority_the_one_that_differs_from_the_leader_is_named() -> None:
    cluster = FakeCluster(filled(), filled())
    cluster.brokers[1].copy.overwrite(10, fork)
    assert only(cluster.audit()).brokers == (2,)


def test_other_entries_of_raft_are_a_difference() -> None:
    with_marker, without = Copy(), Copy()
    for copy in (with_marker, without):
        copy.append([(b"a", b"1")])
    with_marker.mark(1)
    for copy in (with_marker, without):
        copy.append([(b"b", b"2")])
    found = only(FakeCluster(with_marker, without).audit())
    assert found.offset == 1 and found.brokers == (2,)


# ---- what could not be compared ----------------------------------------------------------------


def test_a_silent_broker_makes_the_audit_incomplete_and_is_named() -> None:
    cluster = three()
    cluster.brokers[3].is_silent = True
    result = cluster.audit()
    assert result.verdict is Verdict.INCOMPLETE
    (missed,) = result.not_compared
    assert missed.broker == 3 and "no answer in time" in missed.reason
    assert {row.status for row in result.partitions[0].rows if row.broker == 3} == {"not compared"}


def test_a_broker_that_the_cluster_does_not_list_is_named() -> None:
    cluster = three()
    cluster.down.add(2)
    result = cluster.audit()
    assert result.verdict is Verdict.INCOMPLETE
    assert [(one.broker, "down" in one.reason) for one in result.not_compared] == [(2, True)]


def test_nothing_is_equal_if_nobody_answers() -> None:
    cluster = three()
    for broker in cluster.brokers.values():
        broker.is_silent = True
    result = cluster.audit()
    assert result.verdict is Verdict.INCOMPLETE and len(result.not_compared) == 3


def test_a_difference_outweighs_a_silent_broker() -> None:
    cluster = three()
    cluster.brokers[3].is_silent = True
    cluster.brokers[2].copy.overwrite(10, fork)
    result = cluster.audit()
    assert result.verdict is Verdict.DIFFERENT and len(result.not_compared) == 1


def test_a_replica_that_is_behind_gets_time_and_is_then_named() -> None:
    cluster = three()
    cluster.brokers[2].marks = [10, 10]
    late = cluster.audit(wait_ms=5_000)
    assert late.verdict is Verdict.EQUAL and late.partitions[0].skew == END - 10
    cluster.brokers[2].marks = [10]
    result = cluster.audit(wait_ms=0)
    assert result.verdict is Verdict.INCOMPLETE
    assert "below offset 10" in result.not_compared[0].reason


def test_a_log_that_became_shorter_meanwhile_is_not_compared() -> None:
    cluster = three()
    cluster.brokers[2].marks = [END, 10]
    result = cluster.audit(range_bytes=100_000)
    assert result.verdict is Verdict.INCOMPLETE
    assert "ends at offset 10 now" in result.not_compared[0].reason


# ---- logs that begin later ---------------------------------------------------------------------


def shortened(config: object = CONFIG) -> Copy:
    copy = filled(config)  # type: ignore[arg-type]
    shorten(copy)
    return copy


def test_a_replica_that_expired_earlier_is_equal_and_noted() -> None:
    config = replace(CONFIG, retention_bytes=10_000_000)
    cluster = FakeCluster(filled(config), shortened(config), filled(config))
    result = cluster.audit()
    assert result.verdict is Verdict.EQUAL
    start = cluster.brokers[2].copy.log.start_offset
    assert result.partitions[0].expired == {2: start}
    rows = [row for row in result.partitions[0].rows if row.broker == 2]
    assert {row.status for row in rows if row.end_offset <= start} == {"expired"}
    cluster.brokers[3].copy.overwrite(0, fork)  # Where only two replicas are left.
    assert only(cluster.audit()).brokers == (3,)


def test_the_partition_begins_where_its_leader_does() -> None:
    config = replace(CONFIG, retention_bytes=10_000_000)
    cluster = FakeCluster(shortened(config), filled(config))
    result = cluster.audit()
    assert result.verdict is Verdict.EQUAL
    assert result.partitions[0].start == cluster.brokers[1].copy.log.start_offset


def test_a_log_that_begins_later_without_retention_has_lost_records() -> None:
    found = only(FakeCluster(filled(), shortened(), filled()).audit())
    assert (found.kind, found.offset, found.brokers) == (FindingKind.LOST, 0, (2,))


def test_a_leader_that_begins_later_without_retention_has_lost_records() -> None:
    result = FakeCluster(shortened(), filled(), filled()).audit()
    found = only(result)
    assert (found.kind, found.offset, found.brokers) == (FindingKind.LOST, 0, (1,))
    assert result.partitions[0].start == 0, "the others are compared from their first record on"


@pytest.mark.parametrize("late", [1, 2])
def test_a_deletion_that_reaches_a_replica_during_the_audit_loses_nothing(late: int) -> None:
    cluster = FakeCluster(*(filled() if at == late else shortened() for at in (1, 2, 3)))
    cluster.brokers[late].shortened_from_request = 3
    result = cluster.audit(wait_ms=5_000)
    assert result.verdict is Verdict.EQUAL, result.findings
    assert result.partitions[0].start > 0


# ---- compacted topics --------------------------------------------------------------------------


def test_compacted_replicas_are_equal_whenever_they_were_compacted() -> None:
    cluster = three(config=COMPACTED)
    cluster.brokers[1].copy.compact()
    result = cluster.audit()
    assert result.verdict is Verdict.EQUAL
    assert result.partitions[0].kind == "latest" and result.partitions[0].records == 15


@pytest.mark.parametrize("keys_max", [1_000, 10])
def test_a_key_that_differs_is_found_at_its_offset(keys_max: int) -> None:
    cluster = three(config=COMPACTED)
    cluster.brokers[1].copy.compact()
    for broker in cluster.brokers.values():
        broker.keys_max = keys_max
    last = cluster.brokers[3].copy
    last.overwrite(20, fork)  # Uncompressed; its first record is the last one of its key.
    found = only(cluster.audit())
    assert found.brokers == (3,) and found.offset in (20, 21)
    assert found.kind is FindingKind.DIFFERENT


def test_superseded_records_may_differ() -> None:
    cluster = three(config=COMPACTED)

    def change_first(batch: bytearray) -> None:
        batch[HEADER_BYTES + 12] ^= 1
        header = read_header(batch)
        assert header is not None
        seal(batch, header)

    cluster.brokers[3].copy.overwrite(0, change_first)
    assert cluster.audit().verdict is Verdict.EQUAL


def test_damage_in_a_compacted_log_is_found() -> None:
    cluster = three(config=COMPACTED)
    cluster.brokers[2].copy.overwrite(10, flip)
    found = only(cluster.audit())
    assert (found.kind, found.offset, found.brokers) == (FindingKind.DAMAGED, 10, (2,))


def test_compaction_beyond_the_end_is_no_difference() -> None:
    """The first replica has removed a record for the sake of one that the audit does not see."""
    one, other = Copy(COMPACTED), Copy(COMPACTED)
    for copy in (one, other):
        copy.append([(b"a", b"1")])
        copy.append([(b"b", b"2" * 300)])
    cluster = FakeCluster(one, other)
    old_end = one.log.end_offset
    for copy in (one, other):
        for number in range(12):
            copy.append([(b"a", b"%d" % number * 200)])
    one.compact()
    # At first they seem to end where they ended.
    for broker in cluster.brokers.values():
        broker.marks = [old_end]
    assert cluster.audit().verdict is Verdict.EQUAL
    for broker in cluster.brokers.values():
        broker.marks = [old_end] * 50
    result = cluster.audit()
    assert result.verdict is Verdict.INCOMPLETE
    assert "compaction went on" in result.not_compared[0].reason


def test_a_topic_that_becomes_compacted_meanwhile_is_compared_by_its_last_records() -> None:
    cluster = three(config=COMPACTED)
    for broker in cluster.brokers.values():
        config = broker.copy.log.config
        broker.copy.compact()
        broker.copy.log.config = replace(config, compacted=False)
        broker.compacted_from_request = 3
    uncompacted = filled(COMPACTED)
    uncompacted.log.config = replace(COMPACTED, compacted=False)
    cluster.brokers[2].copy = uncompacted
    result = cluster.audit(range_bytes=100_000)
    assert result.verdict is Verdict.EQUAL, [one.text for one in result.findings]
    assert result.partitions[0].kind == "latest"


# ---- what is told ------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [fork, flip, None])
def test_lines_page_and_json_say_the_same(change: Callable[[bytearray], None] | None) -> None:
    cluster = three()
    if change is not None:
        cluster.brokers[2].copy.overwrite(10, change)
    cluster.brokers[3].is_silent = True
    result = cluster.audit()
    lines, page, told = list(lines_of(result)), render_report(result), as_json(result)
    assert lines[0] in page
    assert json.loads(json.dumps(told))["verdict"] == result.verdict
    for finding in result.findings:
        assert any(finding.text in line for line in lines)
        assert finding.reason in page.replace("&#39;", "'")
    assert any("broker 3" in line for line in lines) and "no answer in time" in page
    assert told["not_compared"] and "Not compared" in page
