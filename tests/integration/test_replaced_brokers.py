"""A real broker is replaced by a new one under load, as the page says for a laptop.

Source: docs/operating/brokers.md, "Rehearse it on a laptop"."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from tests.integration.conftest import DevCluster, start_cluster, stop_cluster, wait_until
from tests.integration.metadata import partitions_of
from tests.integration.pages import commands, type_in
from tests.integration.placed_load import PARTITIONS, TIMEOUT_S, TOPIC, Load, expect_read
from tests.integration.test_broker_life import PAGE, leaving

pytestmark = pytest.mark.integration

TITLE = "Rehearse it on a laptop"


@pytest.fixture
def four(tmp_path: Path) -> Iterator[DevCluster]:
    """Four brokers in the directory that commands take by default; broker 4 has no vote."""
    cluster = start_cluster(tmp_path / "strandline-dev", regions="east=1,west=1,south=2")
    yield cluster
    stop_cluster(cluster)


def holders(cluster: DevCluster) -> set[int]:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    placed = partitions_of(admin, TOPIC).values()
    return {broker for one in placed for broker in one.replicas}


def test_a_broker_is_replaced_under_load_and_nothing_acknowledged_is_lost(
    four: DevCluster, tmp_path: Path
) -> None:
    where = ("--bootstrap", four.bootstrap)
    four.run("topic", "create", TOPIC, "-p", str(PARTITIONS), "-r", "4", *where)
    load = Load(four.bootstrap)
    try:
        wait_until(lambda: load.count > 500, what="the load")
        assert "broker 4" in type_in(four, commands(PAGE, TITLE, 1), directory=tmp_path)
        wait_until(lambda: bool(leaving(four)[4]["empty"]), what="an empty broker", timeout_s=90)
        assert holders(four) == {1, 2, 3, 5}
        before = load.count
        told = type_in(four, commands(PAGE, TITLE, 2), directory=tmp_path)
        assert told == "broker 4 removed\n"
        wait_until(lambda: load.count > before + 500, what="more load")
    finally:
        load.stop()
    four.dev("stop")
    four.dev("start")
    status = four.run("dev", "status", "--json", "--dir", str(four.directory)).stdout
    assert [(one["id"], one["serving"]) for one in json.loads(status)["brokers"]] == [
        (1, True), (2, True), (3, True), (5, True),
    ]  # fmt: skip
    assert not (four.directory / "broker-4").exists()
    admin = AdminClient({"bootstrap.servers": four.bootstrap})
    nodes = admin.describe_cluster().result(TIMEOUT_S).nodes
    assert sorted(one.id for one in nodes) == [1, 2, 3, 5]
    expect_read(four, load.written)
