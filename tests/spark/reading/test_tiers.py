"""One plan says for each offset where it comes from: no gap and no repeat at a seam.

Source: decision 0065."""

from concurrent.futures import Future
from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.client.fake_cluster import FakeCluster
from tests.spark.reading.scene import Scene

from strandline.base.disk import Buffer
from strandline.client.buckets.options import BucketOptions, ReadFrom
from strandline.model.ids import Epoch, Index, Offset
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_tier import (
    NO_TOPIC_ID,
    DescribeTierRequest,
    DescribeTierResponse,
    TierBucketStatus,
    TierPartitionStatus,
)
from strandline.protocol.table import Message
from strandline.spark.reading import split_reading
from strandline.spark.reading.bounds import EARLIEST, LATEST
from strandline.spark.reading.split_reading import AWAY_MS, read_split
from strandline.spark.reading.splits import BROKERS, BUCKETS, Split
from strandline.spark.reading.tiers import (
    BucketClusterReader,
    TierError,
    cluster_reader,
    cut,
    place_splits,
)
from strandline.tiered.objects.store import ObjectAbsentError, StoreError
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.state.commands import BucketImage, Checkpoint
from strandline.tiered.state.encoding import encode


def entries(*edges: int) -> tuple[SegmentEntry, ...]:
    """Live objects between these offsets."""
    return tuple(
        SegmentEntry(
            f"c/t/0/{start}.segment",
            Offset(start),
            Offset(end),
            data_bytes=10,
            size_bytes=20,
            trailer_crc=0,
            max_timestamp=-1,
            max_timestamp_offset=Offset(-1),
            epochs=((Epoch(1), Offset(start)),),
            digest=b"",
        )
        for start, end in pairwise(edges)
    )


EDGES = st.lists(st.integers(0, 60), unique=True, max_size=6).map(sorted)


@given(start=st.integers(0, 60), length=st.integers(1, 60), east=EDGES, west=EDGES)
def test_every_offset_has_one_place_and_its_objects_have_it(
    start: int, length: int, east: list[int], west: list[int]
) -> None:
    split = Split("t", "", 0, start, start + length)
    live = {"east": entries(*east), "west": entries(*west)}
    parts = cut(split, live)
    assert [parts[0].start, *(one.end for one in parts)] == [
        *(one.start for one in parts),
        split.end,
    ]
    for part in parts:
        assert part.start < part.end
        covers = {
            bucket
            for bucket, found in live.items()
            if found and found[0].base_offset <= part.start and part.end <= found[-1].end_offset
        }
        assert part.objects.keys() == covers
        assert part.place == (BUCKETS if covers else BROKERS)
        for found in part.objects.values():
            assert found[0].base_offset <= part.start < found[0].end_offset
            assert found[-1].base_offset < part.end <= found[-1].end_offset


class TieredScene(Scene):
    """Topic `t` of one partition, offsets 0 to 99, the first `tiered` of them in bucket east."""

    def __init__(self, tiered: int = 60, *, start: int = 0) -> None:
        super().__init__()
        self.topic("t")
        self.write("t", 0, 100)
        self.live = entries(start, *range(start + 20, tiered + 1, 20))
        self.cluster.extra["DescribeTier"] = self._describe_tier

    def _describe_tier(self, _: FakeCluster, broker: int, request: Message) -> Message:
        assert isinstance(request, DescribeTierRequest)
        answer = DescribeTierResponse(broker_id=broker)
        if self.cluster.topics["t"][0].leader != broker:
            return answer
        end = self.live[-1].end_offset if self.live else 0
        row = TierPartitionStatus("t", UUID(self.topic_id("t")), 0, leader_epoch=1)
        row.buckets = [TierBucketStatus("east", end_offset=end, object_count=len(self.live))]
        if request.topic_id != NO_TOPIC_ID:
            image = BucketImage("east", self.live, (), (), Offset(end), Offset(0), (0, 0, 0, 0))
            row.state = encode(
                Checkpoint(Index(1), Epoch(1), b"", Offset(0), refused_count=0, buckets=(image,))
            )
        answer.partitions.append(row)
        return answer

    def options(self, read_from: ReadFrom, *urls: str) -> BucketOptions:
        return BucketOptions(read_from, urls or ("east=file:///nowhere/east",))

    def placed(self, options: BucketOptions, start: int = 0, end: int = 100) -> list[Split]:
        splits = [self.split("t", 0, start, end)]
        with self.client() as client:
            return place_splits(client, splits, self.reach(buckets=options))


def test_what_is_tiered_comes_from_the_bucket_and_the_rest_from_brokers() -> None:
    scene = TieredScene()
    first, second = scene.placed(scene.options("auto"), 10)
    assert (first.start, first.end, first.place) == (10, 60, BUCKETS)
    assert [one.base_offset for one in first.objects["east"]] == [0, 20, 40]
    assert (second.start, second.end, second.place, second.objects) == (60, 100, BROKERS, {})


