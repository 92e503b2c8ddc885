"""A task whose broker is killed in the middle of its reading has every record once.

How:    the readers that Spark calls, without Spark; real brokers and kill -9.
Source: KIP-392; decisions/0049."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.conftest import DevCluster, start_cluster, stop_cluster
from tests.spark.jobs import Cluster, Record, create_topic, produce
from tests.spark.task_clients import close_task_clients

from strandline.client.cluster import Client
from strandline.config.addresses import parse_bootstrap
from strandline.spark.reading.batch_reader import BatchReader
from strandline.spark.reading.options import parse_options

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

RECORD_COUNT = 100_000
FETCH_BYTES = 1024
"""A batch at a time."""
SOUTH = 3
"""The broker of the third region."""


@pytest.fixture
def own_cluster(tmp_path: Path) -> Iterator[DevCluster]:
    """Three brokers for one test that breaks them."""
    cluster = start_cluster(tmp_path / "cluster", regions="east=1,west=1,south=1")
    yield cluster
    close_task_clients()
    stop_cluster(cluster)


def read(cluster: DevCluster, topic: str, **options: str) -> Iterator[list[dict[str, object]]]:
    """The rows of one batch after the other."""
    given = {"kafka.bootstrap.servers": cluster.bootstrap, "subscribe": topic, **options}
    given |= {"kafka.max.partition.fetch.bytes": str(FETCH_BYTES)}
    reader = BatchReader(parse_options(given), ("value", "offset"))
    for split in reader.partitions():
        for batch in reader.read(split):
            yield batch.to_pylist()


@pytest.mark.parametrize("rack", ["", "south"])
def test_a_broker_is_killed_while_a_task_reads_from_it(
    own_cluster: DevCluster, topic_name: str, rack: str
) -> None:
    cluster = Cluster(own_cluster.bootstrap)
    create_topic(cluster, topic_name, partitions=1)
    produce(cluster, topic_name, (Record(None, b"%032d" % n) for n in range(RECORD_COUNT)))
    with Client(parse_bootstrap(own_cluster.bootstrap)) as client:
        leader = client.leaders(topic_name, deadline_ms=client.deadline())[0]
    killed = SOUTH if rack else leader
    found: Counter[int] = Counter()
    number = 0
    for number, rows in enumerate(read(own_cluster, topic_name, **{"kafka.client.rack": rack})):
        if number == 2:
            own_cluster.kill(killed)
        for row in rows:
            assert isinstance(row["value"], bytes) and int(row["value"]) == row["offset"]
            found[int(row["value"])] += 1
    assert number > 4, "the broker was killed after the last request"
    assert sorted(found) == list(range(RECORD_COUNT))
    assert set(found.values()) == {1}
    own_cluster.start(killed)
