"""A bucket of a cluster that is lost: its controller, exports of partitions, committed offsets."""

from uuid import UUID

from tests.tiered.exports.stores import MemoryStore

from strandline.controller.records import (
    AccessChanged,
    Assignment,
    ClusterNamed,
    ConfigsChanged,
    QuotaSet,
    TopicCreated,
)
from strandline.controller.snapshots import format as snapshot_format
from strandline.controller.snapshots.format import End, Head, frame
from strandline.controller.snapshots.image import capture
from strandline.controller.state import ControllerState
from strandline.model.access import (
    Kind,
    Operation,
    PatternType,
    Permission,
    Rule,
    ScramSecret,
)
from strandline.model.ids import BrokerId, Epoch, GroupId, Index, Offset
from strandline.tiered.cluster import offsets
from strandline.tiered.cluster.names import ClusterNumber, controller_prefix, offsets_prefix
from strandline.tiered.cluster.offsets import GroupOffset, GroupOffsets, OffsetsBody
from strandline.tiered.exports.export import Export
from strandline.tiered.exports.names import ExportNumber
from strandline.tiered.exports.writing import write_export
from strandline.tiered.objects.claim import claim_bucket
from strandline.tiered.objects.store import ObjectStore
from strandline.tiered.segments.entry import SegmentEntry

CLUSTER = "lost"
IDS = {"orders": UUID(int=1), "small": UUID(int=2)}
CONFIGS = {"orders": {"retention.ms": "-1", "min.insync.replicas": "2"}, "small": {}}
SEGMENT = 10
RULE = Rule(
    Kind.TOPIC,
    PatternType.LITERAL,
    "orders",
    "User:alice",
    "*",
    Operation.READ,
    Permission.ALLOW,
)
ACCESS = AccessChanged(
    rules_added=(RULE,),
    quotas=(QuotaSet((("user", "alice"),), {"producer_byte_rate": 5.0}),),
    secrets_set=tuple(
        ScramSecret("alice", one, 4_096, b"salt", b"stored", b"server")
        for one in ("SCRAM-SHA-256", "SCRAM-SHA-512")
    ),
)


async def claim(store: ObjectStore, cluster_id: str = CLUSTER) -> None:
    """The bucket is the cluster's."""
    await claim_bucket(store, bucket="b", cluster_id=cluster_id)


def snapshot(*, offset: int = 9) -> bytes:
    """The controller's state: topics orders, of two partitions, and small, of one."""
    state = ControllerState()
    state.replay(ClusterNamed(CLUSTER))
    group = 0
    for name, count in (("orders", 2), ("small", 1)):
        partitions = []
        for _ in range(count):
            group += 1
            partitions.append(Assignment(GroupId(group), (BrokerId(1),)))
        state.replay(TopicCreated(name, IDS[name], tuple(partitions), CONFIGS[name]))
    state.replay(ConfigsChanged("cluster", "", {"num.partitions": "7"}))
    state.replay(ConfigsChanged("cluster", "", {}, access=ACCESS))
    frames = [snapshot_format.MAGIC, frame(Head(Offset(offset), Epoch(1), CLUSTER, 5))]
    frames += map(frame, capture(state).without_secrets().parts())
    return b"".join([*frames, frame(End(len(frames)))])


async def put_snapshot(store: ObjectStore, *, at_ms: int, offset: int = 9) -> str:
    """One more snapshot of the controller; its name."""
    number = ClusterNumber(Epoch(1), Offset(offset), at_ms)
    name = f"{controller_prefix(CLUSTER)}{number}"
    await store.put(name, [snapshot(offset=offset)])
    return name


async def put_offsets(
    store: ObjectStore, *, at_ms: int, offset: int = 1, **committed: tuple[str, int, int]
) -> None:
    """Committed offsets: group=(topic, partition, offset)."""
    groups = tuple(
        GroupOffsets(group, (GroupOffset(topic, partition, value, -1, "", 1),))
        for group, (topic, partition, value) in committed.items()
    )
    number = ClusterNumber(Epoch(1), Offset(offset), at_ms)
    data = offsets.encode(OffsetsBody(CLUSTER, 0, groups))
    await store.put(f"{offsets_prefix(CLUSTER, 0)}{number}", [data])


def entry(
    base: int, end: int, topic: str = "orders", partition: int = 0, *, attempt: int | None = None
) -> SegmentEntry:
    """A segment of the log."""
    drawn = base if attempt is None else attempt
    return SegmentEntry(
        name=f"{CLUSTER}/{IDS[topic]}/{partition}/{base:020d}-1-{drawn:016x}.segment",
        base_offset=Offset(base),
        end_offset=Offset(end),
        data_bytes=1_000,
        size_bytes=1_200,
        trailer_crc=0,
        max_timestamp=base,
        max_timestamp_offset=Offset(base),
        epochs=((Epoch(1), Offset(base)),),
        digest=bytes(32),
    )


async def put_export(
    store: ObjectStore,
    start: int,
    end: int,
    *,
    at_ms: int,
    high_watermark: int | None = None,
    log_start: int | None = None,
    partition: int = 0,
    topic: str = "orders",
    entries: tuple[SegmentEntry, ...] | None = None,
) -> None:
    """What the bucket has of a partition: the records of [start, end)."""
    live = entries or tuple(
        entry(base, base + SEGMENT, topic, partition) for base in range(start, end, SEGMENT)
    )
    export = Export(
        cluster_id=CLUSTER,
        topic=topic,
        topic_id=IDS[topic],
        partition=partition,
        partition_count=2,
        topic_config={},
        number=ExportNumber(Epoch(1), Index(at_ms), 0),
        written_ms=at_ms,
        high_watermark=Offset(end if high_watermark is None else high_watermark),
        log_start_offset=Offset(start if log_start is None else log_start),
        end_offset=Offset(end),
        live=live,
    )
    await write_export(store, export, (), f"{at_ms:x}")
    for one in live:
        await store.put(one.name, [bytes(one.size_bytes)])


async def lost_bucket() -> MemoryStore:
    """A bucket with a little of everything, written at 100 and at 200."""
    store = MemoryStore()
    await claim(store)
    await put_snapshot(store, at_ms=100, offset=8)
    await put_snapshot(store, at_ms=200)
    await put_export(store, 0, 20, at_ms=100, high_watermark=25)
    await put_export(store, 10, 40, at_ms=200, high_watermark=43, log_start=5)
    await put_export(store, 0, 10, at_ms=100, partition=1)
    await put_offsets(store, at_ms=100, a=("orders", 0, 19), b=("orders", 1, 10))
    await put_offsets(
        store, at_ms=200, offset=2, a=("orders", 0, 42), b=("orders", 1, 10), c=("small", 0, 3)
    )
    return store
