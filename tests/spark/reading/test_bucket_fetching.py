"""A split out of buckets: every record once, whatever the buckets do.

Source: decision 0065."""

import asyncio
import pickle
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tiered.objects.s3_server import make_bucket, s3_server
from tests.tiered.reading.reading_world import (
    Buckets,
    FaultyStore,
    absent,
    fail,
    flip,
    halve,
)

from strandline.base.disk import Buffer
from strandline.base.errors import OperatorError
from strandline.client.buckets.options import bucket_options
from strandline.client.buckets.stores import BucketStores
from strandline.config.bucket_urls import parse_bucket
from strandline.model.ids import Epoch, Offset
from strandline.records.cleaning import filler
from strandline.records.record import Record, build_batch
from strandline.spark.reading import bucket_fetching
from strandline.spark.reading.bucket_fetching import BucketFetcher, BucketsFailedError, Patience
from strandline.spark.reading.split_reading import decode_fetched
from strandline.spark.reading.splits import BUCKETS, Split
from strandline.tiered.objects.credentials import CredentialsFile
from strandline.tiered.objects.opening import open_store
from strandline.tiered.objects.store import ObjectAbsentError, StoreError


@dataclass
class Scene:
    """Two buckets that cut the same log into other objects."""

    count: int = 200
    per_batch: int = 7
    codec: int = 0
    world: Buckets = field(default_factory=Buckets)
    slept_ms: int = 0

    def __post_init__(self) -> None:
        batches = [self._batch(base) for base in range(0, self.count, self.per_batch)]
        for bucket, size in (("east", 9), ("west", 13)):
            for at in range(0, len(batches), size):
                self.world.put(bucket, batches[at : at + size])

    def _batch(self, base: int) -> bytes:
        offsets = range(base, min(base + self.per_batch, self.count))
        records = [Record(n - base, 1_000 + n, b"%d" % n, b"v" * 90) for n in offsets]
        return bytes(build_batch(records, base_offset=base, codec=self.codec))

    def split(self, start: int, end: int) -> Split:
        objects = {
            bucket: tuple(one for one in found if one.base_offset < end and one.end_offset > start)
            for bucket, found in self.world.entries.items()
        }
        return Split("t", "", 0, start, end, BUCKETS, objects)

    def store(self, bucket: str) -> FaultyStore:
        return self.world.stores[bucket]

    def get_range(self, bucket: str, name: str, start: int, end: int) -> "Future[Buffer]":
        coming, store = Future[Buffer](), self.store(bucket)
        store.calls.append((name, start, end))
        try:
            change = store.fault(name, start, end)
            data = store.objects[name][start:end]
            coming.set_result(change(data) if change else data)
        except StoreError as error:
            coming.set_exception(error)
        return coming

    def sleep(self, ms: int) -> None:
        self.slept_ms += ms

    def read(
        self, split: Split, buckets: Sequence[str] = ("east", "west"), *, stall_ms: int = 0
    ) -> list[int]:
        """The keys and offsets of all rows, which are equal."""
        patience = Patience(stall_ms, lambda: self.slept_ms, self.sleep)
        fetcher = BucketFetcher(
            split, buckets, self.get_range, patience=patience, read_committed=True
        )
        offsets: list[int] = []
        try:
            for fetched in fetcher:
                for part in decode_fetched(fetched, split, ["offset", "key"]):
                    rows = part.to_pylist()
                    assert all(int(row["key"]) == row["offset"] for row in rows)
                    offsets += [row["offset"] for row in rows]
        finally:
            self.position = fetcher.position
        return offsets


SCENES = {codec: Scene(codec=codec) for codec in (0, 4)}


@given(start=st.integers(0, 199), length=st.integers(1, 200), codec=st.sampled_from([0, 4]))
def test_exactly_the_offsets_of_a_split_come(start: int, length: int, codec: int) -> None:
    end = min(start + length, 200)
    scene = SCENES[codec]
    assert scene.read(scene.split(start, end)) == list(range(start, end))
    assert not scene.store("west").calls


@pytest.mark.parametrize("range_bytes", [1, 2_048, 1 << 20])
def test_batches_that_cross_ranges_are_put_together(
    monkeypatch: pytest.MonkeyPatch, range_bytes: int
) -> None:
    monkeypatch.setattr(bucket_fetching, "RANGE_BYTES_MAX", range_bytes)
    scene = Scene(per_batch=40)
    assert scene.read(scene.split(3, 197)) == list(range(3, 197))


def test_a_split_reads_little_more_than_its_bytes() -> None:
    scene = Scene()
    scene.read(scene.split(70, 77))
    (entry,) = scene.split(70, 77).objects["east"]
    trailer, *records = scene.store("east").calls
    assert trailer == (entry.name, entry.data_bytes, entry.size_bytes)
    assert sum(end - start for _, start, end in records) < entry.data_bytes / 2


@pytest.mark.parametrize("fault", [fail, absent, flip, halve])
@pytest.mark.parametrize("at", [0, 1, 2, 5])
def test_another_bucket_goes_on_at_the_next_offset(fault: object, at: int) -> None:
    """The bucket fails from its request number `at` on: trailers and records alike."""
    scene = Scene()
    east = scene.store("east")

    def from_then_on(*place: object) -> object:
        return fault(*place) if len(east.calls) > at else None  # type: ignore[operator]

    east.fault = from_then_on  # type: ignore[assignment]
    assert scene.read(scene.split(5, 200)) == list(range(5, 200))
    assert scene.store("west").calls


