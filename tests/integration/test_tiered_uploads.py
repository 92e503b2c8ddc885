"""Closed segments go to every region's bucket, whatever is killed on the way, and only then leave
the brokers' disks.

Source: decisions 0057 and 0059."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from tests.integration.bucket_contents import (
    batches_of,
    ends_of,
    log_data,
    log_files,
    objects_in,
)
from tests.integration.conftest import DevCluster, start_cluster, stop_cluster, wait_until
from tests.integration.metadata import partitions_of

pytestmark = pytest.mark.integration

REGIONS = ("east", "west", "south")
TIMEOUT_S = 60
PARTITIONS = 2
SEGMENT_BYTES = 1 << 20


class Tiered:
    """Three brokers in three regions, each with a directory for a bucket."""

    def __init__(self, tmp_path: Path, *options: str) -> None:
        self.buckets = {region: tmp_path / "buckets" / region for region in REGIONS}
        for path in self.buckets.values():
            path.mkdir(parents=True)
        urls = ",".join(f"{region}=file://{path}" for region, path in self.buckets.items())
        settings = (
            f"tiered.buckets={urls}",
            "tiered.check_interval_ms=100",
            "tiered.upload_stall_timeout_ms=4000",
            "storage.retention_check_interval_ms=500",
            *options,
        )
        self.cluster: DevCluster = start_cluster(
            tmp_path / "cluster",
            regions=",".join(f"{region}=1" for region in REGIONS),
            options=tuple(word for one in settings for word in ("--set", one)),
        )
        self.admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap, "log_level": 0})
        self.next = 0

    def create(self, topic: str) -> None:
        config = {"remote.storage.enable": "true", "segment.bytes": str(SEGMENT_BYTES)}
        made = self.admin.create_topics([NewTopic(topic, PARTITIONS, 3, config=config)])
        made[topic].result(TIMEOUT_S)

    def set(self, topic: str, name: str, value: str) -> None:
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        for future in self.admin.incremental_alter_configs([resource]).values():
            future.result(TIMEOUT_S)

    def produce(self, topic: str, count: int) -> None:
        """Records of 1 kB, one half to each partition, all acknowledged."""
        failed: list[str] = []
        producer = Producer(
            {"bootstrap.servers": self.cluster.bootstrap, "acks": "all", "log_level": 0}
        )
        for _ in range(count):
            producer.produce(
                topic,
                value=os.urandom(1_000),
                partition=self.next % PARTITIONS,
                on_delivery=lambda error, _: error and failed.append(str(error)),
            )
            self.next += 1
            producer.poll(0)
        assert producer.flush(TIMEOUT_S) == 0
        assert failed == []

    def has_all(self, topic: str, *regions: str) -> bool:
        """Whether these buckets have all segments that are closed on the leaders' disks."""
        closed = {}
        for partition in range(PARTITIONS):
            leader = self.leader_of(topic, partition)
            if leader < 0:
                return False
            *_, active = log_files(self.cluster.directory, leader, topic, partition)
            closed[partition] = int(active.name.split("-")[0])
        buckets = [ends_of(self.buckets[region]) for region in regions or REGIONS]
        return all(
            ends.get(partition, 0) >= end for ends in buckets for partition, end in closed.items()
        )

    def leader_of(self, topic: str, partition: int = 0) -> int:
        return partitions_of(self.admin, topic)[partition].leader


@pytest.fixture
def tiered(tmp_path: Path) -> Iterator[Tiered]:
    made = Tiered(tmp_path)
    yield made
    stop_cluster(made.cluster)


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Tiered]:
    """Uploads of 1.5 MB a second for each broker, so that they can be met in the middle."""
    made = Tiered(
        tmp_path, "tiered.upload_bytes_per_s=1500000", "tiered.upload_stall_timeout_ms=30000"
    )
    yield made
    stop_cluster(made.cluster)


def test_every_bucket_has_the_logs_bytes_and_then_they_leave_the_disks(tiered: Tiered) -> None:
    tiered.create("t")
    tiered.produce("t", 10_000)
    wait_until(lambda: tiered.has_all("t"), what="all closed segments are in all buckets")
    for region in REGIONS:
        objects = objects_in(tiered.buckets[region])
        for partition in range(PARTITIONS):
            stored = batches_of(objects[partition])
            end = objects[partition][-1].end
            log = log_data(tiered.cluster.directory, 1, "t", partition)
            assert stored == {at: batch for at, batch in log.items() if at < end}
            assert end > 3_000
    before = len(log_files(tiered.cluster.directory, 1, "t", 0))
    assert before > 3
    tiered.set("t", "local.retention.bytes", str(SEGMENT_BYTES))
    for broker in (1, 2, 3):
        wait_until(
            lambda broker=broker: len(log_files(tiered.cluster.directory, broker, "t", 0)) <= 3,
            what=f"broker {broker} keeps only what local retention says",
        )
    assert tiered.has_all("t")


def test_uploads_outlive_their_uploader_their_leader_and_a_restart_of_all(slow: Tiered) -> None:
    tiered = slow
    tiered.create("t")
    tiered.produce("t", 8_000)
    wait_until(lambda: bool(ends_of(tiered.buckets["south"])), what="the first uploads")
    leader = tiered.leader_of("t")
    uploader = next(one for one in (3, 2) if one != leader)
    tiered.cluster.kill(uploader)
    wait_until(
        lambda: tiered.has_all("t"),
        what=f"the others upload for the region of broker {uploader}",
        timeout_s=TIMEOUT_S,
    )
    tiered.produce("t", 4_000)
    tiered.cluster.start(uploader)
    leader = tiered.leader_of("t")
    tiered.cluster.kill(leader)
    wait_until(lambda: tiered.leader_of("t") not in (leader, -1), what="another leader")
    wait_until(
        lambda: tiered.has_all("t"),
        what="another leader goes on",
        timeout_s=TIMEOUT_S,
    )
    tiered.cluster.start(leader)
    tiered.produce("t", 4_000)
    for broker in (1, 2, 3):
        tiered.cluster.kill(broker)
    tiered.cluster.start_all()
    wait_until(
        lambda: tiered.has_all("t"),
        what="all of them go on after a restart",
        timeout_s=TIMEOUT_S,
    )
    for region in REGIONS:
        for partition, objects in objects_in(tiered.buckets[region]).items():
            leader = tiered.leader_of("t", partition)
            log = log_data(tiered.cluster.directory, leader, "t", partition)
            stored = batches_of(objects)
            assert stored.keys() <= log.keys()
            assert all(log[at] == batch for at, batch in stored.items())


def test_a_bucket_that_is_gone_keeps_records_on_the_disks_until_it_is_back(
    tiered: Tiered,
) -> None:
    tiered.create("t")
    tiered.produce("t", 3_000)
    wait_until(lambda: tiered.has_all("t"), what="all closed segments are in all buckets")
    west = tiered.buckets["west"]
    away = west.with_name("away")
    west.rename(away)
    tiered.set("t", "local.retention.bytes", "1")
    tiered.produce("t", 8_000)
    wait_until(lambda: tiered.has_all("t", "east", "south"), what="the other buckets have all")
    kept = [int(one.name.split("-")[0]) for one in log_files(tiered.cluster.directory, 1, "t", 0)]
    assert kept[0] <= ends_of(away)[0], "what the bucket lacks stays"
    away.rename(west)
    wait_until(lambda: tiered.has_all("t"), what="the bucket catches up")
    wait_until(
        lambda: len(log_files(tiered.cluster.directory, 1, "t", 0)) <= 2,
        what="local retention goes on",
    )
