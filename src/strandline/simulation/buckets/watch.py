"""Watches what brokers write into buckets and delete there, as it happens.

Why:    an export that goes back, or an object that is deleted too early, is seen at that moment,
        whether a reader comes by or not.
How:    after each export that is written or removed, the newest one is read as it is in truth.
        When a segment is deleted, the newest export and the latest state of the partition say
        whether they count it.
Owns:   the newest exports.
Source: decisions 0057 and 0061."""

from collections.abc import Callable
from functools import partial
from uuid import UUID

from strandline.model.ids import GroupId, Offset
from strandline.simulation.buckets.audit import TierAudit
from strandline.simulation.buckets.buckets import SimBuckets
from strandline.simulation.buckets.truth import TrueStore, run_now
from strandline.simulation.invariants.bucket_facts import (
    BucketCollected,
    NewestExport,
    ObjectDeleted,
)
from strandline.simulation.invariants.checker import Checker
from strandline.tiered.collection.collect import (
    GRACE_MS_MIN,
    Answer,
    Collected,
    UncertainError,
    collect,
)
from strandline.tiered.collection.orphans import Place
from strandline.tiered.exports.export import Export
from strandline.tiered.exports.names import PartitionPlace
from strandline.tiered.exports.reading import read_newest
from strandline.tiered.segments.names import parse_segment_name
from strandline.tiered.state.tier import TierState

GroupOf = Callable[[str], GroupId | None]
"""The scenario's group of a topic's id, as text; None for another topic."""


class BucketWatch:
    """See the module."""

    def __init__(
        self, buckets: SimBuckets, audit: TierAudit, checker: Checker, *, group_of: GroupOf
    ) -> None:
        self._buckets = buckets
        self._audit = audit
        self._checker = checker
        self._group_of = group_of
        self._newest: dict[tuple[str, GroupId], Export | None] = {}
        for name, bucket in buckets.buckets.items():
            bucket.on_put = partial(self._on_put, name)
            bucket.on_deleted = partial(self._on_deleted, name)

    def collect(self, states: dict[GroupId, TierState], *, cluster_id: str, now_ms: int) -> None:
        """Have all orphans deleted, as `strandline tiered gc --delete` does after the grace; every
        leader answers with its state. A group without one keeps its objects."""
        for name, bucket in self._buckets.buckets.items():

            async def ask(place: Place, name: str = name) -> Answer:
                group = self._group_of(str(place.topic_id))
                if group is None:
                    return Answer((), is_topic_gone=True)
                if group not in states:
                    raise UncertainError("its leader does not answer")
                return Answer(_names_in(states[group], name))

            collected = run_now(
                collect(
                    TrueStore(bucket),
                    cluster_id=cluster_id,
                    ask_leader=ask,
                    now_ms=now_ms + 2 * GRACE_MS_MIN,
                    grace_ms=GRACE_MS_MIN,
                    deletes=True,
                )
            )
            for group, state in states.items():
                self._judge_collected(name, group, state, collected)

    def _judge_collected(
        self, name: str, group: GroupId, state: TierState, collected: Collected
    ) -> None:
        """What exports name stays: a late put may bring an object back that is in an older one."""
        bucket, known = self._buckets.buckets[name], _names_in(state, name)
        named = {one.name for one in collected.sorted.exported}
        there = [
            one.name
            for one in bucket.present("")
            if (parsed := parse_segment_name(one.name)) is not None
            and self._group_of(parsed.topic_id) == group
        ]
        self._checker.bucket_fact(
            BucketCollected(
                group,
                name,
                orphans=[one for one in there if one not in known and one not in named],
                needed=[
                    one.name
                    for one in state.live(name)
                    if one.name not in bucket.lost and one.name not in there
                ],
            )
        )

    # ---- as it happens ---------------------------------------------------------------------------

    def _on_put(self, bucket: str, name: str) -> None:
        if "/manifest/" in name:
            self._read_newest(bucket, name)

    def _on_deleted(self, bucket: str, name: str) -> None:
        if "/manifest/" in name:
            self._read_newest(bucket, name)
            return
        parsed = parse_segment_name(name)
        group = None if parsed is None else self._group_of(parsed.topic_id)
        if group is None:
            return
        needed_by = ""
        newest = self._newest.get((bucket, group))
        if newest is not None and newest.has_live(name):
            needed_by = f"export {newest.number}"
        elif any(one.name == name for one in self._audit.freshest(group).live(bucket)):
            needed_by = "the partition's log"
        self._checker.bucket_fact(ObjectDeleted(group, bucket, name, needed_by))

    def _read_newest(self, bucket: str, name: str) -> None:
        cluster_id, topic_id, partition, _, _ = name.split("/")
        group = self._group_of(topic_id)
        if group is None:
            return
        place = PartitionPlace(cluster_id, UUID(topic_id), int(partition))
        stored = self._buckets.buckets[bucket]
        found = run_now(read_newest(TrueStore(stored), place))
        export = self._newest[bucket, group] = None if found is None else found.export
        live = () if export is None else export.live
        self._checker.bucket_fact(
            NewestExport(
                group,
                bucket,
                number=None if export is None else export.number,
                end_offset=Offset(0) if export is None else export.end_offset,
                absent=[
                    one.name
                    for one in live
                    if one.name not in stored.lost and stored.get(one.name) is None
                ],
            )
        )


def _names_in(state: TierState, bucket: str) -> set[str]:
    """All objects that the partition's log has there, or may have."""
    known = state.buckets.get(bucket)
    if known is None:
        return set()
    names = {one.name for one in known.live} | {one.name for one in known.intents}
    if known.replacement is not None:
        names.add(known.replacement.name)
    return names | set(known.removals)
