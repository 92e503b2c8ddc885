"""Audits of a real cluster's buckets: silent while all is well, exact where one byte is not.

Source: docs/decisions/0052-comparing-replicas.md, "Buckets"."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.conftest import stop_cluster, wait_until
from tests.integration.test_audit import SEGMENT_BYTES, create, fork, leader_of, produce, written
from tests.integration.test_tiered_uploads import REGIONS, Tiered

from strandline.client.buckets.options import BucketOptions
from strandline.client.cluster import Client
from strandline.client.operations.tier import tier_state, tier_status
from strandline.config.addresses import parse_bootstrap
from strandline.pipeline.audit.job import Audit, AuditOptions
from strandline.pipeline.audit.results import AuditResult, Finding, FindingKind, Verdict
from strandline.pipeline.audit.runners import ThreadRunner
from strandline.protocol.messages.describe_tier import TierPartitionStatus
from strandline.records.batch import BatchHeader, iterate_headers
from strandline.tiered.collection.orphans import Place
from strandline.tiered.segments.entry import SegmentEntry

pytestmark = pytest.mark.integration

RECORDS = 1_200
"""About 280 kB: a dozen segments."""
ROUNDS = 12
LOCAL_BYTES = 3 * SEGMENT_BYTES


class Audited:
    """A cluster whose topics leave the disks at once, and the audits of it."""

    def __init__(self, tiered: Tiered) -> None:
        self.tiered = tiered
        self.bootstrap = tiered.cluster.bootstrap
        places = tuple(f"{name}=file://{path}" for name, path in tiered.buckets.items())
        self.buckets = BucketOptions("bucket", places)

    def fill(self, topic: str) -> None:
        """A topic whose older half is in buckets alone."""
        create(
            self.tiered.cluster,
            topic,
            "remote.storage.enable=true",
            f"local.retention.bytes={LOCAL_BYTES}",
        )
        for _ in range(ROUNDS):  # A request goes into one segment, whatever its size.
            produce(self.tiered.cluster, topic, RECORDS // ROUNDS)
        wait_until(lambda: self.is_tiered(topic), what="old segments are in buckets alone")

    def is_tiered(self, topic: str) -> bool:
        row = self.row(topic)
        if row is None:
            return False
        has_all = all(one.end_offset > 0 and not one.pending_bytes for one in row.buckets)
        return has_all and len(row.buckets) == len(REGIONS) and row.local_start_offset > 500

    def ends(self, topic: str) -> list[int]:
        """Where each bucket ends; [0] while none has anything."""
        row = self.row(topic)
        return [0] if row is None else [one.end_offset for one in row.buckets]

    def row(self, topic: str) -> TierPartitionStatus | None:
        """What the leader says; None while it says nothing."""
        with Client(parse_bootstrap(self.bootstrap)) as client:
            return next(iter(tier_status(client, [topic]).partitions), None)

    def live(self, topic: str, bucket: str) -> tuple[SegmentEntry, ...]:
        """The objects that the topic's log names."""
        with Client(parse_bootstrap(self.bootstrap)) as client:
            (row,) = tier_status(client, [topic]).partitions
            state = tier_state(client, Place(row.topic_id, 0))
        assert state is not None
        return next(one.live for one in state.buckets if one.bucket == bucket)

    def path(self, bucket: str, entry: SegmentEntry) -> Path:
        return self.tiered.buckets[bucket] / entry.name

    def run(self, *topics: str) -> AuditResult:
        options = AuditOptions(
            self.bootstrap, topics, timeout_ms=5_000, range_bytes=30_000, buckets=self.buckets
        )
        return Audit(options, ThreadRunner()).run()


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    made = Tiered(tmp_path_factory.mktemp("audited"), "tiered.export_interval_ms=200")
    yield Audited(made)
    stop_cluster(made.cluster)


