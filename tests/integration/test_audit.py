"""Audits of a real cluster: silent while all is well, exact where one byte is not.

Source: docs/decisions/0052-comparing-replicas.md."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.integration.conftest import DevCluster, start_cluster, stop_cluster, wait_until

from strandline.client.cluster import Client
from strandline.config.addresses import parse_bootstrap
from strandline.pipeline.audit.job import Audit, AuditOptions
from strandline.pipeline.audit.results import AuditResult, FindingKind, Verdict
from strandline.pipeline.audit.runners import ThreadRunner
from strandline.records.batch import (
    HEADER_BYTES,
    BatchHeader,
    read_header,
    seal,
)
from strandline.records.record import Record, build_batch

pytestmark = pytest.mark.integration

SEGMENT_BYTES = 20_000
FLUSH_EVERY = 40
VALUE = bytes(range(200))


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevCluster]:
    """Three brokers that compact and expire at once."""
    cluster = start_cluster(
        tmp_path_factory.mktemp("audited"),
        regions="east=1,west=1,south=1",
        options=("--set", "storage.retention_check_interval_ms=200"),
    )
    yield cluster
    stop_cluster(cluster)


def create(cluster: DevCluster, name: str, *configs: str, partitions: int = 1) -> None:
    chosen = (f"internal.segment.bytes={SEGMENT_BYTES}", "retention.ms=-1", *configs)
    options = [word for one in chosen for word in ("--config", one)]
    cluster.run(
        "topic", "create", name, "--partitions", str(partitions), "-b", cluster.bootstrap, *options
    )


def produce(cluster: DevCluster, topic: str, count: int, *, keys: int = 0) -> None:
    """Records in batches of about ten; a few of them at a time, so that followers begin segments
    where they are full."""
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap, "acks": "all", "batch.num.messages": 10}
    )
    for number in range(count):
        key = b"k%d" % (number % keys) if keys else None
        producer.produce(topic, VALUE + b"%d" % number, key=key)
        producer.poll(0)
        if number % FLUSH_EVERY == 0:
            assert producer.flush(60) == 0
    assert producer.flush(60) == 0


def audit(
    cluster: DevCluster, *topics: str, timeout_ms: int = 30_000, **options: object
) -> AuditResult:
    chosen = AuditOptions(
        cluster.bootstrap,
        topics,
        wait_ms=60_000,
        timeout_ms=timeout_ms,
        range_bytes=30_000,
        **options,  # type: ignore[arg-type]
    )
    return Audit(chosen, ThreadRunner()).run()


def segments(cluster: DevCluster, broker: int, topic: str, partition: int = 0) -> list[Path]:
    directory = Path(str(cluster.brokers[broker]["data_directory"]))
    return sorted(directory.glob(f"logs/{topic}-{partition}.*/*.log"))


def size_of(files: Sequence[Path]) -> int:
    """In bytes; of a log that is compacted, files go at any time."""
    total = 0
    for file in files:
        with suppress(FileNotFoundError):
            total += file.stat().st_size
    return total


def written(data: bytearray) -> list[BatchHeader]:
    """The batches of a segment's file, without the free space that a broker keeps behind them."""
    found: list[BatchHeader] = []
    position = 0
    while any(data[position : position + HEADER_BYTES]):
        header = read_header(data, position)
        assert header is not None
        found.append(header)
        position += header.size
    return found


def test_the_free_space_behind_the_last_batch_is_no_batch() -> None:
    batch = build_batch([Record(key=b"k", value=b"v")])
    free = bytes(2 * HEADER_BYTES)
    assert [one.size for one in written(batch + free)] == [len(batch)]


def change(
    cluster: DevCluster,
    broker: int,
    topic: str,
    alter: Callable[[bytearray, BatchHeader], None],
    *,
    segment: int = 1,
    batch: int = 3,
) -> BatchHeader:
    """Change a batch in a segment on the disk of a broker that runs."""
    path = segments(cluster, broker, topic)[segment]
    data = bytearray(path.read_bytes())
    header = [one for one in written(data) if not one.is_marker][batch]
    alter(data, header)
    with path.open("r+b") as file:
        file.write(data)
    return header


def flip(data: bytearray, header: BatchHeader) -> None:
    data[header.position + HEADER_BYTES + 5] ^= 1


def drop(data: bytearray, header: BatchHeader) -> None:
    rest = data[header.position + header.size :]
    data[header.position :] = rest + bytes(header.size)


