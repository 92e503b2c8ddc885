"""What must hold of records that leave the brokers' disks for buckets.

Why:    a record that is in no log and in no bucket is lost, whoever has acknowledged it.
Owns:   what has been seen of each group; one set for each run.
Source: decision 0057."""

from itertools import pairwise

from strandline.model.ids import GroupId, Offset
from strandline.simulation.invariants.facts import (
    BucketRead,
    BucketSeen,
    LocalLogCut,
    LogAudited,
    Subject,
)
from strandline.simulation.invariants.invariants import Invariant
from strandline.simulation.invariants.tiers import NothingDeletedBeforeUploaded


class RemovedOnlyIfInEveryBucket(Invariant):
    """A log lets go of its oldest records only once every bucket has them, whole."""

    def on_local_log_cut(self, fact: LocalLogCut) -> None:
        """Each bucket has one run of objects from the needed beginning to the new start."""
        start, end = fact.needed_from, fact.start_offset
        if start >= end:
            return
        for bucket, ranges in fact.held.items():
            if not any(low <= start and end <= high for low, high in ranges):
                raise self.broken(
                    f"group {fact.group}: broker {fact.broker} lets its log begin at {end}; "
                    f"bucket {bucket} has {list(ranges)} of [{start}, {end})",
                    Subject(fact.group, start),
                )


class NoGapNoOverlap(Invariant):
    """The live objects of a bucket lie end to end."""

    def on_bucket_seen(self, fact: BucketSeen) -> None:
        """Each object begins where the one before ends, and the last ends the range."""
        for before, after in pairwise(fact.ranges):
            if before[1] != after[0]:
                raise self.broken(
                    f"group {fact.group}: broker {fact.broker} has live objects of "
                    f"[{before[0]}, {before[1]}) and [{after[0]}, {after[1]}) in {fact.bucket}",
                    Subject(fact.group, before[1]),
                )
        if fact.ranges and fact.ranges[-1][1] != fact.end_offset:
            raise self.broken(
                f"group {fact.group}: the live objects in {fact.bucket} end at "
                f"{fact.ranges[-1][1]}, not at {fact.end_offset}",
                Subject(fact.group, fact.end_offset),
            )


class BucketEqualsLog(Invariant):
    """A bucket has what the log has, record by record."""

    def __init__(self) -> None:
        self._records: dict[GroupId, dict[Offset, bytes]] = {}
        """{group: {offset: the committed record}}"""

    def on_log_audited(self, fact: LogAudited) -> None:
        """What is committed in a log is what buckets have, and the other way round."""
        for batch in fact.batches:
            for offset, value in batch.records:
                if offset < fact.committed_end:
                    self._note(fact.group, offset, value, f"the log of broker {fact.broker}")

    def on_bucket_read(self, fact: BucketRead) -> None:
        """An object has all records of its range, and each is that of the log."""
        where = f"bucket {fact.bucket}"
        due = fact.start
        for offset, value in fact.records:
            if offset != due:
                raise self.broken(
                    f"group {fact.group}: {where} has offset {offset} where {due} was due",
                    Subject(fact.group, due),
                )
            due = Offset(offset + 1)
            self._note(fact.group, offset, value, where)
        if due != fact.end:
            raise self.broken(
                f"group {fact.group}: {where} has records up to {due}, the log says {fact.end}",
                Subject(fact.group, due),
            )

    def _note(self, group: GroupId, offset: Offset, value: bytes, where: str) -> None:
        known = self._records.setdefault(group, {}).setdefault(offset, value)
        if known != value:
            raise self.broken(
                f"group {group}: {where} has {value[:40]!r} at offset {offset}, where "
                f"{known[:40]!r} was",
                Subject(group, offset, values=(known, value)),
            )


def tier_invariants(*, is_tiered: bool) -> list[Invariant]:
    """Those of a run; `is_tiered`: there are buckets, which hold what replicas say."""
    of_buckets = (RemovedOnlyIfInEveryBucket, NoGapNoOverlap, BucketEqualsLog)
    return [NothingDeletedBeforeUploaded(), *(one() for one in of_buckets if is_tiered)]
