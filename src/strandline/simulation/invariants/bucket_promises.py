"""What must hold of exports, of deletions in buckets, and of copies that another cluster serves.

Why:    a copy, a restore and a declared loss know a partition by its bucket alone.
Owns:   what has been seen of each group; one set for each run.
Source: decisions 0057, 0058 and 0061."""

from strandline.model.ids import GroupId, Offset, grant_of
from strandline.simulation.invariants.bucket_facts import (
    BucketCollected,
    BucketFact,
    CopyRead,
    CopySeen,
    NewestExport,
    ObjectDeleted,
)
from strandline.simulation.invariants.facts import LogAudited, MarksMoved, Subject
from strandline.simulation.invariants.invariants import Invariant


class ExportNeverGoesBack(Invariant):
    """The newest export of a bucket is never a lower one than before. Within one past of the log it
    never ends earlier, and all objects that it counts are there."""

    def __init__(self) -> None:
        self._newest: dict[tuple[GroupId, str], NewestExport] = {}

    def on_bucket_fact(self, fact: BucketFact) -> None:
        """Compare with the one before."""
        if not isinstance(fact, NewestExport):
            return
        before = self._newest.get((fact.group, fact.bucket))
        self._newest[fact.group, fact.bucket] = fact
        where = f"group {fact.group}: bucket {fact.bucket}"
        if fact.absent:
            raise self.broken(
                f"{where}: export {fact.number} counts {fact.absent[0]}, which is not there",
                Subject(fact.group),
            )
        if before is None or before.number is None:
            return
        if fact.number is None or fact.number < before.number:
            raise self.broken(
                f"{where}: the newest export is {fact.number}, and it was {before.number}",
                Subject(fact.group),
            )
        is_same_past = grant_of(fact.number.epoch) == grant_of(before.number.epoch)
        if is_same_past and fact.end_offset < before.end_offset:
            raise self.broken(
                f"{where}: export {fact.number} ends at {fact.end_offset}, and {before.number} at "
                f"{before.end_offset}",
                Subject(fact.group, fact.end_offset),
            )


class NothingNeededIsDeleted(Invariant):
    """No object is deleted that the log or the newest export counts."""

    def on_bucket_fact(self, fact: BucketFact) -> None:
        """Brokers' deletions, and the collector's."""
        if isinstance(fact, ObjectDeleted) and fact.needed_by:
            raise self.broken(
                f"group {fact.group}: bucket {fact.bucket}: {fact.name} is deleted, and "
                f"{fact.needed_by} counts it",
                Subject(fact.group),
            )


class NoOrphanAfterCollection(Invariant):
    """A collector leaves nothing that no log knows, and takes nothing that a log counts."""

    def on_bucket_fact(self, fact: BucketFact) -> None:
        """At the end of a run."""
        if not isinstance(fact, BucketCollected):
            return
        where = f"group {fact.group}: bucket {fact.bucket}"
        if fact.orphans:
            raise self.broken(
                f"{where}: {len(fact.orphans)} objects are left that nothing knows, as "
                f"{fact.orphans[0]}",
                Subject(fact.group),
            )
        if fact.needed:
            raise self.broken(
                f"{where}: {len(fact.needed)} objects are gone that the log counts, as "
                f"{fact.needed[0]}",
                Subject(fact.group),
            )


class ReadReplicaIsPrefix(Invariant):
    """A copy shows committed records only, those of the log, and never less than before."""

    def __init__(self) -> None:
        self._seen: dict[tuple[GroupId, str], CopySeen] = {}
        self._shown: dict[GroupId, Offset] = {}
        """{group: the greatest high watermark of any replica of the source}"""
        self._records: dict[GroupId, dict[Offset, bytes]] = {}
        """{group: {offset: the committed record}}"""

    def on_marks_moved(self, fact: MarksMoved) -> None:
        """Remember how much the source has shown."""
        shown = self._shown.get(fact.group, Offset(0))
        self._shown[fact.group] = max(shown, fact.high_watermark)

    def on_log_audited(self, fact: LogAudited) -> None:
        """Remember what is committed."""
        known = self._records.setdefault(fact.group, {})
        for batch in fact.batches:
            for offset, value in batch.records:
                if offset < fact.committed_end:
                    self._compare(fact.group, offset, known.setdefault(offset, value), value)

    def on_bucket_fact(self, fact: BucketFact) -> None:
        """What a copy serves."""
        if isinstance(fact, CopySeen):
            self._see(fact)
        elif isinstance(fact, CopyRead):
            known = self._records.setdefault(fact.group, {})
            due = fact.position
            for offset, value in fact.records:
                if offset != due:
                    raise self.broken(
                        f"group {fact.group}: the copy of bucket {fact.bucket} has offset "
                        f"{offset} where {due} was due",
                        Subject(fact.group, due),
                    )
                due = Offset(offset + 1)
                self._compare(fact.group, offset, known.setdefault(offset, value), value)

    def _see(self, fact: CopySeen) -> None:
        before = self._seen.get((fact.group, fact.bucket), fact)
        self._seen[fact.group, fact.bucket] = fact
        what = f"group {fact.group}: the copy of bucket {fact.bucket} serves export {fact.number}"
        if fact.number < before.number:
            raise self.broken(f"{what}, and served {before.number}", Subject(fact.group))
        shown = self._shown.get(fact.group, Offset(0))
        if fact.end > shown:
            raise self.broken(
                f"{what} up to {fact.end}; no replica of the source has shown more than {shown}",
                Subject(fact.group, fact.end),
            )
        is_same_past = grant_of(fact.number.epoch) == grant_of(before.number.epoch)
        if is_same_past and fact.end < before.end:
            raise self.broken(
                f"{what} up to {fact.end}, and it was up to {before.end}",
                Subject(fact.group, fact.end),
            )

    def _compare(self, group: GroupId, offset: Offset, known: bytes, value: bytes) -> None:
        if known != value:
            raise self.broken(
                f"group {group}: {value[:40]!r} is at offset {offset}, where {known[:40]!r} was",
                Subject(group, offset, values=(known, value)),
            )


def bucket_invariants(*, is_tiered: bool) -> list[Invariant]:
    """Those of a run; `is_tiered`: there are buckets."""
    promises = (
        ExportNeverGoesBack,
        NothingNeededIsDeleted,
        NoOrphanAfterCollection,
        ReadReplicaIsPrefix,
    )
    return [one() for one in promises if is_tiered]
