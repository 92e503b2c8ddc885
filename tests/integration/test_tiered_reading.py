"""Consumers of old records, which are in buckets only, see one history from its beginning to its
end: librdkafka, kafka-python, aiokafka and our own.

Source: decision 0060; KIP-405."""

import asyncio
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import OffsetSpec
from tests.integration.bucket_contents import log_files
from tests.integration.conftest import run, stop_cluster, wait_until
from tests.integration.raw_client import RawClient
from tests.integration.test_tiered_uploads import PARTITIONS, REGIONS, SEGMENT_BYTES, Tiered

from strandline.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from strandline.tiered.reading.chunk_files import object_id_of

pytestmark = pytest.mark.integration

RECORDS = 5_000
"""In each partition, of 1 kB."""
STEP_MS = 10
TIMEOUT_S = 120
History = dict[int, list[bytes]]
"""{partition: the values of its records}."""


def value_of(partition: int, at: int) -> bytes:
    return f"{partition}/{at}:".encode().ljust(1_000, bytes([97 + at % 26]))


def expected(count: int = RECORDS) -> History:
    return {one: [value_of(one, at) for at in range(count)] for one in range(PARTITIONS)}


def fill(tiered: Tiered, topic: str, start: int, end: int, *, first_ms: int) -> None:
    """Records [start, end) of each partition, all acknowledged, 10 ms apart."""
    failed: list[str] = []
    producer = Producer(
        {"bootstrap.servers": tiered.cluster.bootstrap, "acks": "all", "log_level": 0}
    )
    for at in range(start, end):
        for partition in range(PARTITIONS):
            producer.produce(
                topic,
                value=value_of(partition, at),
                partition=partition,
                timestamp=first_ms + STEP_MS * at,
                on_delivery=lambda error, _: error and failed.append(str(error)),
            )
        producer.poll(0)
    assert producer.flush(TIMEOUT_S) == 0
    assert failed == []


def local_start(tiered: Tiered, broker: int, topic: str, partition: int) -> int:
    return int(log_files(tiered.cluster.directory, broker, topic, partition)[0].name.split("-")[0])


def let_go(tiered: Tiered, topic: str, *, above: int = RECORDS // 2) -> None:
    """Every broker's disk has only the last records."""
    wait_until(lambda: tiered.has_all(topic), what="uploads", timeout_s=TIMEOUT_S)
    tiered.set(topic, "local.retention.bytes", str(SEGMENT_BYTES))
    for broker in (1, 2, 3):
        for partition in range(PARTITIONS):
            wait_until(
                lambda b=broker, p=partition: local_start(tiered, b, topic, p) > above,
                what=f"broker {broker} has let old records go",
                timeout_s=TIMEOUT_S,
            )


class Kept:
    """A cluster with one history, most of it in buckets only."""

    def __init__(self, directory: Path) -> None:
        self.tiered = Tiered(directory)
        self.first_ms = int(time.time() * 1_000) - 3_600_000
        self.tiered.create("t")
        fill(self.tiered, "t", 0, RECORDS, first_ms=self.first_ms)
        let_go(self.tiered, "t")

    @property
    def bootstrap(self) -> str:
        return self.tiered.cluster.bootstrap


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    made = Kept(tmp_path_factory.mktemp("tiered"))
    yield made
    stop_cluster(made.tiered.cluster)


@pytest.fixture
def tiered(tmp_path: Path) -> Iterator[Tiered]:
    made = Tiered(tmp_path)
    yield made
    stop_cluster(made.cluster)


# ---- clients -------------------------------------------------------------------------------------


def by_librdkafka(
    bootstrap: str, topic: str, count: int, on_records: Callable[[], None], **options: object
) -> History:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"librdkafka-{topic}",
            "enable.auto.commit": False,
            "log_level": 0,
            **options,
        }
    )
    consumer.assign([TopicPartition(topic, one, 0) for one in range(PARTITIONS)])
    seen: History = {one: [] for one in range(PARTITIONS)}
    deadline = time.monotonic() + TIMEOUT_S
    try:
        while sum(map(len, seen.values())) < count * PARTITIONS:
            assert time.monotonic() < deadline, {one: len(found) for one, found in seen.items()}
            for message in consumer.consume(500, 1.0):
                error = message.error()
                if error is not None:
                    assert error.code() == KafkaError._PARTITION_EOF or error.retriable(), error
                    continue
                partition, value = message.partition(), message.value()
                assert partition is not None and value is not None
                assert message.offset() == len(seen[partition])
                seen[partition].append(value)
            on_records()
    finally:
        consumer.close()
    return seen


