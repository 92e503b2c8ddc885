"""What buckets have of a lost cluster at one time, and exactly what is missing.

Why:    the time for surprises is before a restore: every topic, partition and group is listed with
        what comes back of it, and what does not.
How:    the cut:  1. the newest snapshot of the controller not later than the time
                  2. of each partition of its topics, the newest export not later than the time
                  3. the newest committed offsets not later than the time, cut at the logs' ends
        A partition takes the bucket whose objects reach the farthest, of all buckets given. Damaged
        exports are passed over for the next older ones, and named in the notes.
Owns:   nothing.
Source: decision 0063."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from uuid import UUID

from msgspec.structs import replace

from strandline.base.errors import OperatorError
from strandline.client.restore.presence import Range, look, ranges_text
from strandline.controller.names import is_internal
from strandline.controller.snapshots import format as snapshot_format
from strandline.controller.snapshots.format import BadSnapshotError
from strandline.controller.state import ControllerState
from strandline.model.access import QuotaEntity, Rule
from strandline.model.cluster import Topic
from strandline.model.ids import Offset
from strandline.tiered.cluster import names, offsets
from strandline.tiered.cluster.names import ClusterNumber, controller_prefix, offsets_prefix
from strandline.tiered.cluster.offsets import OffsetsBody
from strandline.tiered.exports.export import Export
from strandline.tiered.exports.names import PartitionPlace
from strandline.tiered.exports.reading import list_numbers, read_export
from strandline.tiered.framing import DamagedObjectError
from strandline.tiered.objects.claim import read_claim
from strandline.tiered.objects.store import ObjectAbsentError, ObjectStore
from strandline.tiered.segments.entry import SegmentEntry

NOTHING = Offset(0)
Stores = Mapping[str, ObjectStore]
"""{URL of a bucket: its store}"""


@dataclass(frozen=True, slots=True)
class PlannedPartition:
    """One partition: its records of [start, end) come back. `bucket`: where from; empty if no
    bucket has anything. `missing_count`: records that were acknowledged when the export was
    written, and that no bucket has; more may have come later. `gone`: ranges of the export whose
    objects are deleted, or lost. `oldest_ms`: without an export that is old enough, when the oldest
    one was written; -1 if there is none at all."""

    index: int
    start: Offset = NOTHING
    end: Offset = NOTHING
    bucket: str = ""
    export: Export | None = None
    gone: tuple[Range, ...] = ()
    oldest_ms: int = -1

    @property
    def objects(self) -> tuple[SegmentEntry, ...]:
        """Those that have the records."""
        return () if self.export is None else self.export.live

    @property
    def size_bytes(self) -> int:
        """Of these objects."""
        return sum(one.size_bytes for one in self.objects)

    @property
    def missing_count(self) -> int:
        """See the class."""
        return 0 if self.export is None else max(0, self.export.high_watermark - self.end)

    @property
    def lost_before(self) -> int:
        """Records from the partition's beginning to `start`, which no bucket has."""
        return 0 if self.export is None else max(0, self.start - self.export.log_start_offset)

    @property
    def missing(self) -> str:
        """What does not come back, in words."""
        if self.export is None and self.oldest_ms >= 0:
            return f"all: its oldest export is of {_moment(self.oldest_ms)}"
        if self.export is None:
            return "all: no bucket has anything of it"
        words = []
        if self.lost_before:
            words.append(f"{self.lost_before} before {self.start}")
        if self.missing_count:
            words.append(f"{self.missing_count} from {self.end} on, at least")
        if self.gone:
            words.append(f"deleted or lost objects: {ranges_text(self.gone)}")
        return ", ".join(words) or "none known"


@dataclass(frozen=True, slots=True)
class PlannedTopic:
    """One topic, with the configuration of its own. `id`: in the lost cluster."""

    name: str
    id: UUID
    configs: Mapping[str, str]
    partitions: tuple[PlannedPartition, ...]


