"""A file system that is really full: nothing acknowledged is lost, the broker lives on, and takes
writes again without a restart once there is space.

Source: reliability reference 6; each broker's data lies on a small tmpfs of its own."""

import contextlib
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)
from tests.integration.conftest import DevCluster, start_cluster, stop_cluster, wait_until
from tests.integration.raw_client import Broker, leader_if_any, leader_of

from strandline.protocol.errors import Error
from strandline.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from strandline.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from strandline.records.batch import iterate_headers
from strandline.records.record import Record, build_batch, decode_records

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount (2026-11-22)"),
]

DISK_BYTES = 16 * 1024 * 1024
AHEAD_BYTES = 1 << 20
"""So much space a log has set aside at first."""
RECORD_BYTES = 100_000
FILLER = "filler"
BROKERS = (1, 2, 3)
REGIONS = "east=1,west=1,south=1"
TIMEOUT_S = 30
REFUSALS = {
    Error.KAFKA_STORAGE_ERROR,
    Error.NOT_LEADER_OR_FOLLOWER,
    Error.NOT_ENOUGH_REPLICAS,
    Error.REQUEST_TIMED_OUT,
}
"""Codes on which producers try again."""


@contextlib.contextmanager
def cluster_on_small_disks(
    directory: Path, *settings: str, brokers: Sequence[int] = BROKERS, regions: str = REGIONS
) -> Iterator[DevCluster]:
    """Brokers, each with a small file system to itself."""
    mounted: list[Path] = []
    try:
        for broker in brokers:
            data = directory / f"broker-{broker}" / "data"
            data.mkdir(parents=True)
            command = [
                "mount",
                "-t",
                "tmpfs",
                "-o",
                f"size={DISK_BYTES},mode=0700",
                "none",
                str(data),
            ]
            subprocess.run(command, check=True)
            mounted.append(data)
        cluster = start_cluster(directory, regions=regions, options=settings)
        try:
            yield cluster
        finally:
            stop_cluster(cluster)
    finally:
        for data in mounted:
            subprocess.run(["umount", str(data)], check=True)


