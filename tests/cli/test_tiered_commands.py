"""What `strandline tiered` says of buckets, and what it deletes."""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest
from tests.cli.command_line import CONFIG, Run, cluster, run
from tests.client.fake_cluster import FakeCluster, FakeTransport, metadata

from strandline.cli.commands import tiered
from strandline.cli.dev.cluster_file import ClusterDirectory
from strandline.cli.dev.plan import Plan, PlannedBroker
from strandline.cli.text import tiered as tiered_text
from strandline.client.cluster import Client
from strandline.client.operations.buckets import only_in_bucket
from strandline.config.bucket_urls import parse_bucket
from strandline.model.ids import BrokerId, Epoch, Index, Offset
from strandline.protocol.errors import Error, message_of
from strandline.protocol.messages.describe_tier import (
    DescribeTierRequest,
    DescribeTierResponse,
    TierBucketStatus,
    TierPartitionStatus,
)
from strandline.protocol.messages.identify_bucket import (
    IdentifyBucketRequest,
    IdentifyBucketResponse,
)
from strandline.protocol.messages.metadata import MetadataResponse
from strandline.protocol.messages.repair_object import RepairObjectRequest, RepairObjectResponse
from strandline.protocol.table import Message
from strandline.records.record import Record, build_batch
from strandline.tiered.collection.verify import Checked, verify_entry
from strandline.tiered.objects.bucket_store import BucketStore
from strandline.tiered.objects.claim import CLAIM, claim_bucket
from strandline.tiered.objects.identity import IDENTITY
from strandline.tiered.objects.opening import open_store
from strandline.tiered.objects.store import ObjectStore
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.segments.names import SegmentName
from strandline.tiered.segments.writer import SegmentWriter
from strandline.tiered.state.commands import GoLive, Intend
from strandline.tiered.state.encoding import encode
from strandline.tiered.state.tier import TierState

__all__ = ["cluster", "run"]  # The fixtures.

DAY_S = 86_400
BUCKET = "east"