def fork(data: bytearray, header: BatchHeader) -> None:
    """Another value in the last record, under a right checksum."""
    end = header.position + header.size
    data[end - 2] ^= 1
    again = read_header(data, header.position)
    assert again is not None
    seal(data, again)


def fork_producer(data: bytearray, header: BatchHeader) -> None:
    """Another producer's epoch; the records are the same."""
    data[header.position + 52] ^= 1
    again = read_header(data, header.position)
    assert again is not None
    seal(data, again)


def leader_of(cluster: DevCluster, topic: str) -> int:
    with Client(parse_bootstrap(cluster.bootstrap)) as client:
        return client.topic(topic).partitions[0].leader


def follower_of(cluster: DevCluster, topic: str) -> int:
    return next(one for one in sorted(cluster.brokers) if one != leader_of(cluster, topic))


def only(result: AuditResult) -> tuple[FindingKind, int, Sequence[int]]:
    """The one finding."""
    assert result.verdict is Verdict.DIFFERENT
    assert len(result.findings) == 1, [one.text for one in result.findings]
    (found,) = result.findings
    return found.kind, found.offset, found.brokers


def test_replicas_are_equal_while_producing_goes_on(audited: DevCluster, topic_name: str) -> None:
    create(audited, topic_name, partitions=3)
    produce(audited, topic_name, 1_500)
    ended = threading.Event()

    def go_on() -> None:
        while not ended.is_set():
            produce(audited, topic_name, 50)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        results = [audit(audited, topic_name) for _ in range(5)]
    finally:
        ended.set()
        thread.join()
    for result in results:
        assert result.verdict is Verdict.EQUAL, (result.findings, result.not_compared)
        assert len(result.partitions) == 3
    counts = [sum(one.records for one in result.partitions) for result in results]
    assert counts[0] >= 1_500 and counts == sorted(counts)
    assert 0 < results[-1].wire_bytes < results[-1].digested_bytes / 20


def test_the_command_writes_a_page_and_a_table(
    audited: DevCluster, topic_name: str, tmp_path: Path
) -> None:
    create(audited, topic_name)
    produce(audited, topic_name, 300)
    page, table = tmp_path / "audit.html", tmp_path / "audits"
    command = ("pipeline", "audit", topic_name, "-b", audited.bootstrap, "--from-disk")
    done = audited.run(*command, "--report", str(page), "--table", str(table), "--json")
    told = json.loads(done.stdout)
    assert told["verdict"] == "equal" and told["partitions"][0]["records"] == 300
    assert "equal: every replica" in page.read_text() and topic_name in page.read_text()
    from pyarrow import parquet

    rows = parquet.read_table(next(table.glob("*.parquet"))).to_pylist()
    assert {row["broker"] for row in rows} == {1, 2, 3}
    assert {row["status"] for row in rows} == {"equal"}
    assert sum(row["records"] for row in rows) == 900
    change(audited, follower_of(audited, topic_name), topic_name, fork)
    again = audited.run(*command, check=False)
    assert again.returncode == 1 and "different" in again.stdout
    missing = audited.run("pipeline", "audit", "no-such", "-b", audited.bootstrap, check=False)
    assert missing.returncode == 2 and "no-such does not exist" in missing.stderr


@pytest.mark.parametrize("from_disk", [False, True])
def test_a_flipped_bit_is_found_at_its_offset(
    audited: DevCluster, topic_name: str, from_disk: bool
) -> None:
    create(audited, topic_name)
    produce(audited, topic_name, 600)
    broker = follower_of(audited, topic_name)
    header = change(audited, broker, topic_name, flip)
    kind, offset, brokers = only(audit(audited, topic_name, from_disk=from_disk))
    assert (kind, offset, brokers) == (FindingKind.DAMAGED, header.base_offset, (broker,))
    # The broker repairs what the audit has found.
    wait_until(
        lambda: audit(audited, topic_name).verdict is Verdict.EQUAL, what="the log is repaired"
    )


def test_a_dropped_batch_is_found_at_its_offset(audited: DevCluster, topic_name: str) -> None:
    create(audited, topic_name)
    produce(audited, topic_name, 600)
    broker = follower_of(audited, topic_name)
    header = change(audited, broker, topic_name, drop)
    kind, offset, brokers = only(audit(audited, topic_name))
    assert (kind, offset, brokers) == (FindingKind.DAMAGED, header.base_offset, (broker,))


