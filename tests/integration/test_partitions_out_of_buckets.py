"""Every replica of a partition loses its disk, and it begins anew with what buckets have of it.

Source: decision 0067; docs/operating/outages.md."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.integration.conftest import DevCluster, start_cluster, stop_cluster, wait_until
from tests.integration.metadata import partitions_of
from tests.integration.pages import commands, shown, try_line, type_in

pytestmark = pytest.mark.integration

TOPIC, HOME = "orders", (4, 5)
PAGE, TITLE = "outages.md", "All logs of a partition are lost, and buckets have records"
TIMEOUT_S = 60
CONFIG = (
    *("-c", "remote.storage.enable=true", "-c", "segment.bytes=1048576"),
    *("-c", "local.retention.ms=1000", "-c", "min.insync.replicas=1"),
)


@pytest.fixture
def five(tmp_path: Path) -> Iterator[DevCluster]:
    """Five brokers, with buckets; all vote in the controller."""
    settings = (
        "tiered.check_interval_ms=100",
        "tiered.export_interval_ms=500",
        "storage.retention_check_interval_ms=500",
    )
    made = start_cluster(
        tmp_path / "cluster",
        regions="east=2,west=2,south=1",
        options=("--tiered", *(word for one in settings for word in ("--set", one))),
    )
    yield made
    stop_cluster(made)


def produce(cluster: DevCluster, first: int, count: int) -> None:
    """Records of 1 kB with their numbers, all acknowledged."""
    failed: list[str] = []
    settings = {"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0}
    producer = Producer(settings)
    for at in range(first, first + count):
        producer.produce(
            TOPIC,
            value=b"%08d" % at + bytes(1_000),
            partition=0,
            on_delivery=lambda error, _: error and failed.append(str(error)),
        )
        producer.poll(0)
    assert producer.flush(TIMEOUT_S) == 0
    assert failed == []


def read(cluster: DevCluster, end: int) -> list[int]:
    """The numbers of the records with the offsets 0 to `end`, in order."""
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": "g", "log_level": 0}
    consumer = Consumer({**settings, "auto.offset.reset": "error", "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found: list[int] = []
    while len(found) < end:
        (message,) = consumer.consume(1, timeout=TIMEOUT_S) or [None]
        assert isinstance(message, Message) and message.error() is None, f"{len(found)} of {end}"
        assert message.offset() == len(found)
        value = message.value()
        assert value is not None
        found.append(int(value[:8]))
    consumer.close()
    return found


def tell(cluster: DevCluster, *arguments: str) -> dict[str, object]:
    told: dict[str, object] = json.loads(
        cluster.run(*arguments, "-b", cluster.bootstrap, "--json").stdout
    )
    return told


def buckets_end(cluster: DevCluster) -> int:
    """Up to which offset all buckets have the partition, by their exports."""
    (row,) = tell(cluster, "tiered", "status", TOPIC)["partitions"]  # type: ignore[misc]
    return min(one["end_offset"] for one in row["buckets"])  # type: ignore[index]


def status_names(cluster: DevCluster, line: str) -> bool:
    """Whether `cluster status` knows of the lost logs, and says to type that line."""
    page = json.loads(try_line(cluster, "strandline cluster status --json").stdout)
    expected = {"topic": TOPIC, "partitions": [0], "brokers": [*HOME], "all": True}
    is_known = {**expected, "has_buckets": True} in page["logs_lost"]
    words = line.removeprefix("strandline")
    return is_known and any(words in one for one in page["text"]["to type"])


def test_it_reads_on_and_appends_go_on(five: DevCluster) -> None:
    where = ("-b", five.bootstrap)
    five.run("topic", "create", TOPIC, "-p", "1", "-r", "2", *CONFIG, *where)
    home = ",".join(map(str, HOME))
    five.run("partition", "move", TOPIC, "0", "--to", home, "--force", *where)
    admin = AdminClient({"bootstrap.servers": five.bootstrap, "log_level": 0})
    wait_until(
        lambda: set(partitions_of(admin, TOPIC)[0].replicas) == set(HOME),
        what="the move",
        timeout_s=TIMEOUT_S,
    )
    produce(five, 0, 5_000)
    wait_until(lambda: buckets_end(five) > 3_500, what="the uploads", timeout_s=TIMEOUT_S)
    end = buckets_end(five)
    for broker in five.brokers:
        five.kill(broker)
    for broker in HOME:
        shutil.rmtree(five.directory / f"broker-{broker}/data")
    five.start_all()

    dry, sure = commands(PAGE, TITLE, 0), commands(PAGE, TITLE, 2)
    (told,) = shown(PAGE, TITLE)

    def is_foretold() -> bool:
        done = try_line(five, dry[0])
        return done.returncode == 0 and told in done.stdout

    wait_until(is_foretold, what="the forecast of the page", timeout_s=TIMEOUT_S)
    wait_until(
        lambda: status_names(five, dry[0]), what="the lost logs in the status", timeout_s=TIMEOUT_S
    )
    foretold = json.loads(type_in(five, [f"{dry[0]} --json"]))
    (row,) = foretold["partitions"]
    assert not foretold["declared"] and row["lost_from"] >= end
    end = row["lost_from"]
    refused = try_line(five, sure[0], typed="other\n")
    assert refused.returncode and "nothing done" in refused.stderr
    done = try_line(five, sure[0], typed=f"{TOPIC}\n")
    assert done.returncode == 0, done.stderr
    assert f"{TOPIC}-0 begins anew with offset {end}" in done.stdout

    assert read(five, end) == list(range(end))
    produce(five, 100_000, 3_000)
    expected = [*range(end), *range(100_000, 103_000)]
    assert read(five, end + 3_000) == expected
    wait_until(lambda: buckets_end(five) > end, what="later uploads", timeout_s=TIMEOUT_S)
    (topic,) = tell(five, "topic", "describe", TOPIC)["topics"]  # type: ignore[misc]
    (loss,) = topic["declared_lost"]  # type: ignore[index]
    assert (loss["at_risk_from"], loss["on_nobody_from"]) == (end, end)
    assert set(loss["buckets"]) == {"east", "west", "south"}
    told = five.run("topic", "describe", TOPIC, *where).stdout
    assert "it began anew with what" in told
    # Whatever is killed after that, the history stays.
    for broker in HOME:
        five.kill(broker)
    five.start_all()
    assert read(five, end + 3_000) == expected
    verified = five.run("tiered", "verify", TOPIC, "--config", str(config_of(five)), *where)
    assert "0 not sound" in verified.stdout
    again = try_line(five, f"{sure[0]} --yes")
    assert again.returncode and "nothing is lost" in again.stderr + again.stdout


def config_of(cluster: DevCluster) -> Path:
    return cluster.directory / "broker-1/config.toml"
