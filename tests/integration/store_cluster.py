"""A cluster whose buckets are on a real server, with a proxy before it that fails as stores do."""

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Producer
from tests.integration.conftest import DevCluster, start_cluster, wait_until
from tests.tiered.objects.faulty_proxy import FaultyProxy, faulty_proxy

from strandline.client.cluster import Client
from strandline.client.operations.tier import tier_status
from strandline.config.addresses import parse_bootstrap
from strandline.protocol.messages.describe_tier import TierPartitionStatus

REGIONS = ("east", "west", "south")
SEGMENT_BYTES = 1 << 20
VALUE_BYTES = 1_000
TIMEOUT_S = 90


@contextmanager
def proxy_thread(target: int) -> Iterator[FaultyProxy]:
    """A proxy before the server at this port, on a thread of its own."""
    started, stop = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()
    found: list[FaultyProxy] = []

    async def serve() -> None:
        async with faulty_proxy(target) as proxy:
            found.append(proxy)
            started.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert started.wait(30)
        yield found[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def s3_url(port: int) -> str:
    """Of the prefix PREFIX on the S3 server at this port."""
    return f"s3://logs/PREFIX?region=us-east-1&endpoint=http://127.0.0.1:{port}"


class StoreCluster:
    """Three brokers in three regions; each region's bucket is a prefix, where `url` has PREFIX.
    `credentials`: the file; None: the environment has them."""

    def __init__(self, directory: Path, url: str, *, credentials: Path | None = None) -> None:
        self.acknowledged: list[bytes] = []
        """Values of the topic's one partition, in order."""
        self.urls = [f"{one}={url.replace('PREFIX', f'{directory.name}/{one}')}" for one in REGIONS]
        settings = [
            f"tiered.buckets={','.join(self.urls)}",
            "tiered.check_interval_ms=100",
            "tiered.request_timeout_ms=4000",
            "tiered.upload_stall_timeout_ms=6000",
            "tiered.export_interval_ms=500",
            "storage.retention_check_interval_ms=500",
        ]
        if credentials is not None:
            settings.append(f"tiered.credentials_file={credentials}")
        self.cluster: DevCluster = start_cluster(
            directory / "cluster",
            regions=",".join(f"{region}=1" for region in REGIONS),
            options=tuple(word for one in settings for word in ("--set", one)),
        )

    def create(self, topic: str) -> None:
        words = (
            *("topic", "create", topic, "-p", "1", "-r", "3", "-b", self.cluster.bootstrap),
            *("-c", "remote.storage.enable=true", "-c", f"segment.bytes={SEGMENT_BYTES}"),
            *("-c", f"local.retention.bytes={SEGMENT_BYTES}"),
        )
        self.cluster.run(*words)

    def produce(self, topic: str, count: int) -> None:
        """Records that are all acknowledged."""
        producer = Producer(
            {
                "bootstrap.servers": self.cluster.bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "log_level": 0,
            }
        )
        failed: list[str] = []
        for _ in range(count):
            value = b"%d:" % len(self.acknowledged) + os.urandom(VALUE_BYTES)
            self.acknowledged.append(value)
            producer.produce(
                topic,
                value=value,
                partition=0,
                on_delivery=lambda error, _: error and failed.append(str(error)),
            )
            producer.poll(0)
        assert producer.flush(TIMEOUT_S) == 0 and failed == []

    def consume(self, topic: str) -> list[bytes]:
        """All values, from the earliest on."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.cluster.bootstrap,
                "group.id": f"all-{os.urandom(4).hex()}",
                "auto.offset.reset": "earliest",
                "check.crcs": True,
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        consumer.subscribe([topic])
        found: list[bytes] = []
        try:
            while len(found) < len(self.acknowledged):
                message = consumer.poll(TIMEOUT_S)
                assert message is not None, f"nothing after {len(found)} records"
                error = message.error()
                if error is None:
                    found.append(message.value())
                else:
                    assert error.code() == KafkaError._PARTITION_EOF, error
        finally:
            consumer.close()
        return found

    def row(self, topic: str) -> TierPartitionStatus | None:
        with Client(parse_bootstrap(self.cluster.bootstrap)) as client:
            return next(iter(tier_status(client, [topic]).partitions), None)

    def await_tiered(self, topic: str, *, above: int) -> None:
        """All closed segments are in all buckets, and older ones than `above` are off the disk."""

        def is_tiered() -> bool:
            row = self.row(topic)
            return (
                row is not None
                and len(row.buckets) == len(REGIONS)
                and all(one.object_count and not one.pending_bytes for one in row.buckets)
                and row.local_start_offset > above
            )

        wait_until(is_tiered, what="old segments are in buckets alone", timeout_s=TIMEOUT_S)

    def logs(self) -> str:
        """What all brokers logged."""
        paths = sorted(self.cluster.directory.glob("broker-*/broker.log"))
        assert paths
        return "\n".join(path.read_text() for path in paths)