def test_a_fork_is_found_at_its_record(audited: DevCluster, topic_name: str) -> None:
    create(audited, topic_name)
    produce(audited, topic_name, 600)
    broker = follower_of(audited, topic_name)
    header = change(audited, broker, topic_name, fork)
    assert header.last_offset > header.base_offset
    result = audit(audited, topic_name)
    assert only(result) == (FindingKind.DIFFERENT, header.last_offset, (broker,))
    assert "another record" in result.findings[0].reason
    statuses = {(row.broker, row.status) for row in result.partitions[0].rows}
    assert (broker, "different") in statuses and result.partitions[0].differing_ranges == 1


def test_a_leader_that_differs_from_its_followers_is_named(
    audited: DevCluster, topic_name: str
) -> None:
    create(audited, topic_name)
    produce(audited, topic_name, 600)
    broker = leader_of(audited, topic_name)
    header = change(audited, broker, topic_name, fork_producer)
    result = audit(audited, topic_name)
    assert only(result) == (FindingKind.DIFFERENT, header.base_offset, (broker,))
    assert "header" in result.findings[0].reason


def test_two_replicas_that_differ_are_both_named(audited: DevCluster, topic_name: str) -> None:
    create(audited, topic_name)
    produce(audited, topic_name, 600)
    leader = leader_of(audited, topic_name)
    one, other = (broker for broker in sorted(audited.brokers) if broker != leader)
    first = change(audited, one, topic_name, fork, segment=1)
    second = change(audited, other, topic_name, flip, segment=2)
    found = {(each.brokers, each.offset, each.kind) for each in audit(audited, topic_name).findings}
    assert found == {
        ((one,), first.last_offset, FindingKind.DIFFERENT),
        ((other,), second.base_offset, FindingKind.DAMAGED),
    }


def test_compacted_replicas_are_equal_whenever_they_were_compacted(
    audited: DevCluster, topic_name: str
) -> None:
    create(audited, topic_name, "cleanup.policy=compact", "min.cleanable.dirty.ratio=0")
    produce(audited, topic_name, 2_000, keys=30)
    wait_until(
        lambda: size_of(segments(audited, 1, topic_name)) < 200_000,
        what="the log is compacted",
    )
    result = audit(audited, topic_name)
    assert result.verdict is Verdict.EQUAL, (result.findings, result.not_compared)
    assert result.partitions[0].records == 30 and result.partitions[0].kind == "latest"
    broker = follower_of(audited, topic_name)
    header = change(audited, broker, topic_name, fork, segment=-1, batch=-1)
    kind, offset, brokers = only(audit(audited, topic_name))
    assert (kind, offset, brokers) == (FindingKind.DIFFERENT, header.last_offset, (broker,))


def test_replicas_that_expire_at_different_times_are_equal(
    audited: DevCluster, topic_name: str
) -> None:
    create(audited, topic_name, "retention.bytes=60000")
    produce(audited, topic_name, 1_000)
    wait_until(
        lambda: all(
            not segments(audited, one, topic_name)[0].name.startswith(f"{0:020d}-")
            for one in audited.brokers
        ),
        what="segments have expired",
    )
    result = audit(audited, topic_name)
    assert result.verdict is Verdict.EQUAL, (result.findings, result.not_compared)
    assert 0 < result.partitions[0].start < result.partitions[0].end == 1_000


def test_a_broker_that_is_down_makes_the_audit_incomplete(own_cluster: DevCluster) -> None:
    create(own_cluster, "t")
    produce(own_cluster, "t", 300)
    leader = leader_of(own_cluster, "t")
    own_cluster.kill(leader)
    wait_until(lambda: leader_of(own_cluster, "t") not in (-1, leader), what="another leads")
    result = audit(own_cluster, "t", timeout_ms=2_000)
    assert result.verdict is Verdict.INCOMPLETE and result.findings == []
    (missed,) = result.not_compared
    assert missed.broker == leader and missed.reason
    assert set(result.brokers.values()) == {
        "east",
        "west",
        "south",
    }  # Also of the one that is down.
    done = own_cluster.run(
        "pipeline", "audit", "-b", own_cluster.bootstrap, "--timeout-ms", "1000", check=False
    )
    assert done.returncode == 3 and f"broker {leader}" in done.stdout
    produce(own_cluster, "t", 300)
    own_cluster.start(leader)
    wait_until(
        lambda: audit(own_cluster, "t").verdict is Verdict.EQUAL, what="the broker has caught up"
    )
    assert audit(own_cluster, "t", with_internal=True).partitions[0].records == 600
