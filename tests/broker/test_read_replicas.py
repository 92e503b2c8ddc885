"""A topic is served out of another cluster's bucket: its brokers, over a simulated network and a
bucket that a test fills.

Source: decision 0061."""

from collections.abc import Iterator, Sequence
from itertools import count
from uuid import UUID

import pytest
from tests.broker.cluster_world import VOTERS, ClusterWorld, joined

from strandline.config.tiered_section import TieredSection
from strandline.controller.commands import NewTopic
from strandline.model.ids import BrokerId, Epoch, Index, Offset
from strandline.protocol.errors import Error
from strandline.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from strandline.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from strandline.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from strandline.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from strandline.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from strandline.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from strandline.records.batch import iterate_headers
from strandline.records.record import Record, build_batch
from strandline.tiered.exports.export import Export
from strandline.tiered.exports.exporter import Exporter
from strandline.tiered.exports.heads import write_heads
from strandline.tiered.exports.names import ExportNumber, PartitionPlace
from strandline.tiered.objects.claim import claim_bucket
from strandline.tiered.objects.store import ObjectStore
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.segments.writer import SegmentWriter

PATH = "/buckets/east"
URL = f"file://{PATH}"
CLUSTER, TOPIC = "source-cluster", "t"
TOPIC_ID = UUID(int=77)
INTERVAL_MS = 1_000
SECTION = TieredSection(export_interval_ms=INTERVAL_MS)
T0 = 1_700_000_000_000


class Source:
    """Another cluster, of which only the bucket is there."""

    def __init__(self, world: ClusterWorld) -> None:
        self._world = world
        self.bucket = world.other_bucket(PATH)
        self.entries: list[SegmentEntry] = []
        self._numbers = count(10)
        attempts = count()
        self._exporters = {
            one: Exporter(
                self.store,
                PartitionPlace(CLUSTER, TOPIC_ID, one),
                draw_attempt=lambda: f"a{next(attempts)}",
                report=lambda _: None,
                grace_ms=0,
            )
            for one in range(2)
        }
        world.do(1, claim_bucket(self.store, bucket="b", cluster_id=CLUSTER))

    @property
    def store(self) -> ObjectStore:
        from strandline.config.bucket_urls import parse_url

        return self._world.broker(1).services.buckets.open(parse_url(URL))

    def upload(self, base: int, end: int, *, epoch: int) -> None:
        """One object with a record at each offset, at T0 + 1000 * offset."""
        writer = SegmentWriter(Offset(base), Offset(end))
        for at in range(base, end, 2):
            records = [
                Record(one, T0 + 1_000 * (at + one), None, b"%d" % (at + one)) for one in (0, 1)
            ]
            writer.add(bytes(build_batch(records, base_offset=at, epoch=epoch)))
        made = writer.finish(f"{CLUSTER}/{TOPIC_ID}/0/{base}-{epoch}.segment")
        self._world.do(1, self.store.put(made.entry.name, made.parts))
        self.entries.append(made.entry)

    def export(
        self, *, epoch: int, start: int = 0, entries: Sequence[SegmentEntry] | None = None,
        partition_count: int = 1, hint: bool = True,
    ) -> ExportNumber:  # fmt: skip
        """Export the objects, or these; with heads, unless they are late."""
        live = tuple(self.entries if entries is None else entries)
        number = ExportNumber(Epoch(epoch), Index(next(self._numbers)))
        end = live[-1].end_offset if live else Offset(0)
        now_ms = self._world.broker(1).services.clock.wall_ms()
        export = Export(
            cluster_id=CLUSTER, topic=TOPIC, topic_id=TOPIC_ID, partition=0,
            partition_count=partition_count, topic_config={}, number=number, written_ms=now_ms,
            high_watermark=Offset(end + 5), log_start_offset=Offset(start), end_offset=end,
            live=live,
        )  # fmt: skip
        self._world.do(1, self._exporters[0].write(export))
        if hint:
            rows = {(TOPIC_ID, 0): number}
            self._world.do(1, write_heads(self.store, CLUSTER, BrokerId(9), now_ms, rows))
        return number


@pytest.fixture
def world() -> Iterator[ClusterWorld]:
    """Three brokers without a bucket."""
    with joined(ClusterWorld(VOTERS, tiered=SECTION)) as made:
        yield made


