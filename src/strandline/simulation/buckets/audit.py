"""Looks at the tier of every partition from outside: what replicas believe, and what buckets have.

Why:    what is only in a bucket is nowhere else.
How:    The replica that has applied most markers speaks for the partition: each state of a
        partition is an earlier or a later one of the same history. Objects are read once.
Owns:   which objects were read, and the latest state of each partition.
Source: decision 0057."""

from collections.abc import Callable, Iterable

from strandline.model.ids import BrokerId, GroupId, Offset
from strandline.records.batch import iterate_headers
from strandline.replication.replica.replica import Replica
from strandline.simulation.buckets.buckets import Range, SimBuckets
from strandline.simulation.clients.values import Values
from strandline.simulation.invariants.checker import Checker
from strandline.simulation.invariants.facts import BucketRead, BucketSeen, LocalLogCut
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.state.tier import TierState


class TierAudit:
    """See the module. `replicas`: those of all living processes that have not failed; `wall_ms`:
    the wall clock of a broker."""

    def __init__(
        self,
        buckets: SimBuckets,
        replicas: Callable[[], Iterable[Replica]],
        values: Values,
        checker: Checker,
        *,
        wall_ms: Callable[[BrokerId], int],
    ) -> None:
        self._buckets = buckets
        self._wall_ms = wall_ms
        self._replicas = replicas
        self._values = values
        self._checker = checker
        self._read: set[tuple[str, str]] = set()
        self._latest: dict[GroupId, TierState] = {}
        self._expired: dict[GroupId, Offset] = {}

    def on_cut(
        self, broker: BrokerId, group: GroupId, start_offset: Offset, expired_before: Offset
    ) -> None:
        """The log of a replica is about to begin at this offset. `expired_before`: the topic's
        total retention takes the records below it, from buckets and logs alike."""
        state = self.freshest(group)
        wanted = self._buckets.buckets
        self._expired[group] = max(expired_before, self._expired.get(group, Offset(0)))
        needed_from = max(state.deleted_before, self._expired[group])
        self._checker.local_log_cut(
            LocalLogCut(
                broker=broker,
                group=group,
                start_offset=start_offset,
                needed_from=needed_from,
                held={name: self._held(name, state) for name in wanted},
            )
        )

    def _held(self, name: str, state: TierState) -> tuple[Range, ...]:
        """What a bucket has, and what was given up there."""
        ranges = self._buckets.ranges(name, state.live(name))
        bucket = state.buckets.get(name)
        given_up = Offset(0) if bucket is None else bucket.retired_before
        if not given_up:
            return ranges
        if ranges and ranges[0][0] <= given_up:
            return (Offset(0), ranges[0][1]), *ranges[1:]
        return (Offset(0), given_up), *ranges

    def audit(self) -> None:
        """Look at all replicas, and read the objects that are new."""
        for replica in self._replicas():
            for name, bucket in replica.tier.state.buckets.items():
                ranges = tuple((one.base_offset, one.end_offset) for one in bucket.live)
                self._checker.bucket_seen(
                    BucketSeen(replica.self_id, replica.group, name, ranges, bucket.end_offset)
                )
                for entry in bucket.live:
                    self._read_once(replica.group, name, entry)

    def pending(self) -> dict[str, int]:
        """{partition: records and objects that its leader has still to see to in some bucket}."""
        found = {}
        for replica in self._replicas():
            if replica.is_serving and replica.log.config.remote_storage:
                end, state = replica.log.closed.end_offset, replica.tier.state
                now_ms = self._wall_ms(replica.self_id)
                count = 0
                for name, stored in self._buckets.buckets.items():
                    if stored.lost:  # It takes uploads once these are put again: minutes later.
                        continue
                    bucket = state.buckets.get(name)
                    # Nothing is wanted below the beginning of the partition.
                    has = max(state.live_end(name), replica.log_start_offset)
                    count += max(0, end - has)
                    if bucket is not None:
                        removals = bucket.removals.values()
                        due = [one for one in removals if one.at_ms <= now_ms]
                        count += len(bucket.intents) + len(due)
                        count += bucket.replacement is not None
                if count:
                    found[replica.name] = count
        return found

    def _read_once(self, group: GroupId, name: str, entry: SegmentEntry) -> None:
        data = self._buckets.data(name, entry)
        if data is None or (name, entry.name) in self._read:
            return
        self._read.add((name, entry.name))
        records = [
            record
            for header in iterate_headers(data)
            for record in self._values.of_batch(data, header)
        ]
        self._checker.bucket_read(
            BucketRead(group, name, entry.base_offset, entry.end_offset, records)
        )

    def freshest(self, group: GroupId) -> TierState:
        """The latest state that any replica has had at such a moment: after a restart of all, it
        takes a while until one has it again."""
        states = [one.tier.state for one in self._replicas() if one.group == group]
        latest = max(states, key=lambda one: one.index, default=TierState())
        known = self._latest.get(group)
        if known is None or known.index < latest.index:
            known = self._latest[group] = TierState.restored(latest.checkpoint())
        return known
