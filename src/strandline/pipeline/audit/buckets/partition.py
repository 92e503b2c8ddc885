"""The audit of what buckets hold of one partition: what to read, and what the answers mean.

How:    plan --> objects, ranges of one sound replica --answers--> conclude --> findings
        The replica stands for all that were found equal to it. A bucket that differs from it is
        named. Below the local logs buckets are compared with each other, and the majority of those
        whose objects have the log's checksums is right; without a majority all are named.
Owns:   the ranges of the partition's objects, and what was said of them.
Source: decision 0052, "Buckets"."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace

from strandline.client.buckets.options import BucketOptions
from strandline.pipeline.audit.buckets.lines import line_faults
from strandline.pipeline.audit.buckets.objects import Fault, ObjectResult, ObjectTask
from strandline.pipeline.audit.buckets.plan import object_ranges, ranges_within
from strandline.pipeline.audit.buckets.tiers import TierView
from strandline.pipeline.audit.comparing import describe, groups_of
from strandline.pipeline.audit.narrowing import Ask, Narrowing
from strandline.pipeline.audit.partitions import PartitionAudit
from strandline.pipeline.audit.planning import plan_ranges, plan_tasks
from strandline.pipeline.audit.results import BucketPart, Finding, FindingKind, Row
from strandline.pipeline.audit.tasks import Bounds, Digest, Holder, Task, TaskResult
from strandline.storage.digests.ranges import DigestKind
from strandline.tiered.segments.entry import SegmentEntry

NARROWED_MAX = 20
"""Differences of one partition that are narrowed down; of others the range is listed."""
LATEST_RANGES_MAX = 200
ObjectKey = tuple[str, str]
"""(bucket, name of an object)."""


class BucketAudit:
    """See the module. `audit`: that of the replicas, which has ended."""

    def __init__(
        self,
        view: TierView,
        audit: PartitionAudit,
        options: BucketOptions,
        *,
        range_bytes: int,
        timeout_ms: int,
    ) -> None:
        self._view = view
        self._audit = audit
        self._options = options
        self._range_bytes = range_bytes
        self._timeout_ms = timeout_ms
        self.result = audit.result
        self._live: dict[str, tuple[SegmentEntry, ...]] = {}
        self._replica: int | None = None
        self._ranges: list[Bounds] = []
        self._digests: dict[Bounds, dict[Holder, Digest]] = {}
        self._answers: dict[ObjectKey, ObjectResult] = {}
        self._found: dict[ObjectKey, Finding] = {}
        self._narrowed_count = 0
        self._is_overtaken = False
        """Whether buckets have grown meanwhile: then logs may have been compacted further."""

    # ---- planning ------------------------------------------------------------------------------

    def plan(self) -> tuple[list[Task], list[ObjectTask]]:
        """What the replica, and what the buckets are asked."""
        result = self.result
        for bucket, entries in sorted(self._view.live.items()):
            if bucket not in self._options.names:
                result.skip_bucket(bucket, "--buckets does not name it")
                continue
            self._live[bucket] = tuple(entries)
            size = sum(one.size_bytes for one in entries)
            span = (entries[0].base_offset, entries[-1].end_offset)
            result.buckets[bucket] = BucketPart(len(entries), size, *span)
        self._replica = self._sound_replica()
        if self._is_compacted:
            return [], self._whole_objects()
        seen = self._audit.replicas.seen
        start = None if self._replica is None else seen[self._replica].log_start
        self._ranges = object_ranges(self._live, replica_start=start, range_bytes=self._range_bytes)
        return self._replica_tasks(), self._whole_objects()

    @property
    def _is_compacted(self) -> bool:
        return self._audit.kind is DigestKind.LATEST

    def _whole_objects(self) -> list[ObjectTask]:
        """Every object, with the ranges that it has."""
        return [
            self._object_task(
                bucket,
                entry,
                DigestKind.BATCHES,
                ranges_within(self._ranges, entry.base_offset, entry.end_offset),
                is_whole=True,
            )
            for bucket, entries in self._live.items()
            for entry in entries
        ]

    def plan_tables(self) -> tuple[list[Task], list[ObjectTask]]:
        """Of a compacted topic, once its objects were read: the tables that buckets make at the
        same end, in each of them and on the replica. None of another topic."""
        if not self._is_compacted or not self._live:
            return [], []
        end = max(entries[-1].end_offset for entries in self._live.values())
        compared: dict[str, tuple[SegmentEntry, ...]] = {}
        for bucket, entries in self._live.items():
            if entries[-1].end_offset < end:
                reason = f"it ends at offset {entries[-1].end_offset}, and others at {end}"
                self.result.skip_bucket(bucket, f"{reason}: compared once it has caught up")
            elif not self._is_damaged(bucket):
                compared[bucket] = entries
        if not compared:
            return [], []
        start = max(entries[0].base_offset for entries in compared.values())
        seen = None if self._replica is None else self._audit.replicas.seen[self._replica]
        cuts = [] if seen is None else [seen.log_start]
        size = max(sum(one.data_bytes for one in entries) for entries in compared.values())
        share = max(self._range_bytes, size // LATEST_RANGES_MAX)
        self._ranges = plan_ranges(start, end, size_bytes=size, cuts=cuts, range_bytes=share)
        tasks: list[Task] = []
        if self._replica is not None and seen is not None and seen.high_watermark >= end:
            ranges = [one for one in self._ranges if seen.log_start <= one[0]]
            if ranges:
                tasks.append(self._audit.task(self._replica, DigestKind.LATEST_RECORDS, ranges))
        return tasks, [self._table_task(bucket, self._ranges) for bucket in compared]

    def _is_damaged(self, bucket: str) -> bool:
        """Whether an object of the bucket has a fault, or was not read."""
        answers = (one for (name, _), one in self._answers.items() if name == bucket)
        return any(one.faults or one.problem for one in answers)

    def _table_task(self, bucket: str, ranges: Sequence[Bounds]) -> ObjectTask:
        first, *rest = self._live[bucket]
        kind = DigestKind.LATEST_RECORDS
        return replace(
            self._object_task(bucket, first, kind, ranges, is_whole=True), rest=tuple(rest)
        )

    def _sound_replica(self) -> int | None:
        """The replica that begins first, of those in which nothing was found; the leader's if
        several do."""
        replicas = self._audit.replicas
        bad = {broker for one in self.result.findings for broker in one.brokers}
        bad |= {one.broker for one in self.result.not_compared} | replicas.problems.keys()
        sound = {one: seen.log_start for one, seen in replicas.seen.items() if one not in bad}
        return min(sound, key=lambda one: (sound[one], one != replicas.leader), default=None)

    def _replica_tasks(self) -> list[Task]:
        if self._replica is None:
            return []
        seen = self._audit.replicas.seen[self._replica]
        start, end = seen.log_start, seen.high_watermark
        ranges = [one for one in self._ranges if start <= one[0] and one[1] <= end]
        groups = plan_tasks(ranges, cuts=(), range_bytes=self._range_bytes)
        return [self._audit.task(self._replica, DigestKind.BATCHES, group) for group in groups]

    def _object_task(
        self,
        bucket: str,
        entry: SegmentEntry,
        kind: DigestKind,
        ranges: Sequence[Bounds],
        *,
        is_whole: bool,
    ) -> ObjectTask:
        one = self.result
        return ObjectTask(
            one.topic,
            one.partition,
            bucket,
            entry,
            kind,
            tuple(ranges),
            self._options,
            self._timeout_ms,
            is_whole=is_whole,
        )

    # ---- answers -------------------------------------------------------------------------------

    def take(self, answer: TaskResult) -> None:
        """Take what the replica says; what it lacks by now is compared among buckets alone."""
        for bounds, digest in answer.digests.items():
            self._digests.setdefault(bounds, {})[answer.task.target.broker] = digest
        if answer.problem:
            self.result.skip(answer.task.target.broker, answer.problem)

    def take_object(self, answer: ObjectResult) -> None:
        """Take what was found in one object."""
        task = answer.task
        if not task.kind.is_latest:
            self._answers[task.bucket, task.entry.name] = answer
        elif answer.problem or answer.faults:
            reason = answer.problem or f"it changed while it was read: {answer.faults[0].reason}"
            self.result.skip_bucket(task.bucket, reason)
        for bounds, digest in answer.digests.items():
            self._digests.setdefault(bounds, {})[task.bucket] = digest

    @property
    def is_doubtful(self) -> bool:
        """Whether the leader's state has to be looked at again before anything is said."""
        return self._has_missing or (self._is_compacted and self._differs)

    @property
    def _differs(self) -> bool:
        return any(self._judge(one, digests)[1] for one, digests in self._digests.items())

    @property
    def _has_missing(self) -> bool:
        """Whether an object lacks records: it may have been retired meanwhile."""
        faults = (each for one in self._answers.values() for each in one.faults)
        return any(one.kind is FindingKind.MISSING for one in faults)

    def keep(self, names: frozenset[ObjectKey], ends: Mapping[str, int]) -> None:
        """These objects are live still, and buckets end here; leave out the others."""
        self._is_overtaken = self._is_compacted and any(
            ends.get(bucket) != entries[-1].end_offset for bucket, entries in self._live.items()
        )
        for key in [one for one in self._answers if one not in names]:
            for bounds in self._answers.pop(key).digests:
                self._digests[bounds].pop(key[0], None)

    # ---- judging -------------------------------------------------------------------------------

    def conclude(self, ask: Ask[Holder]) -> None:
        """Compare, narrow what differs, and add all to the partition's result."""
        if self._is_overtaken:
            for bucket in self._live:
                self.result.skip_bucket(bucket, "compaction went on during the audit; try again")
            self._digests.clear()
        for bounds in self._ranges:
            digests = self._digests.get(bounds, {})
            right, odd = self._judge(bounds, digests)
            self._add_rows(bounds, digests, odd)
            if odd:
                self.result.differing_ranges += 1
            if right is None:
                self._note_tie(bounds, digests, odd, ask)
                continue
            for bucket in odd:
                self._note_odd(bounds, {one: digests[one] for one in (right, bucket)}, right, ask)
        for key, answer in self._answers.items():
            self._note_faults(key, answer)
        for finding in sorted(self._found.values(), key=lambda one: one.offset):
            self.result.find(finding)
        self._note_lines()

    def _judge(
        self, bounds: Bounds, digests: Mapping[Holder, Digest]
    ) -> tuple[Holder | None, list[str]]:
        """(the holder that is right; None without a majority, the buckets that are not)."""
        buckets = [one for one in digests if isinstance(one, str)]
        if self._replica is not None and self._replica in digests:
            right: Holder = self._replica
        else:
            sound: dict[Holder, Digest] = {
                one: digests[one] for one in buckets if not self._is_unlike(one, bounds)
            }
            groups = groups_of(sound or digests)
            if not groups:
                return None, []
            if len(groups) > 1 and len(groups[0]) == len(groups[1]):
                return None, sorted(one for one in buckets if one in (sound or digests))
            right = groups[0][0]
        equal = _content(digests[right])
        return right, sorted(one for one in buckets if _content(digests[one]) != equal)

    def _is_unlike(self, bucket: str, bounds: Bounds) -> bool:
        """Whether the bucket's object is not the one that the log names."""
        answer = self._answers.get(self._key(bucket, bounds))
        return answer is not None and any(not one.is_placed for one in answer.faults)

    def _entry(self, bucket: str, bounds: Bounds) -> SegmentEntry | None:
        """The object that has a range."""
        entries = self._live[bucket]
        at = bisect_right(entries, bounds[0], key=lambda one: one.base_offset) - 1
        return entries[at] if at >= 0 and bounds[0] < entries[at].end_offset else None

    def _key(self, bucket: str, bounds: Bounds) -> ObjectKey:
        """The same for a bucket that has the range."""
        entry = self._entry(bucket, bounds)
        assert entry is not None, (bucket, bounds)
        return bucket, entry.name

    # ---- findings ------------------------------------------------------------------------------

    def _note_odd(
        self,
        bounds: Bounds,
        digests: Mapping[Holder, Digest],
        right: Holder,
        ask: Ask[Holder],
    ) -> None:
        """A bucket that differs from the holder that is right."""
        (bucket,) = (one for one in digests if one != right)
        assert isinstance(bucket, str)
        key = self._key(bucket, bounds)
        if self._is_compacted and any(name == bucket for name, _ in self._found):
            return  # One place of a table is enough: each is looked for in all of it.
        if key not in self._found:
            where, reason = self._narrow(bounds, digests, right, ask)
            if where is not None:
                key = self._key(bucket, where)
                self._found[key] = self._finding(FindingKind.DIFFERENT, where, (key,), reason)

    def _note_tie(
        self,
        bounds: Bounds,
        digests: Mapping[Holder, Digest],
        odd: Sequence[str],
        ask: Ask[Holder],
    ) -> None:
        """Buckets that differ from each other, without a majority."""
        keys = [self._key(one, bounds) for one in odd]
        if not keys or any(key in self._found for key in keys):
            return
        groups = groups_of({one: digests[one] for one in odd})
        pair: dict[Holder, Digest] = {one: digests[one] for one in (groups[0][0], groups[1][0])}
        where, reason = self._narrow(bounds, pair, groups[0][0], ask)
        if where is not None:
            self._found[keys[0]] = self._finding(FindingKind.DIFFERENT, where, keys, reason)

    def _narrow(
        self,
        bounds: Bounds,
        digests: Mapping[Holder, Digest],
        right: Holder,
        ask: Ask[Holder],
    ) -> tuple[Bounds | None, str]:
        """Where two holders differ first, and how; None if they do no more."""
        self._narrowed_count += 1
        if self._narrowed_count > NARROWED_MAX:
            return bounds, f"{describe(digests)} (not narrowed further: too many differences)"
        # The last batch of the range may reach beyond it, and never beyond the last range. A
        # table is that of all ranges that both holders have.
        first = next(
            one for one in self._ranges if digests.keys() <= self._digests.get(one, {}).keys()
        )
        narrowing = Narrowing(ask, leader=right, whole=(first[0], self._ranges[-1][1]))
        kind = DigestKind.LATEST_RECORDS if self._is_compacted else DigestKind.BATCHES
        found = narrowing.narrow(kind, bounds, digests)
        if found.rot or not found.holders:
            reason = f"it differed in [{bounds[0]}, {bounds[1]}), and no more when read again"
            for bucket in digests:
                if isinstance(bucket, str) and bucket != right:
                    self.result.skip_bucket(bucket, reason)
            return None, reason
        problem = f" (not narrowed further: {found.problem})" if found.problem else ""
        return (found.offset, found.end_offset), found.reason + problem

    def _note_faults(self, key: ObjectKey, answer: ObjectResult) -> None:
        """What is wrong with an object by itself: once, at its first place."""
        if answer.problem:
            self.result.skip_bucket(key[0], answer.problem)
        found = self._found.get(key)
        unlike = [one for one in answer.faults if not one.is_placed]
        placed = sorted((one for one in answer.faults if one.is_placed), key=_offset)
        if found is not None and unlike:
            found = replace(found, reason=f"{found.reason}; {unlike[0].reason}")
        elif unlike and not placed:
            one = unlike[0]
            where = (one.offset, one.end_offset)
            found = self._finding(FindingKind.DAMAGED, where, (key,), one.reason)
        if placed and (found is None or placed[0].offset < found.offset):
            one = placed[0]
            reason = one.reason
            if len(placed) > 1:
                more = f"{len(placed) - 1} more places, up to offset {placed[-1].offset}"
                reason = f"{reason} ({more})"
            found = self._finding(one.kind, (one.offset, one.end_offset), (key,), reason)
        if found is not None:
            self._found[key] = found

    def _note_lines(self) -> None:
        starts = [one.log_start for one in self._audit.replicas.seen.values()]
        local_start = min([self._view.local_start, *starts])
        for one in line_faults(self._view, local_start):
            keys = [(bucket, one.object_name) for bucket in one.buckets]
            self.result.find(self._finding(one.kind, one.bounds, keys, one.reason))

    def _finding(
        self, kind: FindingKind, where: Bounds, keys: Sequence[ObjectKey], reason: str
    ) -> Finding:
        one = self.result
        return Finding(
            kind,
            one.topic,
            one.partition,
            *where,
            brokers=(),
            reason=reason,
            buckets=tuple(bucket for bucket, _ in keys),
            object_name=keys[0][1] if len(keys) == 1 else "",
        )

    # ---- rows ----------------------------------------------------------------------------------

    def _add_rows(
        self, bounds: Bounds, digests: Mapping[Holder, Digest], odd: Sequence[str]
    ) -> None:
        for bucket in self._live:
            if self._entry(bucket, bounds) is None:
                continue
            digest = digests.get(bucket)
            if digest is not None:
                status = "different" if bucket in odd else "equal"
            else:
                answer = self._answers.get(self._key(bucket, bounds))
                status = "damaged" if answer is not None and answer.faults else "not compared"
            self.result.rows.append(
                Row(
                    topic=self.result.topic,
                    partition=self.result.partition,
                    start_offset=bounds[0],
                    end_offset=bounds[1],
                    broker=-1,
                    kind="latest" if self._is_compacted else "batches",
                    status=status,
                    records=-1 if digest is None else digest.records,
                    batches=-1 if digest is None else digest.batches,
                    size_bytes=-1 if digest is None else digest.size_bytes,
                    digest="" if digest is None else digest.digest.hex(),
                    bucket=bucket,
                )
            )

    # ---- narrowing -----------------------------------------------------------------------------

    def tasks_for(
        self, kind: DigestKind, ranges: Sequence[Bounds], holders: Sequence[Holder]
    ) -> tuple[list[Task], list[ObjectTask]]:
        """What narrowing asks of these holders."""
        tasks = [self._audit.task(one, kind, ranges) for one in holders if isinstance(one, int)]
        if kind.is_latest:
            return tasks, [self._table_task(one, ranges) for one in holders if isinstance(one, str)]
        objects = [
            self._object_task(one, entry, kind, ranges, is_whole=False)
            for one in holders
            if isinstance(one, str) and (entry := self._entry(one, ranges[0])) is not None
        ]
        return tasks, objects


def _content(digest: Digest) -> tuple[bytes, int]:
    return digest.digest, digest.records


def _offset(fault: Fault) -> int:
    return fault.offset
