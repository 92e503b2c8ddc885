"""A real broker is replaced by a new one under load, as the page says for a laptop.

Source: docs/operating/brokers.md, "Rehearse it on a laptop"."""

import json
from collections.abc import Iterator
from itertools import count
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
def five(tmp_path: Path) -> Iterator[DevCluster]:
    """Five brokers in the directory that commands take by default; all vote in the controller."""
    cluster = start_cluster(tmp_path / "strandline-dev", regions="east=2,west=2,south=1")
    yield cluster
    stop_cluster(cluster)


def holders(cluster: DevCluster) -> set[int]:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    placed = partitions_of(admin, TOPIC).values()
    return {broker for one in placed for broker in one.replicas}


def test_a_broker_is_replaced_under_load_and_nothing_acknowledged_is_lost(
    five: DevCluster, tmp_path: Path
) -> None:
    where = ("--bootstrap", five.bootstrap)
    five.run("topic", "create", TOPIC, "-p", str(PARTITIONS), "-r", "5", *where)
    load = Load(five.bootstrap)
    try:
        wait_until(lambda: load.count > 500, what="the load")
        assert "broker 4" in type_in(five, commands(PAGE, TITLE, 1), directory=tmp_path)
        wait_until(lambda: bool(leaving(five)[4]["empty"]), what="an empty broker", timeout_s=90)
        assert holders(five) == {1, 2, 3, 5, 6}
        before = load.count
        told = type_in(five, commands(PAGE, TITLE, 2), directory=tmp_path)
        assert told == "broker 4 removed\n"
        wait_until(lambda: load.count > before + 500, what="more load")
    finally:
        load.stop()
    five.kill(1)  # The new voter counts: a majority of five is left without two old ones.
    five.kill(2)
    # The only replica may be placed on a broker whose death is not known yet.
    names = (f"later-{number}" for number in count())
    wait_until(
        lambda: not five.run(
            "topic", "create", next(names), "-r", "1", *where, check=False
        ).returncode,
        what="a decision of the controller", timeout_s=120,
    )  # fmt: skip
    five.start_all()
    five.dev("stop")
    five.dev("start")
    status = five.run("dev", "status", "--json", "--dir", str(five.directory)).stdout
    assert [(one["id"], one["serving"]) for one in json.loads(status)["brokers"]] == [
        (1, True), (2, True), (3, True), (5, True), (6, True),
    ]  # fmt: skip
    assert not (five.directory / "broker-4").exists()
    admin = AdminClient({"bootstrap.servers": five.bootstrap})
    nodes = admin.describe_cluster().result(TIMEOUT_S).nodes
    assert sorted(one.id for one in nodes) == [1, 2, 3, 5, 6]
    told = (five.directory / "broker-1" / "config.toml").read_text()
    assert "6@127.0.0.1" in told and "4@127.0.0.1" not in told
    expect_read(five, load.written)