def by_kafka_python(
    bootstrap: str, topic: str, count: int, on_records: Callable[[], None]
) -> History:
    from kafka import KafkaConsumer
    from kafka import TopicPartition as Place

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
    places = [Place(topic, one) for one in range(PARTITIONS)]
    consumer.assign(places)
    consumer.seek_to_beginning(*places)
    seen: History = {one: [] for one in range(PARTITIONS)}
    deadline = time.monotonic() + TIMEOUT_S
    try:
        while sum(map(len, seen.values())) < count * PARTITIONS:
            assert time.monotonic() < deadline, {one: len(found) for one, found in seen.items()}
            for place, records in consumer.poll(timeout_ms=1_000).items():
                for record in records:
                    assert record.offset == len(seen[place.partition])
                    seen[place.partition].append(record.value)
            on_records()
    finally:
        consumer.close()
    return seen


def by_aiokafka(bootstrap: str, topic: str, count: int, on_records: Callable[[], None]) -> History:
    from aiokafka import AIOKafkaConsumer
    from aiokafka import TopicPartition as Place

    seen: History = {one: [] for one in range(PARTITIONS)}

    async def run() -> None:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
        await consumer.start()
        try:
            places = [Place(topic, one) for one in range(PARTITIONS)]
            consumer.assign(places)
            await consumer.seek_to_beginning(*places)
            deadline = time.monotonic() + TIMEOUT_S
            while sum(map(len, seen.values())) < count * PARTITIONS:
                assert time.monotonic() < deadline, {one: len(found) for one, found in seen.items()}
                for place, records in (await consumer.getmany(timeout_ms=1_000)).items():
                    for record in records:
                        assert record.offset == len(seen[place.partition])
                        seen[place.partition].append(record.value)
                on_records()
        finally:
            await consumer.stop()

    asyncio.run(run())
    return seen


CLIENTS = (by_librdkafka, by_kafka_python, by_aiokafka)


def nothing() -> None:
    return None


# ---- tests ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", CLIENTS)
def test_the_whole_history_is_read_from_the_bucket_into_the_local_log(
    kept: Kept, client: Callable[..., History]
) -> None:
    assert client(kept.bootstrap, "t", RECORDS, nothing) == expected()


def test_our_own_consumer_reads_it_from_the_beginning_and_from_a_time(kept: Kept) -> None:
    def lines(*options: str) -> list[bytes]:
        arguments = ("consume", "t", "--bootstrap", kept.bootstrap, "--exit-at-end", *options)
        return run(*arguments).stdout.encode().splitlines()

    for partition, values in expected().items():
        assert lines("--partition", str(partition)) == values
    time_ms = kept.first_ms + STEP_MS * 700
    assert lines("--partition", "1", "--from", f"@{time_ms}") == expected()[1][700:]


def test_each_offset_has_its_record_first(kept: Kept) -> None:
    consumer = Consumer(
        {"bootstrap.servers": kept.bootstrap, "group.id": "seek", "enable.auto.commit": False}
    )
    try:
        for at in (*range(0, RECORDS, 371), RECORDS - 1):
            consumer.assign([TopicPartition("t", at % PARTITIONS, at)])
            (message,) = consumer.consume(1, TIMEOUT_S)
            assert message.error() is None
            assert (message.offset(), message.value()) == (at, value_of(at % PARTITIONS, at))
    finally:
        consumer.close()


def test_times_lead_to_their_records(kept: Kept) -> None:
    consumer = Consumer({"bootstrap.servers": kept.bootstrap, "group.id": "times"})
    try:
        for at in (0, 1, 777, RECORDS // 2, RECORDS - 1):
            asked = [TopicPartition("t", one, kept.first_ms + STEP_MS * at - 3) for one in (0, 1)]
            found = consumer.offsets_for_times(asked, TIMEOUT_S)
            assert [one.offset for one in found] == [at, at]
    finally:
        consumer.close()
    place = TopicPartition("t", 0)
    for spec, offset in (
        (OffsetSpec.earliest(), 0),
        (OffsetSpec.max_timestamp(), RECORDS - 1),
        (OffsetSpec.latest(), RECORDS),
        (OffsetSpec.for_timestamp(kept.first_ms), 0),
    ):
        (future,) = kept.tiered.admin.list_offsets({place: spec}).values()
        assert future.result(TIMEOUT_S).offset == offset


def test_the_local_start_and_the_last_tiered_record_are_told(kept: Kept) -> None:
    broker = kept.tiered.leader_of("t")
    port = int(kept.bootstrap.split(",")[broker - 1].rpartition(":")[2])
    with RawClient(port) as client:

        def told(timestamp: int) -> int:
            asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
            request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[asked])])
            (one,) = client.ask(request, ListOffsetsResponse, 11).topics[0].partitions
            assert one.error_code == 0
            return one.offset

        def is_on_the_disk() -> bool:
            return told(-4) == local_start(kept.tiered, broker, "t", 0)

        wait_until(is_on_the_disk, what="the files of records that are let go are removed")
        local = told(-4)
        assert local - 1 <= told(-5) < RECORDS
        assert told(-6) == told(-5) + 1