@pytest.fixture
def source(world: ClusterWorld) -> Source:
    """Offsets 0 to 20 in two objects, of epochs 2 and 5; and a copy of it."""
    made = Source(world)
    made.upload(0, 10, epoch=2)
    made.upload(10, 20, epoch=5)
    made.export(epoch=5)
    assert create(world).error_code == 0
    world.until(lambda: world.leader_of(TOPIC) > 0)
    until_end(world, 20)
    return made


def create(world: ClusterWorld, url: str = URL, **configs: str) -> object:
    rows = [CreatableTopicConfig("read.replica.of", url)]
    rows += [CreatableTopicConfig(name.replace("_", "."), text) for name, text in configs.items()]
    topic = CreatableTopic(TOPIC, num_partitions=-1, replication_factor=3, configs=rows)
    request = CreateTopicsRequest([topic], timeout_ms=5_000)
    return world.ask(1, request, CreateTopicsResponse, 7).topics[0]


def listed(world: ClusterWorld, when: int, *, at: int = 0) -> ListOffsetsPartitionResponse:
    asked = ListOffsetsTopic(name=TOPIC, partitions=[ListOffsetsPartition(timestamp=when)])
    broker = at or world.leader_of(TOPIC)
    request = ListOffsetsRequest(topics=[asked])
    return world.ask(broker, request, ListOffsetsResponse, 9).topics[0].partitions[0]


def end_of(world: ClusterWorld) -> int:
    return listed(world, -1).offset


def until_end(world: ClusterWorld, end: int) -> None:
    """Until the leader says that the partition ends there."""
    world.until(lambda: end_of(world) == end, every_ms=200)


def fetch(
    world: ClusterWorld, offset: int, *, at: int = 0, epoch: int = -1, wait_ms: int = 2_000
) -> PartitionData:
    asked = FetchPartition(
        fetch_offset=offset, partition_max_bytes=1_000_000, last_fetched_epoch=epoch
    )
    request = FetchRequest(
        topics=[FetchTopic(topic=TOPIC, partitions=[asked])],
        min_bytes=1, max_bytes=1_000_000, max_wait_ms=wait_ms,
    )  # fmt: skip
    answer = world.ask(at or world.leader_of(TOPIC), request, FetchResponse, 12)
    return answer.responses[0].partitions[0]


def batches(data: PartitionData) -> list[tuple[int, int]]:
    """(base offset, epoch) of each batch."""
    assert data.error_code == 0, data
    records = bytes(data.records or b"")
    return [(one.base_offset, one.partition_leader_epoch) for one in iterate_headers(records)]


def read_all(world: ClusterWorld, *, at: int = 0) -> list[tuple[int, int]]:
    offset, found = listed(world, -2).offset, []
    while offset < end_of(world):
        some = batches(fetch(world, offset, at=at))
        assert some
        found += some
        offset = some[-1][0] + 2
    return found


# ---- reading -----------------------------------------------------------------------------------


def test_the_leader_and_followers_serve_the_sources_bytes(
    world: ClusterWorld, source: Source
) -> None:
    expected = [(at, 2 if at < 10 else 5) for at in range(0, 20, 2)]
    assert read_all(world) == expected
    for broker in VOTERS:
        world.until(lambda broker=broker: bool(fetch(world, 0, at=broker).records), every_ms=200)
        assert read_all(world, at=broker) == expected
    data = fetch(world, 4)
    assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (20, 20, 0)


def test_ends_times_and_epochs_are_the_sources(world: ClusterWorld, source: Source) -> None:
    assert (listed(world, -2).offset, listed(world, -2).leader_epoch) == (0, 2)
    assert (listed(world, -1).offset, listed(world, -1).leader_epoch) == (20, 5)
    found = listed(world, T0 + 12_500)
    assert (found.timestamp, found.offset, found.leader_epoch) == (T0 + 13_000, 13, 5)
    assert listed(world, T0 + 99_000).offset == -1
    assert listed(world, -3).offset == 19
    assert epoch_end(world, 2) == (2, 10)
    assert epoch_end(world, 4) == (2, 10)
    assert epoch_end(world, 5) == (5, 20)
    assert epoch_end(world, 7) == (-1, -1)