@dataclass(frozen=True, slots=True)
class PlannedOffset:
    """A group's committed offset, and the one that is restored: not behind the log's end."""

    group: str
    topic: str
    partition: int
    committed: int
    restored: int
    leader_epoch: int = -1
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """All that a restore would do. `taken`: the snapshot of the controller. `rules`: those of
    access. `users`: they need new passwords, of which buckets have nothing. `quotas`: {entity:
    {key: value}}. `notes`: what was passed over, a line each."""

    cluster_id: str
    taken: ClusterNumber
    cluster_configs: Mapping[str, str]
    topics: tuple[PlannedTopic, ...]
    offsets: tuple[PlannedOffset, ...]
    notes: tuple[str, ...]
    rules: tuple[Rule, ...] = ()
    users: tuple[str, ...] = ()
    quotas: Mapping[QuotaEntity, Mapping[str, float]] = field(default_factory=dict)

    @property
    def lacking(self) -> list[str]:
        """The partitions that lack objects of the cut, or have no export of it any more."""
        return [
            f"{topic.name}-{one.index}"
            for topic in self.topics
            for one in topic.partitions
            if one.gone or one.oldest_ms >= 0
        ]


async def plan_restore(
    stores: Stores, *, as_of_ms: int | None = None, topics: Sequence[str] = ()
) -> RestorePlan:
    """Read the buckets. `topics`: patterns with * and ?; all if there are none. Raises
    OperatorError, StoreError."""
    notes: list[str] = []
    cluster_id = await _cluster_of(stores)
    taken, state = await _controller(stores, cluster_id, as_of_ms, notes)
    wanted = [
        topic
        for topic in state.cluster.topics.values()
        if not is_internal(topic.name)
        and (not topics or any(fnmatchcase(topic.name, one) for one in topics))
    ]
    for pattern in topics:
        if not any(fnmatchcase(one, pattern) for one in state.cluster.topics):
            raise OperatorError(f"no topic of cluster {cluster_id} matches {pattern}")
    planned = [await _topic(stores, cluster_id, topic, as_of_ms, notes) for topic in wanted]
    groups = await _offsets(stores, cluster_id, as_of_ms, notes)
    return RestorePlan(
        cluster_id,
        taken,
        dict(state.cluster.cluster_configs),
        tuple(planned),
        tuple(_cut(groups, planned)),
        tuple(notes),
        tuple(sorted(state.cluster.access.rules)),
        tuple(sorted({user for user, _ in state.cluster.access.secrets})),
        dict(state.cluster.access.quotas),
    )


async def _cluster_of(stores: Stores) -> str:
    """The cluster that has these buckets."""
    found: dict[str, str] = {}
    for url, store in stores.items():
        try:
            found[url] = await read_claim(store)
        except ObjectAbsentError:
            raise OperatorError(
                f"no cluster has claimed {url}: is the prefix right, as in [tiered] buckets?"
            ) from None
    if len(set(found.values())) > 1:
        listed = ", ".join(f"{url} of {one}" for url, one in found.items())
        raise OperatorError(f"the buckets are of several clusters: {listed}")
    return next(iter(found.values()))


def _moment(time_ms: int) -> str:
    """As `--as-of` takes it, rounded up to whole seconds so that it is not before."""
    return f"{datetime.fromtimestamp(-(-time_ms // 1000), UTC):%Y-%m-%dT%H:%M:%SZ}"


async def _controller(
    stores: Stores, cluster_id: str, as_of_ms: int | None, notes: list[str]
) -> tuple[ClusterNumber, ControllerState]:
    prefix = controller_prefix(cluster_id)
    found: dict[ClusterNumber, ObjectStore] = {}
    for store in stores.values():
        for number in await names.list_numbers(store, prefix):
            found[number] = store
    for number in names.before(sorted(found, reverse=True), as_of_ms):
        name = f"{prefix}{number}"
        try:
            head, state = snapshot_format.read(await found[number].get(name))
            if head.cluster_id != cluster_id:
                raise BadSnapshotError(f"it is of cluster {head.cluster_id}")
            return number, state
        except ObjectAbsentError:
            continue
        except BadSnapshotError as error:
            notes.append(f"{name} is damaged, an older one is used: {error}")
    asked = ""
    if as_of_ms is not None:
        asked = " that is as old as that"
        if found:
            asked += f": the oldest is of {_moment(min(one.written_ms for one in found))}"
    raise OperatorError(f"the buckets have no snapshot of the controller of {cluster_id}{asked}")


