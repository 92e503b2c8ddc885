"""Each promise about exports, deletions in buckets and copies is broken by hand, and holds else."""

import pytest

from strandline.model.ids import BrokerId, Epoch, GroupId, Index, Offset
from strandline.simulation.invariants.bucket_facts import (
    BucketCollected,
    BucketFact,
    CopyRead,
    CopySeen,
    NewestExport,
    ObjectDeleted,
)
from strandline.simulation.invariants.bucket_promises import bucket_invariants
from strandline.simulation.invariants.facts import MarksMoved
from strandline.simulation.invariants.invariants import InvariantError
from strandline.tiered.exports.names import ExportNumber

GROUP = GroupId(1)


def number(epoch: int, index: int) -> ExportNumber:
    return ExportNumber(Epoch(epoch), Index(index))


def newest(one: ExportNumber | None, end: int, absent: tuple[str, ...] = ()) -> NewestExport:
    return NewestExport(GROUP, "east", one, Offset(end), absent)


def seen(one: ExportNumber, end: int) -> CopySeen:
    return CopySeen(GROUP, "east", one, Offset(0), Offset(end))


def read(*records: tuple[int, bytes]) -> CopyRead:
    return CopyRead(GROUP, "east", Offset(0), [(Offset(at), value) for at, value in records])


def broken_by(*facts: BucketFact) -> str:
    """The promise that these facts break; empty for none. The source has shown ten records."""
    promises = bucket_invariants(is_tiered=True)
    shown = MarksMoved(BrokerId(1), 1, GROUP, Epoch(1), Index(12), Epoch(1), Offset(10), Offset(10))
    try:
        for one in promises:
            one.on_marks_moved(shown)
            for fact in facts:
                one.on_bucket_fact(fact)
    except InvariantError as error:
        return str(error).partition(":")[0]
    return ""


@pytest.mark.parametrize(
    ("promise", "facts"),
    [
        ("", (newest(number(1, 5), 4), newest(number(1, 9), 8))),
        ("", (newest(number(1, 9), 8), newest(number((1 << 20) + 1, 3), 4))),
        ("ExportNeverGoesBack", (newest(number(1, 9), 8), newest(number(1, 5), 8))),
        ("ExportNeverGoesBack", (newest(number(1, 5), 8), newest(number(1, 9), 4))),
        ("ExportNeverGoesBack", (newest(number(1, 5), 8), newest(None, 0))),
        ("ExportNeverGoesBack", (newest(number(1, 5), 8, ("a",)),)),
        ("", (ObjectDeleted(GROUP, "east", "a", ""),)),
        ("NothingNeededIsDeleted", (ObjectDeleted(GROUP, "east", "a", "the log"),)),
        ("", (BucketCollected(GROUP, "east", [], []),)),
        ("NoOrphanAfterCollection", (BucketCollected(GROUP, "east", ["a"], []),)),
        ("NoOrphanAfterCollection", (BucketCollected(GROUP, "east", [], ["a"]),)),
        ("", (seen(number(1, 5), 4), seen(number(1, 9), 10))),
        ("ReadReplicaIsPrefix", (seen(number(1, 9), 8), seen(number(1, 5), 8))),
        ("ReadReplicaIsPrefix", (seen(number(1, 5), 8), seen(number(1, 9), 4))),
        ("ReadReplicaIsPrefix", (seen(number(1, 5), 11),)),
        ("", (read((0, b"a"), (1, b"b")), read((0, b"a")))),
        ("ReadReplicaIsPrefix", (read((0, b"a"), (2, b"b")),)),
        ("ReadReplicaIsPrefix", (read((0, b"a")), read((0, b"b")))),
    ],
)
def test_a_promise_is_broken_by_what_it_forbids(
    promise: str, facts: tuple[BucketFact, ...]
) -> None:
    assert broken_by(*facts) == promise
