"""The audit of one partition: what to ask, and what the answers mean.

Why:    partitions have nothing to do with each other; each is planned and judged by itself.
How:    plan --> tasks --answers--> split at damage --> tasks ... --> conclude --> findings
        A compacted partition whose compaction went on meanwhile is planned anew.
Owns:   the ranges of the partition, and what each replica said of them.
Source: decision 0052."""

from collections.abc import Mapping, Sequence

from strandline.pipeline.audit.comparing import odd_holders
from strandline.pipeline.audit.narrowing import Ask, Narrowed, Narrowing
from strandline.pipeline.audit.planning import TASK_BYTES, plan_ranges, plan_tasks
from strandline.pipeline.audit.replicas import Replicas
from strandline.pipeline.audit.results import Finding, FindingKind, PartitionResult, Row
from strandline.pipeline.audit.tasks import Bounds, Digest, Rot, Seen, Task, TaskResult
from strandline.storage.digests.ranges import DigestKind

LATEST_RANGES_MAX = 200
SPLIT_ROUNDS_MAX = 16
"""So many damaged batches in a row of one range are looked behind."""


class PartitionAudit:
    """See the module. `range_bytes`: about how much of a log one digest covers."""

    def __init__(
        self, replicas: Replicas, *, range_bytes: int, timeout_ms: int, from_disk: bool
    ) -> None:
        self.replicas = replicas
        self._range_bytes = range_bytes
        self._timeout_ms = timeout_ms
        self._from_disk = from_disk
        self.kind = DigestKind.BYTES
        self.whole: Bounds = (0, 0)
        self.size_bytes = 0
        """About what one replica has to read."""
        self._cuts: frozenset[int] = frozenset()
        self._ranges: list[Bounds] = []
        self._digests: dict[Bounds, dict[int, Digest]] = {}
        self._damage: dict[Bounds, dict[int, Rot]] = {}
        self._rot: dict[int, dict[int, tuple[int, str]]] = {}
        """{broker: {offset: (where it ends, why)}} of damage."""
        self._rounds = 0
        self.result = self._new_result()

    def _new_result(self) -> PartitionResult:
        one = self.replicas
        return PartitionResult(one.topic, one.partition, "bytes", one.brokers, skew=one.skew)

    @property
    def _comparable(self) -> list[int]:
        """The brokers whose replicas can be asked, up to the end."""
        problems = self.replicas.problems
        return [one for one in sorted(self.replicas.seen) if one not in problems]

    @property
    def _request_bytes(self) -> int:
        """About what a broker reads for one request."""
        if self.kind is DigestKind.LATEST:
            return self.size_bytes
        return min(self.size_bytes, TASK_BYTES + self._range_bytes)

    # ---- planning ------------------------------------------------------------------------------

    def plan(self, end: int) -> list[Task]:
        """The first tasks, for records below `end`."""
        self.result = self._new_result()
        self._digests, self._damage, self._rot, self._rounds = {}, {}, {}, 0
        self._ranges = []
        brokers = self._comparable
        seen = {one: self.replicas.seen[one] for one in brokers}
        if not seen:
            return []
        start = self._start(seen)
        self._note_starts(start)
        if any(one.is_compacted for one in self.replicas.seen.values()):
            self.kind, self.result.kind = DigestKind.LATEST, "latest"
            start = max(start, *(one.log_start for one in seen.values()))
        self.whole = (start, end)
        self.result.start, self.result.end = min(start, end), end
        if start >= end:
            return []
        shares = [
            one.log_bytes * (end - start) / max(one.log_end - one.log_start, end - start)
            for one in seen.values()
        ]
        self.size_bytes = int(max(shares))
        self._cuts = frozenset(one.log_start for one in seen.values()) | {start}
        range_bytes = self._range_bytes
        if self.kind is DigestKind.LATEST:
            range_bytes = max(range_bytes, self.size_bytes // LATEST_RANGES_MAX)
        self._ranges = plan_ranges(
            start, end, size_bytes=self.size_bytes, cuts=self._cuts, range_bytes=range_bytes
        )
        return self._tasks(self._ranges, brokers)

    def _start(self, seen: Mapping[int, Seen]) -> int:
        """Where the partition begins: where its leader's log does if records may expire, else where
        any log does. A leader that begins later then has lost records."""
        leader = seen.get(self.replicas.leader)
        if leader is not None and leader.may_expire:
            return leader.log_start
        return min(one.log_start for one in seen.values())

    def _note_starts(self, start: int) -> None:
        """Note replicas that begin later than the partition."""
        result = self.result
        for broker in self._comparable:
            seen = self.replicas.seen[broker]
            if seen.log_start <= start:
                continue
            if seen.may_expire:
                result.expired[broker] = seen.log_start
                continue
            reason = f"its log begins at offset {seen.log_start}, and no retention is set"
            result.find(self._finding(FindingKind.LOST, (start, seen.log_start), broker, reason))

    def _tasks(self, ranges: Sequence[Bounds], brokers: Sequence[int]) -> list[Task]:
        if self.kind is DigestKind.LATEST:
            groups = [tuple(ranges)] if ranges else []
        else:
            groups = plan_tasks(ranges, cuts=self._cuts, range_bytes=self._range_bytes)
        return [
            self.task(broker, self.kind, group)
            for broker in brokers
            for group in groups
            if group[0][0] >= self.replicas.seen[broker].log_start
        ]

    def task(self, broker: int, kind: DigestKind, ranges: Sequence[Bounds]) -> Task:
        """One request for ranges of this partition."""
        return Task(
            self.replicas.targets[broker],
            kind,
            tuple(ranges),
            self._timeout_ms,
            first_markers=ranges[0][0] not in self._cuts,
            from_disk=self._from_disk,
            size_bytes=self._request_bytes,
        )

    # ---- answers -------------------------------------------------------------------------------

    def take(self, answer: TaskResult) -> None:
        """Take the answer to one task."""
        broker = answer.task.target.broker
        for bounds, digest in answer.digests.items():
            self._digests.setdefault(bounds, {})[broker] = digest
        for bounds, rot in answer.damage.items():
            self._damage.setdefault(bounds, {})[broker] = rot
            self._note_rot(broker, bounds, rot)
        if answer.problem:
            self.result.skip(broker, answer.problem)
        elif answer.seen is not None:
            lacking = [
                one
                for one in answer.task.ranges
                if one not in answer.digests and one not in answer.damage
            ]
            if lacking and not answer.damage:
                self.result.expired[broker] = answer.seen.log_start

    def _note_rot(self, broker: int, bounds: Bounds, rot: Rot) -> None:
        """Note damage. What follows a missing batch looks damaged too, from wherever it is read, so
        only the first place of each replica is listed, and the others counted."""
        end = rot.end_offset if rot.end_offset > rot.offset else max(bounds[1], rot.offset + 1)
        self._rot.setdefault(broker, {})[rot.offset] = (end, rot.reason)

    def more(self) -> list[Task]:
        """Tasks for what lies before and behind damage that was met; none when all is asked."""
        damage, self._damage = self._damage, {}
        self._rounds += 1
        tasks: list[Task] = []
        if self.kind is DigestKind.LATEST or self._rounds > SPLIT_ROUNDS_MAX:
            return tasks
        for bounds, rots in damage.items():
            start, end = bounds
            rot = min(rots.values(), key=lambda one: one.offset)
            at = max(start, rot.offset)
            behind = rot.end_offset if start < rot.end_offset < end else end
            if (at, behind) == bounds:
                continue
            parts = [(start, at), (at, behind), (behind, end)]
            parts = [part for part in parts if part[0] < part[1]]
            brokers = {*rots, *self._digests.pop(bounds, {})}
            self._ranges.remove(bounds)
            self._ranges = sorted([*self._ranges, *parts])
            for part in parts:
                asked = brokers.difference(rots) if part[0] == at else brokers
                tasks += [self.task(broker, self.kind, [part]) for broker in sorted(asked)]
        return tasks

    # ---- judging -------------------------------------------------------------------------------

    @property
    def differs(self) -> bool:
        """Whether any digests differ."""
        return any(odd_holders(one, self.replicas.leader) for one in self._digests.values())

    @property
    def is_overtaken(self) -> bool:
        """Whether compaction of some replica, as it was described last, may have begun meanwhile,
        or may have used records beyond the end: then a difference means nothing."""
        seen = self.replicas.seen.values()
        if self.kind is DigestKind.BYTES:
            return any(one.is_compacted for one in seen)
        return any(one.open_segment > self.whole[1] for one in seen)

    def give_up(self, reason: str) -> None:
        """No replica could be compared, for this reason."""
        for broker in self._comparable:
            self.result.skip(broker, reason)
        self._ranges = []

    def conclude(self, ask: Ask[int]) -> PartitionResult:
        """Compare, and narrow the first difference of each replica."""
        result = self.result
        for broker, problem in self.replicas.problems.items():
            result.skip(broker, problem)
        leader = self.replicas.leader
        narrowing = Narrowing(ask, leader=leader, whole=self.whole)
        for bounds in self._ranges:
            digests = self._digests.get(bounds, {})
            odd = odd_holders(digests, leader)
            right = next((one for broker, one in digests.items() if broker not in odd), None)
            if right is not None:
                result.records += right.records
                result.size_bytes += right.size_bytes
            self._add_rows(bounds, digests, odd)
            if odd:
                result.differing_ranges += 1
                known = {each for one in result.findings for each in one.brokers} | set(self._rot)
                if not known.issuperset(odd):
                    self._note_narrowed(
                        bounds, digests, narrowing.narrow(self.kind, bounds, digests)
                    )
        self._list_rot()
        return result

    def _list_rot(self) -> None:
        """The first damage of each replica."""
        for broker, places in self._rot.items():
            offset, (end, reason) = min(places.items())
            if len(places) > 1:
                reason = f"{reason} ({len(places) - 1} more places, up to offset {max(places)})"
            self.result.find(self._finding(FindingKind.DAMAGED, (offset, end), broker, reason))

    def _note_narrowed(
        self, bounds: Bounds, digests: Mapping[int, Digest], found: Narrowed[int]
    ) -> None:
        for broker, rot in found.rot.items():
            self._note_rot(broker, bounds, rot)
        if found.rot:
            return
        if not found.holders:
            for broker in odd_holders(digests, self.replicas.leader):
                self.result.skip(
                    broker,
                    f"it differed in [{bounds[0]}, {bounds[1]}) and was equal when it was read "
                    "again",
                )
            return
        reason = found.reason
        if found.problem:
            reason = f"{reason} (not narrowed further: {found.problem})"
        one = self.replicas
        where = (found.offset, found.end_offset)
        kind = FindingKind.DIFFERENT
        self.result.find(Finding(kind, one.topic, one.partition, *where, found.holders, reason))

    def _finding(self, kind: FindingKind, where: Bounds, broker: int, reason: str) -> Finding:
        return Finding(
            kind, self.replicas.topic, self.replicas.partition, *where, (broker,), reason
        )

    def _add_rows(self, bounds: Bounds, digests: Mapping[int, Digest], odd: Sequence[int]) -> None:
        for broker in self.replicas.brokers:
            digest = digests.get(broker)
            if digest is not None:
                status = "different" if broker in odd else "equal"
            elif self.result.expired.get(broker, -1) > bounds[0]:
                status = "expired"
            else:
                status = "damaged" if broker in self._rot else "not compared"
            self.result.rows.append(
                Row(
                    topic=self.replicas.topic,
                    partition=self.replicas.partition,
                    start_offset=bounds[0],
                    end_offset=bounds[1],
                    broker=broker,
                    kind=self.result.kind,
                    status=status,
                    records=-1 if digest is None else digest.records,
                    batches=-1 if digest is None else digest.batches,
                    size_bytes=-1 if digest is None else digest.size_bytes,
                    digest="" if digest is None else digest.digest.hex(),
                )
            )