async def _topic(
    stores: Stores, cluster_id: str, topic: Topic, as_of_ms: int | None, notes: list[str]
) -> PlannedTopic:
    partitions = []
    for index in range(len(topic.partitions)):
        place = PartitionPlace(cluster_id, topic.id, index)
        best = PlannedPartition(index)
        for url, store in stores.items():
            found = await _partition(store, url, place, as_of_ms, notes)
            if found is not None and _rank(found) > _rank(best):
                best = found
        partitions.append(best)
    return PlannedTopic(topic.name, topic.id, dict(topic.configs), tuple(partitions))


def _rank(one: PlannedPartition) -> tuple[bool, int, int, int]:
    """The higher the better: it ends later, then has more, then knows of more."""
    return one.export is not None, one.end, one.end - one.start, one.oldest_ms


async def _partition(
    store: ObjectStore, url: str, place: PartitionPlace, as_of_ms: int | None, notes: list[str]
) -> PlannedPartition | None:
    """What one bucket has of a partition; None if it knows nothing of it."""
    exports = await _exports(store, place, as_of_ms, notes)
    if not exports:
        return None
    newest, chosen = exports[0], exports[-1]
    if as_of_ms is not None and chosen.written_ms > as_of_ms:
        return PlannedPartition(place.partition, oldest_ms=chosen.written_ms)
    present = await look(store, chosen, newest)
    end = present.live[-1].end_offset if present.live else chosen.end_offset
    export = replace(chosen, live=present.live, end_offset=end)
    return PlannedPartition(
        place.partition, export.start_offset, export.end_offset, url, export, present.gone
    )


async def _exports(
    store: ObjectStore, place: PartitionPlace, as_of_ms: int | None, notes: list[str]
) -> list[Export]:
    """Whole exports, from the newest one back to the first that is not later than the time, or to
    the oldest one."""
    found: list[Export] = []
    for number in await list_numbers(store, place):
        try:
            export = (await read_export(store, place, number)).export
        except ObjectAbsentError:
            continue
        except DamagedObjectError as damage:
            notes.append(f"{damage}; an older one is used")
            continue
        found = [*found[:1], export]
        if as_of_ms is None or export.written_ms <= as_of_ms:
            break
    return found


async def _offsets(
    stores: Stores, cluster_id: str, as_of_ms: int | None, notes: list[str]
) -> list[OffsetsBody]:
    """Of each partition of `__consumer_offsets`, what its newest object says."""
    found: dict[int, dict[ClusterNumber, ObjectStore]] = {}
    for store in stores.values():
        for partition, numbers in (await names.list_offsets(store, cluster_id)).items():
            found.setdefault(partition, {}).update(dict.fromkeys(numbers, store))
    bodies = []
    for partition, some in sorted(found.items()):
        for number in names.before(sorted(some, reverse=True), as_of_ms):
            name = f"{offsets_prefix(cluster_id, partition)}{number}"
            try:
                bodies.append(offsets.decode(name, await some[number].get(name)))
                break
            except ObjectAbsentError:
                continue
            except DamagedObjectError as error:
                notes.append(f"{error}; an older one is used")
    return bodies


def _cut(bodies: Sequence[OffsetsBody], topics: Sequence[PlannedTopic]) -> list[PlannedOffset]:
    """The offsets in topics that are restored, none beyond the end of its log."""
    ends = {(one.name, part.index): part.end for one in topics for part in one.partitions}
    return [
        PlannedOffset(
            group.group,
            one.topic,
            one.partition,
            one.offset,
            min(one.offset, ends[one.topic, one.partition]),
            one.leader_epoch,
            one.metadata,
        )
        for body in bodies
        for group in body.groups
        for one in group.offsets
        if (one.topic, one.partition) in ends
    ]