class Tier:
    """Topic t of one partition, led by broker 1, with objects in a directory."""

    def __init__(self, fake: FakeCluster, root: Path) -> None:
        self.fake = fake
        self.root = root / "bucket"
        self.config = root / "broker.toml"
        self.config.write_text(f'{CONFIG}\n[tiered]\nbuckets = ["{BUCKET}=file://{self.root}"]\n')
        fake.add_topic("t", 1)
        self.topic_id = UUID(int=7)
        self.state = TierState()
        self.error = Error.NONE
        self.cluster_id = self.answering_id = "fake"
        fake.extra = {
            "DescribeTier": self._answer,
            "Metadata": self._metadata,
            "IdentifyBucket": self._identify,
            "RepairObject": self._repair,
        }
        self.bucket_ids: list[str] = []
        """Those that the cluster has known, the present one last."""
        self.copies: dict[str, bytes] = {}
        """{name: what the leader puts again}"""
        self.deleted: set[UUID] = set()
        """Topics whose deletion the controller remembers."""
        self.do(lambda store: claim_bucket(store, bucket=BUCKET, cluster_id="fake"))

    def do(self, work: Callable[[BucketStore], object]) -> None:
        async def main() -> None:
            store = open_store(parse_bucket(f"{BUCKET}=file://{self.root}"))
            await work(store)  # type: ignore[misc]

        asyncio.run(main())

    def name(self, base: int, *, topic: UUID | None = None) -> str:
        topic = topic or self.topic_id
        return str(SegmentName("fake", str(topic), 0, Offset(base), Epoch(1), f"{base:016x}"))

    def put(self, base: int, *, is_known: bool = True, topic: UUID | None = None) -> SegmentEntry:
        """An object of ten records, eight days old."""
        name = self.name(base, topic=topic)
        writer = SegmentWriter(Offset(base), Offset(base + 10))
        records = [Record(at, 5, b"k", b"value") for at in range(10)]
        writer.add(bytes(build_batch(records, base_offset=base, epoch=1)))
        made = writer.finish(name)
        self.do(lambda store: store.put(name, made.parts))
        path = self.root / name
        moment = path.stat().st_mtime - 8 * DAY_S
        os.utime(path, (moment, moment))
        if is_known:
            intent = Intend(BUCKET, name, Offset(base), Offset(base + 10), BrokerId(1))
            for command in (intent, GoLive(BUCKET, made.entry)):
                index = Index(self.state.index + 1)
                assert self.state.apply(index, Epoch(1), command, log_end=Offset(1_000)) is None
        return made.entry

    def _metadata(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        answer = metadata(fake, broker, request)
        assert isinstance(answer, MetadataResponse)
        for topic in answer.topics:
            topic.topic_id = self.topic_id
        answer.cluster_id = self.cluster_id
        return answer

    def _answer(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        assert isinstance(request, DescribeTierRequest)
        if request.topic_id not in (self.topic_id, UUID(int=0)):
            is_deleted = request.topic_id in self.deleted
            code = Error.UNKNOWN_TOPIC_ID if is_deleted else Error.UNKNOWN_TOPIC_OR_PARTITION
            return DescribeTierResponse(error_code=code, cluster_id=self.answering_id)
        if self.error and request.topic_id.int:
            return DescribeTierResponse(error_code=self.error, cluster_id=self.answering_id)
        if broker != 1:
            return DescribeTierResponse(broker_id=broker, cluster_id=self.answering_id)
        row = TierPartitionStatus(
            "t", self.topic_id, 0, 5, 0, 15, 42, [self._bucket()], encode(self.state.checkpoint())
        )
        return DescribeTierResponse(
            broker_id=broker, partitions=[row], cluster_id=self.answering_id
        )

    def _identify(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        assert isinstance(request, IdentifyBucketRequest)
        known = self.bucket_ids
        if request.bucket_id and known and request.replaced_id == known[-1]:
            known.append(request.bucket_id)
        return IdentifyBucketResponse(
            cluster_id=self.cluster_id,
            bucket_id=known[-1] if known else "",
            generation=len(known) - 1,
        )

    def _repair(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        assert isinstance(request, RepairObjectRequest)
        if broker != 1:
            return RepairObjectResponse(error_code=Error.NOT_LEADER_OR_FOLLOWER)
        data = self.copies.get(request.name)
        if data is None:
            return RepairObjectResponse(verdict="missing", reason="bucket west: it is damaged")
        (self.root / request.name).write_bytes(data)
        return RepairObjectResponse(is_put=True, verdict="sound")

    def _bucket(self) -> TierBucketStatus:
        live = self.state.live(BUCKET)
        return TierBucketStatus(
            bucket=BUCKET,
            is_wanted=True,
            start_offset=self.state.start(BUCKET),
            end_offset=self.state.live_end(BUCKET),
            object_count=len(live),
            size_bytes=self.state.size_bytes(BUCKET),
            pending_bytes=77,
            pending_since_ms=1_000,
        )


@pytest.fixture
def tier(cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tier:
    transport = FakeTransport(cluster)
    monkeypatch.setattr(
        tiered,
        "open_client",
        lambda bootstrap, timeout: Client(cluster.bootstrap, timeout_ms=5_000, transport=transport),
    )
    return Tier(cluster, tmp_path)


def test_status_tells_what_each_bucket_holds(run: Run, tier: Tier) -> None:
    tier.put(0)
    tier.put(10)
    code, out, _ = run("tiered", "status", "--json")
    (row,) = json.loads(out)["partitions"]
    (bucket,) = row["buckets"]
    assert code == 0
    assert (row["topic"], row["local_start_offset"], row["high_watermark"]) == ("t", 15, 42)
    assert (bucket["start_offset"], bucket["end_offset"], bucket["objects"]) == (0, 20, 2)
    assert (bucket["pending_bytes"], bucket["pending_since_ms"]) == (77, 1_000)
    code, out, _ = run("tiered", "status", "t")
    assert code == 0 and "PENDING-BYTES" in out and " 77 " in out
    code, out, _ = run("tiered", "status", "--by-bucket")
    heads, row = (line.split() for line in out.splitlines())
    told = dict(zip(heads, row, strict=True))
    assert (code, told["BUCKET"], told["OBJECTS"], told["PENDING-BYTES"]) == (0, "east", "2", "77")
    assert told["PUTS"] == "0", "the fake broker asks nothing"


def test_status_names_brokers_that_do_not_answer(run: Run, tier: Tier) -> None:
    tier.fake.silent.add(2)
    code, out, _ = run("tiered", "status")
    assert code == 10
    assert "not known: broker 2 does not answer for what it leads" in out
    tier.fake.silent.clear()
    tier.fake.down.add(1)
    code, out, _ = run("tiered", "status", "--json")
    assert (code, json.loads(out)["not_known"]) == (10, ["t-0 has no leader"])


def test_verify_reads_every_object(run: Run, tier: Tier) -> None:
    entries = [tier.put(0), tier.put(10)]
    code, out, err = run("tiered", "verify", "--config", str(tier.config))
    assert (code, err) == (0, "")
    total = sum(one.size_bytes for one in entries)
    assert out == f"2 objects sound, {total} bytes read; 0 not sound\n"


def test_verify_names_what_is_damaged_or_missing(run: Run, tier: Tier) -> None:
    damaged, missing = tier.put(0), tier.put(10)
    path = tier.root / damaged.name
    path.write_bytes(b"X" + path.read_bytes()[1:])
    (tier.root / missing.name).unlink()
    code, out, _ = run("tiered", "verify", "--config", str(tier.config), "--json")
    assert code == 10
    assert [(one["verdict"], one["name"]) for one in json.loads(out)["faults"]] == [
        ("damaged", damaged.name),
        ("missing", missing.name),
    ]


def test_verify_says_where_it_is_not_known_what_should_be_there(run: Run, tier: Tier) -> None:
    tier.put(0)
    tier.error = Error.NOT_LEADER_OR_FOLLOWER
    code, out, _ = run("tiered", "verify", "--config", str(tier.config))
    assert code == 10
    assert "not known   t-0: broker 1: " in out


def test_gc_deletes_nothing_unless_it_is_told_to(run: Run, tier: Tier) -> None:
    tier.put(0)
    orphan = tier.put(10, is_known=False).name
    code, out, _ = run("tiered", "gc", "--config", str(tier.config))
    assert code == 0
    assert f"orphan  east  {orphan}" in out and "nothing was deleted" in out
    assert (tier.root / orphan).exists()
    code, out, _ = run("tiered", "gc", "--config", str(tier.config), "--delete")
    assert code == 0
    assert f"deleted  east  {orphan}" in out and "1 deleted" in out
    assert not (tier.root / orphan).exists()
    assert (tier.root / tier.name(0)).exists()


def test_gc_leaves_what_is_younger_than_the_grace(run: Run, tier: Tier) -> None:
    orphan = tier.put(10, is_known=False).name
    options = ("--config", str(tier.config), "--delete", "--grace-days", "9")
    assert run("tiered", "gc", *options)[0] == 0
    assert (tier.root / orphan).exists()


@pytest.mark.parametrize("error", [Error.NOT_LEADER_OR_FOLLOWER, Error.NOT_CONTROLLER])
def test_gc_leaves_a_partition_alone_whose_leader_is_not_certain(
    run: Run, tier: Tier, error: Error
) -> None:
    orphan = tier.put(10, is_known=False).name
    tier.error = error
    code, out, _ = run("tiered", "gc", "--config", str(tier.config), "--delete")
    assert code == 10
    assert f"broker 1: {message_of(error)}" in out
    assert (tier.root / orphan).exists()


def test_gc_deletes_what_a_deleted_topic_left(run: Run, tier: Tier) -> None:
    orphan = tier.put(0, is_known=False, topic=UUID(int=99)).name
    tier.deleted.add(UUID(int=99))
    assert run("tiered", "gc", "--config", str(tier.config), "--delete")[0] == 0
    assert not (tier.root / orphan).exists()


def test_gc_refuses_a_bucket_of_another_cluster(run: Run, tier: Tier) -> None:
    tier.cluster_id = "another"
    code, _, err = run("tiered", "gc", "--config", str(tier.config), "--delete")
    assert code == 1
    assert "bucket east belongs to cluster" in err


def test_a_file_without_buckets_is_refused(run: Run, tier: Tier) -> None:
    tier.config.write_text(CONFIG)
    code, _, err = run("tiered", "verify", "--config", str(tier.config))
    assert (code, "[tiered] buckets names no bucket" in err) == (1, True)


def test_a_bucket_that_is_not_there_is_refused(run: Run, tier: Tier) -> None:
    code, _, err = run("tiered", "gc", "--config", str(tier.config), "--bucket", "west")
    assert (code, f"--bucket west: [tiered] buckets of {tier.config} has east" in err) == (1, True)


def test_a_bucket_that_is_away_is_neither_empty_nor_made_anew(run: Run, tier: Tier) -> None:
    """Such as a file system that is not mounted."""
    tier.put(0)
    tier.put(10)
    away = tier.root.with_name("away")
    tier.root.rename(away)
    code, out, _ = run("tiered", "verify", "--config", str(tier.config))
    line, sums = out.splitlines()
    assert code == 10 and sums == "0 objects sound, 0 bytes read; 0 not sound, 2 not read"
    assert line.startswith("away        east: 2 objects not read: bucket east (")
    assert "is its file system mounted?; bring the bucket back, or " in line
    told = json.loads(run("tiered", "verify", "--config", str(tier.config), "--json")[1])
    assert [(one["bucket"], one["object_count"]) for one in told["away"]] == [("east", 2)]
    assert told["faults"] == []
    code, _, err = run("tiered", "gc", "--config", str(tier.config), "--delete")
    assert code == 1
    assert err.startswith("error: bucket east (") and "is its file system mounted?" in err
    assert err.count("\n") == 1
    assert not tier.root.exists()
    away.rename(tier.root)
    assert run("tiered", "verify", "--config", str(tier.config))[0] == 0


def test_a_bucket_that_goes_away_meanwhile_is_one_finding(
    run: Run, tier: Tier, monkeypatch: pytest.MonkeyPatch
) -> None:
    tier.put(0)
    tier.put(10)
    read = verify_entry

    async def read_and_unmount(store: ObjectStore, entry: SegmentEntry) -> Checked:
        found = await read(store, entry)
        if tier.root.exists():
            tier.root.rename(tier.root.with_name("away"))
        return found

    monkeypatch.setattr(tiered_text, "verify_entry", read_and_unmount)
    line, sums = run("tiered", "verify", "--config", str(tier.config))[1].splitlines()
    assert line.startswith("away        east: 1 object not read: ")
    assert sums.startswith("1 object sound, ") and sums.endswith("; 0 not sound, 1 not read")


def test_gc_refuses_a_bucket_that_no_cluster_uses(run: Run, tier: Tier) -> None:
    (tier.root / CLAIM).unlink()
    code, _, err = run("tiered", "gc", "--config", str(tier.config), "--delete")
    assert code == 1
    assert "bucket east has no claim.json: no cluster uses it" in err


class TestWithoutAFileNamed:
    @pytest.fixture
    def local(self, tier: Tier) -> ClusterDirectory:
        """A local cluster in the directory that `strandline dev` would use, with tier's file."""
        directory = ClusterDirectory(Path("strandline-dev"))
        broker = PlannedBroker(id=3, region="east", kafka_port=19_092, rpc_port=19_192)
        directory.write(Plan(cluster_id="fake", brokers=(broker,)))
        files = directory.files(broker)
        files.directory.mkdir()
        files.config.write_text(tier.config.read_text())
        return directory

    def test_the_local_cluster_has_one(self, run: Run, tier: Tier, local: ClusterDirectory) -> None:
        tier.put(0)
        assert run("tiered", "verify", "t")[1].startswith("1 object sound, ")
        assert run("tiered", "gc", "-b", "127.0.0.1:19092")[1].startswith("east: 1 object known")

    def test_but_not_for_another_cluster(
        self, run: Run, tier: Tier, local: ClusterDirectory
    ) -> None:
        code, _, err = run("tiered", "gc", "--delete", "-b", "127.0.0.1:19092,elsewhere:9092")
        assert code == 1
        assert "--config is missing: name the configuration file of a broker of elsewhere" in err

    def test_a_command_without_a_local_cluster_asks_for_it(self, run: Run, tier: Tier) -> None:
        code, _, err = run("tiered", "verify")
        assert code == 1
        assert "--config is missing, and strandline-dev has no local cluster" in err


def test_replace_gives_an_empty_bucket_an_identity_and_has_the_cluster_use_it(
    run: Run, tier: Tier
) -> None:
    tier.bucket_ids.append("a")
    code, out, err = run("tiered", "replace", BUCKET, "--config", str(tier.config))
    assert (code, err) == (0, "")
    found = json.loads((tier.root / IDENTITY).read_bytes())["bucket_id"]
    assert tier.bucket_ids == ["a", found]
    assert f"bucket east: {found} is used instead of a" in out
    code, _, err = run("tiered", "replace", BUCKET, "--config", str(tier.config))
    assert code == 1 and "it is the bucket that the cluster uses as east already" in err
    assert tier.bucket_ids == ["a", found]


def test_replace_gives_nothing_up_that_only_the_old_bucket_has(run: Run, tier: Tier) -> None:
    tier.bucket_ids.append("a")
    tier.put(0)
    tier.put(10)
    code, _, err = run("tiered", "replace", BUCKET, "--config", str(tier.config))
    assert code == 1
    assert "t-0 0..15" in err and "--accept-loss" in err
    assert tier.bucket_ids == ["a"] and not (tier.root / IDENTITY).exists()
    code, out, _ = run("tiered", "replace", BUCKET, "--config", str(tier.config), "--accept-loss")
    assert code == 0 and "given up  t-0: 0..15" in out
    assert len(tier.bucket_ids) == 2


def test_replace_takes_an_unknown_log_for_a_loss(run: Run, tier: Tier) -> None:
    tier.bucket_ids.append("a")
    tier.fake.silent.add(2)
    code, _, err = run("tiered", "replace", BUCKET, "--config", str(tier.config))
    assert code == 1 and "broker 2 does not answer" in err
    assert tier.bucket_ids == ["a"]


def test_replace_refuses_what_it_cannot_do(run: Run, tier: Tier) -> None:
    tier.bucket_ids.append("a")
    config = str(tier.config)
    code, _, err = run("tiered", "replace", "west", "--config", config)
    assert code == 1 and "west: [tiered] buckets of" in err and "has east" in err
    (tier.root / CLAIM).write_text('{"format":1,"cluster_id":"other"}')
    code, _, err = run("tiered", "replace", BUCKET, "--config", config)
    assert code == 1 and "belongs to cluster other" in err and "nothing has changed" in err
    tier.bucket_ids.clear()
    code, _, err = run("tiered", "replace", BUCKET, "--config", config)
    assert code == 1 and "has not used bucket east yet" in err


def test_what_is_in_a_bucket_alone_is_what_no_disk_and_no_other_bucket_has() -> None:
    def row(local: int, *buckets: tuple[str, int, int]) -> TierPartitionStatus:
        return TierPartitionStatus(
            topic="t",
            local_start_offset=local,
            log_start_offset=5,
            buckets=[
                TierBucketStatus(bucket=one, start_offset=start, end_offset=end, object_count=1)
                for one, start, end in buckets
            ],
        )

    def lost(one: TierPartitionStatus) -> list[tuple[int, int]]:
        return [(each.start, each.end) for each in only_in_bucket([one], "east")]

    assert lost(row(50, ("east", 0, 60))) == [(5, 50)]
    assert lost(row(50, ("east", 0, 60), ("west", 0, 60))) == []
    assert lost(row(50, ("east", 0, 60), ("west", 20, 30))) == [(5, 20), (30, 50)]
    assert lost(row(50, ("east", 0, 40), ("west", 20, 60))) == [(5, 20)]
    assert lost(row(0, ("east", 0, 40))) == []
    assert lost(row(50, ("west", 0, 40))) == []


def test_no_command_judges_a_bucket_that_is_not_the_one_of_its_name(run: Run, tier: Tier) -> None:
    """Its objects are another bucket's: the logs would know none of them."""
    orphan = tier.name(0)
    tier.put(0, is_known=False)
    tier.bucket_ids.append("a")
    for text, says in ((None, "nothing"), ('{"format":1,"bucket_id":"b","bucket":"east"}', "b")):
        if text is not None:
            (tier.root / IDENTITY).write_text(text)
        for command in (["gc", "--delete"], ["verify"]):
            code, _, err = run("tiered", *command, "--config", str(tier.config))
            assert code == 1
            assert "bucket east is not the one that the cluster uses by this name" in err
            assert f"says {says}, and the cluster a" in err
    assert (tier.root / orphan).exists()
    tier.bucket_ids.append("b")
    assert run("tiered", "gc", "--delete", "--config", str(tier.config))[0] == 0
    assert not (tier.root / orphan).exists()


def test_gc_leaves_a_topic_of_unknown_deletion_unless_it_is_named(run: Run, tier: Tier) -> None:
    """The controller may be behind, or a declared loss may have cut the topic off."""
    unknown = UUID(int=8)
    entry = tier.put(0, is_known=False, topic=unknown)
    options = ("tiered", "gc", "--config", str(tier.config), "--delete")
    code, out, _ = run(*options)
    assert code == 10
    assert "knows neither a topic with the id" in out and f"--deleted-topic {unknown}" in out
    assert (tier.root / entry.name).exists()
    code, _, _ = run(*options, "--deleted-topic", str(UUID(int=9)))
    assert code == 10 and (tier.root / entry.name).exists()
    code, out, _ = run(*options, "--deleted-topic", str(unknown))
    assert code == 0 and not (tier.root / entry.name).exists()


def test_gc_takes_no_word_of_another_cluster(run: Run, tier: Tier) -> None:
    topic = UUID(int=8)
    entry = tier.put(0, is_known=False, topic=topic)
    tier.deleted.add(topic)
    tier.answering_id = "other"
    options = ("tiered", "gc", "--config", str(tier.config), "--delete")
    code, out, _ = run(*options)
    assert code == 10 and "is of cluster other" in out
    assert (tier.root / entry.name).exists()
    tier.answering_id = "fake"
    assert run(*options)[0] == 0
    assert not (tier.root / entry.name).exists()


def test_verify_has_the_leader_put_again_what_is_not_sound(run: Run, tier: Tier) -> None:
    cut, lost, sound = tier.put(0), tier.put(10), tier.put(20)
    paths = {one.name: tier.root / one.name for one in (cut, lost, sound)}
    tier.copies[cut.name] = paths[cut.name].read_bytes()
    paths[cut.name].write_bytes(tier.copies[cut.name][:50])
    paths[lost.name].unlink()
    options = ("tiered", "verify", "--config", str(tier.config))
    code, out, _ = run(*options)
    assert code == 10 and "damaged     east" in out and "missing     east" in out
    code, out, _ = run(*options, "--repair")
    assert code == 10
    assert f"repaired    east  {cut.name}" in out
    assert "not put again: bucket west: it is damaged" in out
    assert "1 object sound, 1 put again" in out and "1 not sound" in out
    tier.copies[lost.name] = b"x"
    code, out, _ = run(*options, "--repair", "--json")
    assert code == 0 and [one["name"] for one in json.loads(out)["repaired"]] == [lost.name]