def test_without_patience_it_gives_up_where_brokers_can_go_on() -> None:
    scene = Scene()
    east = scene.store("east")
    east.fault = lambda *_: fail() if len(east.calls) > 3 else None  # type: ignore[func-returns-value]
    scene.store("west").fault = absent
    with pytest.raises(BucketsFailedError, match=r"t-0: no bucket gives offsets \d+ to 200: .*404"):
        scene.read(scene.split(0, 200))
    assert scene.slept_ms == 0
    assert 0 < scene.position < 200


def test_with_patience_it_waits_for_a_bucket_that_is_away_for_a_moment() -> None:
    scene = Scene()
    scene.store("west").fault = absent
    scene.store("east").fault = lambda *_: fail() if scene.slept_ms < 1_000 else None  # type: ignore[func-returns-value]
    assert scene.read(scene.split(0, 200), stall_ms=5_000) == list(range(200))
    assert scene.slept_ms >= 1_000


def test_patience_ends_and_an_object_that_is_gone_is_not_waited_for() -> None:
    scene = Scene()
    scene.store("east").fault = fail
    with pytest.raises(BucketsFailedError, match="503"):
        scene.read(scene.split(0, 200), ["east"], stall_ms=5_000)
    assert scene.slept_ms >= 5_000
    scene.slept_ms = 0
    scene.store("east").fault = absent
    with pytest.raises(BucketsFailedError, match="404"):
        scene.read(scene.split(0, 200), ["east"], stall_ms=5_000)
    assert scene.slept_ms == 0


def test_a_bucket_that_comes_back_gives_each_record_once() -> None:
    """Both buckets fail one time in five, anywhere in the split."""
    scene, draw = Scene(), Random(7)

    def now_and_then(*_: object) -> None:
        if draw.random() < 0.2:
            fail()

    for bucket in ("east", "west"):
        scene.store(bucket).fault = now_and_then
    assert scene.read(scene.split(0, 200), stall_ms=60_000) == list(range(200))


def _compacted(scene: Scene, bucket: str, *, every: int, first: int) -> None:
    """Put the log into a bucket with only each so-manieth batch, as compaction leaves it."""
    bases = range(0, scene.count, scene.per_batch)
    batches = [
        scene._batch(base)
        if at % every == first or base == bases[-1]
        else bytes(filler(Offset(base), Offset(base + scene.per_batch), Epoch(0)))
        for at, base in enumerate(bases)
    ]
    scene.world.entries[bucket].clear()
    for at in range(0, len(batches), 4):
        scene.world.put(bucket, batches[at : at + 4])


@pytest.mark.parametrize("at", range(8))
def test_buckets_that_are_compacted_differently_give_what_both_have(at: int) -> None:
    """The nearest one fails at its request number `at`: the other goes on, inside of a gap."""
    scene = Scene(count=196)
    _compacted(scene, "east", every=4, first=0)
    _compacted(scene, "west", every=2, first=0)
    east = scene.store("east")
    east.fault = lambda *_: fail() if len(east.calls) == at + 1 else None  # type: ignore[func-returns-value]
    found = scene.read(scene.split(5, 196))
    assert found == sorted(set(found))
    for base in range(0, 196, 28):
        assert set(range(max(base, 5), base + 7)) <= set(found)
    assert all(one // 7 % 2 == 0 or one >= 189 for one in found)


def test_compaction_may_leave_no_record_at_the_end_of_an_object() -> None:
    scene = Scene(count=20)
    east = scene.world
    east.entries["east"].clear()
    east.put("east", [scene._batch(0)], end=50)
    east.put("east", [bytes(build_batch([Record(0, 1, b"50")], base_offset=50))], end=70)
    assert scene.read(scene.split(0, 70), ["east"]) == [*range(7), 50]


def test_executors_open_s3_by_their_own_credentials(tmp_path: Path) -> None:
    content = bytes(range(256)) * 4
    file = tmp_path / "credentials.toml"
    file.write_text('[east]\naccess_key_id = "key-7391"\nsecret_access_key = "word-8254"\n')
    file.chmod(0o600)
    with s3_server() as port:
        make_bucket(port, "logs")
        place = f"east=s3://logs/kept?region=us-east-1&endpoint=http://127.0.0.1:{port}"
        store = open_store(parse_bucket(place), credentials=CredentialsFile(str(file)))
        asyncio.run(store.put("c/object", [content]))
        options = bucket_options("auto", place, str(file))
        assert options is not None
        # What travels to executors has no secret.
        assert not any(word in pickle.dumps(options) for word in (b"key-7391", b"word-8254"))
        opened = BucketStores(options, timeout_ms=10_000)
        coming = [opened.get_range("east", "c/object", at, at + 100) for at in (0, 100, 900)]
        assert [bytes(one.result()) for one in coming] == [
            content[at : at + 100] for at in (0, 100, 900)
        ]
        with pytest.raises(ObjectAbsentError):
            opened.get_range("east", "c/absent", 0, 1).result()
    file.chmod(0o644)
    with pytest.raises(OperatorError, match="chmod 600"):
        BucketStores(options, timeout_ms=10_000).get_range("east", "c/object", 0, 1).result()