@pytest.fixture(scope="module", params=["space set aside", "no space set aside"])
def small_disks(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[DevCluster]:
    """Without space set aside, it is the write itself that meets the full disk.

    Every test leaves all brokers running, with room on their disks."""
    is_set_aside = str(request.param == "space set aside").lower()
    settings = (
        *("--set", f"storage.preallocate={is_set_aside}"),
        *("--set", "storage.retention_check_interval_ms=1000"),
    )
    with cluster_on_small_disks(tmp_path_factory.mktemp("cluster"), *settings) as cluster:
        yield cluster


@pytest.fixture
def topic(small_disks: DevCluster, topic_name: str) -> str:
    admin = AdminClient({"bootstrap.servers": small_disks.bootstrap})

    def is_created() -> bool:
        try:
            admin.create_topics([NewTopic(topic_name, 1, 3)])[topic_name].result(TIMEOUT_S)
        except KafkaException as error:
            # The controller may not know yet that there is room again.
            assert error.args[0].code() == KafkaError.INVALID_REPLICATION_FACTOR, error
            return False
        return True

    wait_until(is_created, what="the topic is created")
    return topic_name


class Writer:
    """Numbered records, one request each; `acknowledged` is {offset: value}."""

    def __init__(self, topic: str) -> None:
        self.acknowledged: dict[int, bytes] = {}
        self.topic = topic
        self._count = 0

    def write(self, broker: Broker) -> int:
        """Send the next record to `broker`; the error code."""
        value = b"%d" % self._count + bytes(RECORD_BYTES)
        self._count += 1
        data = PartitionProduceData(records=build_batch([Record(value=value)]))
        request = ProduceRequest(
            acks=-1,
            timeout_ms=20_000,
            topic_data=[TopicProduceData(name=self.topic, partition_data=[data])],
        )
        with broker.connect() as client:
            result = client.ask(request, ProduceResponse, 9).responses[0].partition_responses[0]
        if result.error_code == Error.NONE:
            self.acknowledged[result.base_offset] = value
        return result.error_code


def read_back(cluster: DevCluster, topic: str) -> dict[int, bytes | None]:
    """{offset: value} of everything in the topic."""
    found: dict[int, bytes | None] = {}

    def read_on() -> bool:
        asked = FetchPartition(fetch_offset=len(found), partition_max_bytes=DISK_BYTES)
        request = FetchRequest(
            max_bytes=DISK_BYTES, topics=[FetchTopic(topic=topic, partitions=[asked])]
        )
        with leader_of(cluster, topic).connect() as client:
            (part,) = client.ask(request, FetchResponse, 12).responses[0].partitions
        if part.error_code == Error.NOT_LEADER_OR_FOLLOWER:
            return False  # A new leader has no lease yet.
        assert part.error_code == Error.NONE
        assert isinstance(part.records, memoryview)
        for header in iterate_headers(part.records):
            for record in decode_records(part.records, header.position):
                assert header.base_offset + record.offset_delta == len(found)
                found[len(found)] = record.value
        return len(found) == part.high_watermark

    wait_until(read_on, what="everything is read")
    return found


def is_written(cluster: DevCluster, writer: Writer) -> bool:
    """Send the next record to whoever leads; whether it was acknowledged."""
    try:
        leader = leader_if_any(cluster, writer.topic)
        if leader is None:
            return False
        code = writer.write(leader)
    except ConnectionError:
        return False
    assert code in {Error.NONE, *REFUSALS}
    return code == Error.NONE


def write_all(cluster: DevCluster, writer: Writer, count: int) -> None:
    """Have so many records acknowledged."""
    for _ in range(count):
        wait_until(lambda: is_written(cluster, writer), what="a record is acknowledged")


def check_nothing_is_lost(cluster: DevCluster, writer: Writer) -> None:
    """What was refused may be there too: a time-out is no promise that it is not."""
    assert read_back(cluster, writer.topic).items() >= writer.acknowledged.items()


def fill(broker: Broker) -> None:
    """Leave no byte on the broker's disk."""
    with open(broker.data / FILLER, "wb", buffering=0) as file:
        try:
            while file.write(bytes(4_096)):
                pass
        except OSError:
            pass
    status = os.statvfs(broker.data)
    assert status.f_bavail == 0


def make_room(broker: Broker) -> None:
    (broker.data / FILLER).unlink()


def process_of(broker: Broker) -> str:
    """Which process it is."""
    return (broker.data.parent / "broker.pid").read_text()


def test_a_leader_without_space_refuses_and_takes_writes_again(
    small_disks: DevCluster, topic: str
) -> None:
    leader = leader_of(small_disks, topic)
    pid = process_of(leader)
    writer = Writer(topic)
    write_all(small_disks, writer, 1)
    fill(leader)
    codes = [writer.write(leader) for _ in range(2 * AHEAD_BYTES // RECORD_BYTES)]
    assert Error.KAFKA_STORAGE_ERROR in codes
    assert set(codes) <= {Error.NONE, *REFUSALS}
    assert any("producers are refused for now" in line for line in leader.said())
    check_nothing_is_lost(small_disks, writer)
    make_room(leader)
    write_all(small_disks, writer, 3)
    assert process_of(leader) == pid
    check_nothing_is_lost(small_disks, writer)


def test_a_follower_without_space_holds_up_nobody_and_catches_up(
    small_disks: DevCluster, topic: str
) -> None:
    leader = leader_of(small_disks, topic)
    full, other = (Broker(small_disks, one) for one in BROKERS if one != leader.number)
    pid = process_of(full)
    writer = Writer(topic)
    write_all(small_disks, writer, 1)
    fill(full)
    write_all(small_disks, writer, 30)
    wait_until(
        lambda: any("No space left" in line for line in full.said()), what="the disk is full"
    )
    make_room(full)
    # Without the other follower, nothing is acknowledged unless this one has all of it.
    small_disks.kill(other.number)
    write_all(small_disks, writer, 1)
    assert process_of(full) == pid
    check_nothing_is_lost(small_disks, writer)
    small_disks.start(other.number)


def test_a_broker_that_starts_on_a_full_disk_takes_part_once_there_is_space(
    small_disks: DevCluster, topic: str
) -> None:
    leader = leader_of(small_disks, topic)
    full, other = (Broker(small_disks, one) for one in BROKERS if one != leader.number)
    writer = Writer(topic)
    write_all(small_disks, writer, 1)
    small_disks.kill(full.number)
    fill(full)
    small_disks.start(full.number)
    pid = process_of(full)
    write_all(small_disks, writer, 20)
    make_room(full)
    small_disks.kill(other.number)
    write_all(small_disks, writer, 1)
    assert process_of(full) == pid
    check_nothing_is_lost(small_disks, writer)
    small_disks.start(other.number)


def test_a_broker_without_room_for_its_votes_says_so_in_one_line(small_disks: DevCluster) -> None:
    broker = Broker(small_disks, BROKERS[0])
    small_disks.kill(broker.number)
    journal = broker.data / "state.journal"
    # As it would be had the broker found no space when it took some ahead.
    journal.write_bytes(journal.read_bytes().rstrip(b"\0") + bytes(16))
    (broker.data / "reserve").unlink()  # And had lent what it keeps.
    fill(broker)
    said = len(broker.said())
    small_disks.run("dev", "broker", "start", "1", "--dir", str(small_disks.directory), check=False)
    why, end = broker.said()[said:]
    assert "it was little when the broker started" in why
    assert end == f"error: {journal}: No space left on device"
    make_room(broker)
    small_disks.start(broker.number)


def test_records_are_deleted_where_all_disks_are_full_and_make_room(
    small_disks: DevCluster, topic: str
) -> None:
    """After a start of all brokers, too: somebody leads, for reads and for that."""
    brokers = [Broker(small_disks, one) for one in BROKERS]
    admin = AdminClient({"bootstrap.servers": small_disks.bootstrap})
    configs = ConfigResource(
        ConfigResource.Type.TOPIC,
        topic,
        incremental_configs=[
            ConfigEntry("segment.bytes", str(1 << 20), incremental_operation=AlterConfigOpType.SET)
        ],
    )
    admin.incremental_alter_configs([configs])[configs].result(TIMEOUT_S)
    writer = Writer(topic)
    write_all(small_disks, writer, 40)
    for broker in brokers:
        fill(broker)
    for broker in brokers:
        small_disks.kill(broker.number)
    small_disks.start_all()

    wait_until(lambda: leader_if_any(small_disks, topic) is not None, what="somebody leads")
    check_nothing_is_lost(small_disks, writer)
    partition = TopicPartition(topic, 0, 35)

    def is_deleted() -> bool:
        try:
            admin.delete_records([partition], request_timeout=10)[partition].result(TIMEOUT_S)
        except KafkaException:
            return False  # Nobody leads now.
        return True

    wait_until(is_deleted, what="records are deleted")
    write_all(small_disks, writer, 1)
    # Two of them are enough for that.
    wait_until(
        lambda: all((broker.data / "reserve").stat().st_size for broker in brokers),
        what="space is kept again",
    )
    for broker in brokers:
        make_room(broker)