def test_a_consumer_near_a_follower_reads_from_that_region_s_bucket(kept: Kept) -> None:
    seen = by_librdkafka(
        kept.bootstrap, "t", RECORDS, nothing, **{"client.rack": "south", "group.id": "south"}
    )
    assert seen == expected()
    south = REGIONS.index("south") + 1
    cached = {
        one.name.partition("-")[0]
        for one in (kept.tiered.cluster.directory / f"broker-{south}").rglob("*.chunk")
    }
    bucket = kept.tiered.buckets["south"]
    own = {object_id_of("south", str(one.relative_to(bucket))) for one in bucket.rglob("*.segment")}
    assert cached and cached <= own


def is_back(away: Path, path: Path) -> bool:
    """Put a bucket back. What a broker has begun there meanwhile goes, also while it writes."""
    shutil.rmtree(path, ignore_errors=True)
    try:
        away.rename(path)
    except OSError:
        return False
    return True


@pytest.mark.parametrize("client", CLIENTS)
def test_consumers_wait_while_no_bucket_answers_and_go_on(
    tiered: Tiered, client: Callable[..., History]
) -> None:
    tiered.create("t")
    fill(tiered, "t", 0, RECORDS, first_ms=int(time.time() * 1_000))
    let_go(tiered, "t")
    away = {one: path.with_name(f"{one}-away") for one, path in tiered.buckets.items()}
    for region, path in tiered.buckets.items():
        path.rename(away[region])
    polls = 0

    def come_back() -> None:
        nonlocal polls
        polls += 1
        if polls == 3:  # Each is a second without records.
            for region, path in tiered.buckets.items():
                wait_until(lambda a=away[region], p=path: is_back(a, p), what=region)  # type: ignore[misc]

    assert client(tiered.cluster.bootstrap, "t", RECORDS, come_back) == expected()
    assert polls >= 3


def test_damaged_and_missing_objects_are_read_from_another_bucket(tiered: Tiered) -> None:
    tiered.create("t")
    fill(tiered, "t", 0, RECORDS, first_ms=int(time.time() * 1_000))
    let_go(tiered, "t")
    for at, path in enumerate(sorted(tiered.buckets["east"].rglob("*.segment"))):
        data = bytearray(path.read_bytes())
        data[at * 7_919 % len(data)] ^= 0x40
        path.write_bytes(data)
    for path in tiered.buckets["west"].rglob("*.segment"):
        path.unlink()
    seen = by_librdkafka(tiered.cluster.bootstrap, "t", RECORDS, nothing)
    assert seen == expected()


def test_a_consumer_crosses_the_seam_while_retention_moves_it(tiered: Tiered) -> None:
    """Records go while they are about to be read, again and again."""
    tiered.create("t")
    now_ms = int(time.time() * 1_000)
    count = 0
    for _ in range(2):
        fill(tiered, "t", count, count + 1_500, first_ms=now_ms)
        count += 1_500
    wait_until(lambda: tiered.has_all("t"), what="uploads", timeout_s=TIMEOUT_S)
    tiered.set("t", "local.retention.bytes", str(SEGMENT_BYTES))
    total = 6_000

    def produce_more() -> None:
        nonlocal count
        if count < total:
            fill(tiered, "t", count, count + 500, first_ms=now_ms)
            count += 500

    seen = by_librdkafka(
        tiered.cluster.bootstrap,
        "t",
        total,
        produce_more,
        **{"max.partition.fetch.bytes": 100_000, "queued.min.messages": 100},
    )
    assert seen == expected(total)
    wait_until(lambda: local_start(tiered, 1, "t", 0) > 1_500, what="the seam has moved")


def test_a_consumer_of_old_records_outlives_the_brokers_that_serve_it(tiered: Tiered) -> None:
    """Each broker is killed in turn; its cache begins with what a kill -9 left."""
    tiered.create("t")
    fill(tiered, "t", 0, RECORDS, first_ms=int(time.time() * 1_000))
    let_go(tiered, "t")
    polls = 0

    def kill_one() -> None:
        nonlocal polls
        polls += 1
        victim, is_back = divmod(polls, 4)
        if victim < len(REGIONS) and is_back in (1, 3):
            if is_back == 1:
                tiered.cluster.kill(victim + 1)
            else:
                tiered.cluster.start(victim + 1)

    seen = by_librdkafka(
        tiered.cluster.bootstrap,
        "t",
        RECORDS,
        kill_one,
        **{"max.partition.fetch.bytes": 100_000, "queued.min.messages": 100},
    )
    assert polls > 9
    assert seen == expected()
    # What the caches kept serves again, verified.
    assert by_librdkafka(tiered.cluster.bootstrap, "t", RECORDS, nothing) == expected()