def only(result: AuditResult) -> Finding:
    assert result.verdict is Verdict.DIFFERENT, result.not_compared
    assert len(result.findings) == 1, [one.text for one in result.findings]
    return result.findings[0]


def change(
    path: Path, entry: SegmentEntry, alter: Callable[[bytearray, BatchHeader], None]
) -> BatchHeader:
    """Change the batch in the middle of an object."""
    data = bytearray(path.read_bytes())
    headers = list(iterate_headers(data[: entry.data_bytes]))
    header = headers[len(headers) // 2]
    alter(data, header)
    path.write_bytes(data)
    return header


def flip(data: bytearray, header: BatchHeader) -> None:
    data[header.position + 80] ^= 1


@pytest.mark.parametrize("where", ["buckets alone", "replicas, too"])
def test_a_fork_in_one_bucket_is_found_at_its_record(
    audited: Audited, topic_name: str, where: str
) -> None:
    audited.fill(topic_name)
    result = audited.run(topic_name)
    assert result.verdict is Verdict.EQUAL, (result.findings, result.not_compared)
    (partition,) = result.partitions
    assert partition.buckets.keys() == set(REGIONS)
    live = audited.live(topic_name, "west")
    assert all(one.object_count > 2 for one in partition.buckets.values())
    entry = live[1] if where == "buckets alone" else live[-1]
    assert (entry.end_offset <= partition.start) == (where == "buckets alone")
    header = change(audited.path("west", entry), entry, fork)
    found = only(audited.run(topic_name))
    assert (found.kind, found.offset) == (FindingKind.DIFFERENT, header.last_offset), found.text
    assert (found.buckets, found.object_name) == (("west",), entry.name)


@pytest.mark.parametrize("fault", ["flip", "remove", "truncate", "replace"])
def test_a_fault_of_an_object_is_found_once(audited: Audited, topic_name: str, fault: str) -> None:
    audited.fill(topic_name)
    entry = audited.live(topic_name, "south")[1]
    path = audited.path("south", entry)
    kind, offset = FindingKind.MISSING, entry.base_offset
    if fault == "flip":
        kind, offset = FindingKind.DAMAGED, change(path, entry, flip).base_offset
    elif fault == "remove":
        path.unlink()
    elif fault == "truncate":
        header = list(iterate_headers(path.read_bytes()[: entry.data_bytes]))[-1]
        path.write_bytes(path.read_bytes()[: header.position + 20])
        offset = header.base_offset
    else:  # By a sound object of other records: that of another topic, of the same size or not.
        audited.fill(f"{topic_name}-other")
        other = audited.live(f"{topic_name}-other", "south")[0]
        path.write_bytes(audited.path("south", other).read_bytes())
        kind = FindingKind.DAMAGED
    found = only(audited.run(topic_name))
    assert (found.kind, found.offset) == (kind, offset), found.text
    assert (found.buckets, found.object_name) == (("south",), entry.name)


def test_a_replica_that_forked_before_its_upload_is_named_with_its_bucket(
    audited: Audited, topic_name: str
) -> None:
    """The uploader verifies checksums, and these are right: only a comparison finds it."""
    cluster = audited.tiered.cluster
    create(cluster, topic_name, "remote.storage.enable=true", "remote.log.copy.disable=true")
    produce(cluster, topic_name, 600)
    broker = next(one for one in sorted(cluster.brokers) if one != leader_of(cluster, topic_name))
    region = REGIONS[broker - 1]
    directory = Path(str(cluster.brokers[broker]["data_directory"]))
    path = sorted(directory.glob(f"logs/{topic_name}-0.*/*.log"))[1]
    data = bytearray(path.read_bytes())
    header = written(data)[0]
    fork(data, header)
    with path.open("r+b") as file:
        file.write(data)
    audited.tiered.set(topic_name, "remote.log.copy.disable", "false")
    wait_until(lambda: min(audited.ends(topic_name)) > header.last_offset, what="the uploads")
    result = audited.run(topic_name)
    assert {(one.kind, one.offset, one.brokers, one.buckets) for one in result.findings} == {
        (FindingKind.DIFFERENT, header.last_offset, (broker,), ()),
        (FindingKind.DIFFERENT, header.last_offset, (), (region,)),
    }


def test_audits_are_silent_while_records_come_leave_the_disks_and_expire(
    audited: Audited, topic_name: str
) -> None:
    audited.fill(topic_name)
    audited.tiered.set(topic_name, "retention.bytes", str(1_000_000))
    ended = threading.Event()

    def go_on() -> None:
        while not ended.is_set():
            produce(audited.tiered.cluster, topic_name, 100)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        results = [audited.run(topic_name) for _ in range(6)]
    finally:
        ended.set()
        thread.join()
    for result in results:
        assert result.verdict is Verdict.EQUAL, (result.findings, result.not_compared)
    parts = [result.partitions[0].buckets for result in results]
    starts = [one["east"].start for one in parts if "east" in one]
    assert starts and starts == sorted(starts)


def test_compacted_topics_are_equal_whenever_logs_and_buckets_were_compacted(
    audited: Audited, topic_name: str
) -> None:
    cluster = audited.tiered.cluster
    create(
        cluster,
        topic_name,
        "remote.storage.enable=true",
        "cleanup.policy=compact",
        "min.cleanable.dirty.ratio=0",
        f"local.retention.bytes={LOCAL_BYTES}",
    )
    results: list[AuditResult] = []

    def is_equal() -> bool:
        results.append(audited.run(topic_name))
        return results[-1].verdict is Verdict.EQUAL

    for _ in range(20):
        produce(cluster, topic_name, 100, keys=37)
        is_equal()
    wait_until(lambda: min(audited.ends(topic_name)) > 1_000, what="uploads")
    wait_until(is_equal, what="an audit while nothing moves")
    assert [one for result in results for one in result.findings] == []
    assert results[-1].partitions[0].kind == "latest"
    assert results[-1].partitions[0].buckets.keys() == set(REGIONS)
    entry = audited.live(topic_name, "west")[-1]
    header = change(audited.path("west", entry), entry, flip)
    found = only(audited.run(topic_name))
    assert (found.kind, found.offset) == (FindingKind.DAMAGED, header.base_offset)
    assert (found.buckets, found.object_name) == (("west",), entry.name)


def test_the_command_reads_buckets_and_says_so(
    audited: Audited, topic_name: str, tmp_path: Path
) -> None:
    audited.fill(topic_name)
    cluster = audited.tiered.cluster
    words = ("pipeline", "audit", topic_name, "-b", audited.bootstrap)
    places = ",".join(audited.buckets.places)
    page, table = tmp_path / "audit.html", tmp_path / "audits"
    done = cluster.run(
        *words, "--buckets", places, "--json", "--report", str(page), "--table", str(table)
    )
    told = json.loads(done.stdout)
    assert told["verdict"] == "equal" and told["bucket_bytes"] > 300_000
    assert told["partitions"][0]["buckets"].keys() == set(REGIONS)
    assert "Audit of replicas and buckets" in page.read_text()
    from pyarrow import parquet

    rows = parquet.read_table(next(table.glob("*.parquet"))).to_pylist()
    assert {row["bucket"] for row in rows} == {None, *REGIONS}
    assert {row["broker"] for row in rows if row["bucket"]} == {None}
    some = cluster.run(*words, "--buckets", places.split(",")[0], check=False)
    assert some.returncode == 3 and "in bucket south: --buckets does not name it" in some.stdout
    entry = audited.live(topic_name, "east")[0]
    change(audited.path("east", entry), entry, flip)
    bad = cluster.run(*words, "--buckets", places, check=False)
    assert bad.returncode == 1 and f"object {entry.name}" in bad.stdout
    wrong = cluster.run(*words, "--buckets", "east", check=False)
    assert wrong.returncode == 2 and "must look like region=url" in wrong.stderr