def epoch_end(world: ClusterWorld, epoch: int) -> tuple[int, int]:
    asked = OffsetForLeaderTopic(TOPIC, [OffsetForLeaderPartition(leader_epoch=epoch)])
    request = OffsetForLeaderEpochRequest(topics=[asked])
    answer = world.ask(world.leader_of(TOPIC), request, OffsetForLeaderEpochResponse, 4)
    found: EpochEndOffset = answer.topics[0].partitions[0]
    assert found.error_code == 0
    return found.leader_epoch, found.end_offset


def test_clients_are_told_no_leader_epoch(world: ClusterWorld, source: Source) -> None:
    """They would compare it with the epochs of records, which are another cluster's."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    answer = world.ask(1, request, MetadataResponse, 9)
    assert answer.topics[0].partitions[0].leader_epoch == -1
    assert answer.topics[0].partitions[0].leader_id > 0


def test_a_fetch_at_the_end_waits_for_the_next_export(world: ClusterWorld, source: Source) -> None:
    pending = world.send(
        world.leader_of(TOPIC),
        FetchRequest(
            topics=[FetchTopic(topic=TOPIC, partitions=[FetchPartition(fetch_offset=20)])],
            min_bytes=1, max_bytes=1_000_000, max_wait_ms=60_000,
        ),
        11,
    )  # fmt: skip
    world.advance(3 * INTERVAL_MS)
    assert not pending.is_answered
    source.upload(20, 30, epoch=6)
    source.export(epoch=6)
    world.until(lambda: pending.is_answered)
    found = pending.answer(FetchResponse).responses[0].partitions[0]
    assert found.high_watermark == 30


def test_retention_at_the_source_moves_the_start(world: ClusterWorld, source: Source) -> None:
    source.export(epoch=5, entries=source.entries[1:], start=10)
    world.until(lambda: listed(world, -2).offset == 10, every_ms=200)
    assert fetch(world, 4).error_code == Error.OFFSET_OUT_OF_RANGE
    assert read_all(world) == [(at, 5) for at in range(10, 20, 2)]


def test_a_restart_and_another_leader_change_nothing(world: ClusterWorld, source: Source) -> None:
    expected = read_all(world)
    for _ in range(2):
        world.hosts[world.leader_of(TOPIC)].kill()
        old = [one for one in VOTERS if not world.hosts[one].is_running]
        world.until(lambda old=old: world.leader_of(TOPIC) not in (0, *old))
        until_end(world, 20)
        assert read_all(world) == expected
        for one in old:
            world.hosts[one].start()
            world.until_started(one)


# ---- a late view, and losses ---------------------------------------------------------------------


def test_a_reader_beyond_a_late_view_waits_and_is_never_reset(
    world: ClusterWorld, source: Source
) -> None:
    """Another broker has served a newer export; no hint names it yet."""
    source.upload(20, 30, epoch=6)
    source.export(epoch=6, hint=False)
    data = fetch(world, 28, epoch=6)
    assert (data.error_code, data.high_watermark) == (0, 30)


def test_a_reader_beyond_the_end_is_told_so_once_that_is_certain(
    world: ClusterWorld, source: Source
) -> None:
    assert fetch(world, 50, wait_ms=5_000).error_code == Error.OFFSET_OUT_OF_RANGE
    leader = world.leader_of(TOPIC)
    other = next(one for one in VOTERS if one != leader)
    world.until(lambda: fetch(world, 50, at=other, wait_ms=0).error_code == 0, every_ms=200)
    data = fetch(world, 50, at=other, wait_ms=5_000)
    assert (data.error_code, data.high_watermark) == (0, 20), "a follower never says so"


def test_after_a_declared_loss_readers_are_told_where_records_differ(
    world: ClusterWorld, source: Source
) -> None:
    later = (1 << 20) + 1
    source.upload(10, 16, epoch=5)
    source.export(epoch=later, entries=[source.entries[0], source.entries[2]])
    until_end(world, 16)
    data = fetch(world, 20, epoch=5, wait_ms=5_000)
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (5, 16)


# ---- failures ------------------------------------------------------------------------------------


def test_a_bucket_that_is_gone_is_served_from_memory_and_reads_are_retried(
    world: ClusterWorld, source: Source
) -> None:
    read_all(world)  # The cache has it now.
    source.bucket.faults.is_gone = True
    world.advance(10 * INTERVAL_MS)
    assert end_of(world) == 20
    assert batches(fetch(world, 0))
    view = next(one for _, one in leader_views(world))
    assert view.failure
    source.bucket.faults.is_gone = False
    world.until(lambda: not next(one for _, one in leader_views(world)).failure)


def leader_views(world: ClusterWorld) -> Iterator[tuple[object, object]]:
    return world.broker(world.leader_of(TOPIC)).services.read_replicas.views  # type: ignore[return-value]


def test_a_stale_copy_is_refused_if_the_topic_says_so(world: ClusterWorld) -> None:
    made = Source(world)
    made.upload(0, 10, epoch=2)
    made.export(epoch=2)
    assert create(world, read_replica_max_staleness_ms="30000").error_code == 0  # type: ignore[attr-defined]
    world.until(lambda: world.leader_of(TOPIC) > 0)
    until_end(world, 10)
    world.advance(60_000)
    assert fetch(world, 0).error_code == Error.KAFKA_STORAGE_ERROR
    assert listed(world, -1).error_code == Error.KAFKA_STORAGE_ERROR
    made.export(epoch=2, start=1)
    world.until(lambda: fetch(world, 2).error_code == 0, every_ms=200)


def test_a_deleted_source_is_no_topic_any_more(world: ClusterWorld, source: Source) -> None:
    names = [one for one in source.bucket.names() if one != "claim.json"]
    world.do(1, source.store.delete(names))
    world.until(
        lambda: fetch(world, 0).error_code == Error.UNKNOWN_TOPIC_OR_PARTITION, every_ms=30_000
    )


def test_partitions_follow_the_source(world: ClusterWorld, source: Source) -> None:
    source.export(epoch=5, partition_count=3)
    cluster = world.broker(1).controller.cluster
    world.until(lambda: len(cluster.topics[TOPIC].partitions) == 3)


# ---- what is refused -----------------------------------------------------------------------------


def test_produce_is_refused_for_good(world: ClusterWorld, source: Source) -> None:
    batch = build_batch([Record(0, 0, None, b"x")])
    data = PartitionProduceData(0, memoryview(bytearray(batch)))
    request = ProduceRequest(
        acks=-1, timeout_ms=1_000, topic_data=[TopicProduceData(TOPIC, partition_data=[data])]
    )
    answer = world.ask(world.leader_of(TOPIC), request, ProduceResponse, 9)
    found = answer.responses[0].partition_responses[0]
    assert found.error_code == Error.POLICY_VIOLATION
    assert found.error_message is not None and "write to its source" in found.error_message


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("file:///buckets/none", "has no tiered storage of a cluster"),
        (f"{URL}#other/t", "is of cluster source-cluster, not of other"),
        (f"{URL}#trains", "has no topic trains of cluster source-cluster"),
        ("file://nowhere", "must name a directory"),
    ],
)
def test_a_source_that_is_not_there_is_refused(world: ClusterWorld, url: str, told: str) -> None:
    made = Source(world)
    made.upload(0, 10, epoch=2)
    made.export(epoch=2)
    result = create(world, url)
    assert result.error_code == Error.INVALID_CONFIG  # type: ignore[attr-defined]
    assert told in (result.error_message or "")  # type: ignore[attr-defined]


def test_a_bucket_that_does_not_answer_refuses_the_topic(world: ClusterWorld) -> None:
    made = Source(world)
    made.bucket.faults.is_gone = True
    result = create(world)
    assert result.error_code == Error.KAFKA_STORAGE_ERROR  # type: ignore[attr-defined]


def test_a_client_that_names_no_source_id_gets_the_buckets(
    world: ClusterWorld, source: Source
) -> None:
    configs = world.broker(1).controller.cluster.topics[TOPIC].configs
    assert configs["read.replica.of"] == f"{URL}#{CLUSTER}/{TOPIC}"
    assert configs["read.replica.source.id"] == f"{CLUSTER}/{TOPIC_ID}"
    assert NewTopic(name="x").configs == ()