def test_buckets_that_the_query_does_not_name_are_not_read() -> None:
    scene = TieredScene()
    (one,) = scene.placed(scene.options("auto", "west=file:///nowhere/west"))
    assert one.place == BROKERS


def test_offsets_that_no_bucket_has_are_refused_where_only_buckets_may_be_read() -> None:
    scene = TieredScene(start=20)
    with pytest.raises(TierError, match=r"t-0: offsets 5 to 20 are in none of the buckets east"):
        scene.placed(scene.options("bucket"), 5, 60)
    assert [one.place for one in scene.placed(scene.options("bucket"), 20, 60)] == [BUCKETS]


def test_a_leader_that_does_not_say_is_left_to_brokers_or_refused() -> None:
    scene = TieredScene()
    scene.cluster.extra["DescribeTier"] = lambda *_: DescribeTierResponse()
    (one,) = scene.placed(scene.options("auto"))
    assert one.place == BROKERS
    began_ms = scene.transport.monotonic_ms()
    with pytest.raises(TierError, match="t-0: what buckets hold is unknown: its leader knows"):
        scene.placed(scene.options("bucket"))
    assert scene.transport.monotonic_ms() - began_ms > 50_000


def test_a_leader_that_is_not_sure_yet_is_asked_again_where_brokers_cannot_go_on() -> None:
    scene = TieredScene()
    answers = 0

    def settles(cluster: FakeCluster, broker: int, request: Message) -> Message:
        nonlocal answers
        assert isinstance(request, DescribeTierRequest)
        if request.topic_id != NO_TOPIC_ID:
            answers += 1
            if answers <= 5:
                return DescribeTierResponse(error_code=Error.NOT_LEADER_OR_FOLLOWER)
        return scene._describe_tier(cluster, broker, request)

    scene.cluster.extra["DescribeTier"] = settles
    (one,) = scene.placed(scene.options("bucket"), 0, 60)
    assert (one.place, answers) == (BUCKETS, 6)


def test_offsets_that_no_bucket_has_cost_no_look_at_the_state() -> None:
    scene = TieredScene()

    def asked() -> int:
        return [name for _, name in scene.cluster.asked].count("DescribeTier")

    scene.placed(scene.options("auto"), 60, 100)
    assert asked() == len(scene.cluster.brokers)
    scene.placed(scene.options("auto"), 59, 100)
    assert asked() == 2 * len(scene.cluster.brokers) + 1


def test_a_read_of_buckets_alone_ends_where_they_end() -> None:
    scene = TieredScene()
    with scene.client() as client:
        reader = cluster_reader(client, scene.reach(buckets=scene.options("bucket")))
        assert isinstance(reader, BucketClusterReader)
        assert reader.offsets({("t", 0): LATEST}) == {("t", 0): 60}
        assert reader.offsets({("t", 0): EARLIEST}) == {("t", 0): 0}
        scene.live = ()
        assert reader.offsets({("t", 0): LATEST}) == {("t", 0): 0}
        whole = cluster_reader(client, scene.reach(buckets=scene.options("auto")))
        assert whole.offsets({("t", 0): LATEST}) == {("t", 0): 100}


class Store:
    """Stores none of which answers, or that have no object."""

    def __init__(self, error: StoreError) -> None:
        self.error = error
        self.asked = 0

    def get_range(self, *_: object) -> "Future[Buffer]":
        self.asked += 1
        coming = Future[Buffer]()
        coming.set_exception(self.error)
        return coming


@pytest.mark.parametrize(
    ("error", "is_asked_again"), [(StoreError("503"), False), (ObjectAbsentError("404"), True)]
)
def test_brokers_go_on_and_buckets_that_do_not_answer_are_left_alone_for_a_while(
    monkeypatch: pytest.MonkeyPatch, error: StoreError, *, is_asked_again: bool
) -> None:
    scene, store, now_ms = TieredScene(), Store(error), 1_000
    options = scene.options("auto", f"east=file:///nowhere/{type(error).__name__}")
    reach = scene.reach(buckets=options)
    monkeypatch.setattr(split_reading, "monotonic_ms", lambda: now_ms)
    monkeypatch.setattr(split_reading, "stores_of", lambda *_, **__: store)
    client = scene.client()
    monkeypatch.setattr(split_reading, "client_of", lambda _: client)
    first, second = scene.placed(options, 0, 30), scene.placed(options, 30, 60)

    def read(splits: list[Split]) -> list[int]:
        return [
            row["offset"]
            for split in splits
            for batch in read_split(split, reach, ["offset"], fail_on_data_loss=True)
            for row in batch.to_pylist()
        ]

    assert read(first) == list(range(30))
    asked = store.asked
    assert asked > 0
    assert read(second) == list(range(30, 60))
    assert (store.asked > asked) == is_asked_again
    now_ms += AWAY_MS
    asked = store.asked
    assert read(first) == list(range(30))
    assert store.asked > asked
    client.close()
