"""Observers on real brokers: read, killed and replaced while librdkafka produces with acks=all.

Source: docs/decisions/0017-observers.md; docs/operating/placement.md."""

import json
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from tests.integration.conftest import DevCluster, wait_until
from tests.integration.metadata import partitions_of
from tests.integration.placed_load import PARTITIONS, TOPIC, Load, expect_read
from tests.integration.raw_client import Broker

from strandline.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from strandline.records.batch import iterate_headers

pytestmark = pytest.mark.integration

WEST = (3, 4)
POLICY = """
rules:
  - {count: 3, where: [{label: region, op: in, values: [east, south]}]}
  - {role: observer, count: 1, where: [{label: region, op: in, values: [west]}]}
"""
CONSTRAINTS = {
    "version": 2,
    "replicas": [
        {"count": 2, "constraints": {"rack": "east"}},
        {"count": 1, "constraints": {"rack": "south"}},
    ],
    "observers": [{"count": 2, "constraints": {"rack": "west"}}],
}
FETCH_VERSION = 12


def described(cluster: DevCluster, topic: str) -> list[dict[str, list[int]]]:
    told = cluster.run("topic", "describe", topic, "--json", "--bootstrap", cluster.bootstrap)
    (one,) = json.loads(told.stdout)["topics"]
    return one["partitions"]  # type: ignore[no-any-return]


def observers(cluster: DevCluster) -> set[int]:
    return {broker for one in described(cluster, TOPIC) for broker in one["observers"]}


def count_at(broker: Broker, partition: int) -> int:
    """How many records this very broker serves from the beginning of a partition."""
    asked = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=10_000_000)
    request = FetchRequest(
        max_wait_ms=0, rack_id="west", topics=[FetchTopic(topic=TOPIC, partitions=[asked])]
    )
    with broker.connect() as client:
        found = client.ask(request, FetchResponse, FETCH_VERSION).responses[0].partitions[0]
    if found.error_code:
        return 0
    assert isinstance(found.records, bytes | bytearray | memoryview)
    headers = iterate_headers(memoryview(bytes(found.records)))
    return sum(one.last_offset_delta + 1 for one in headers)


def test_an_observer_is_read_killed_and_replaced_and_no_write_fails(
    five: DevCluster, tmp_path: Path
) -> None:
    where = ("--bootstrap", five.bootstrap)
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    made = ("topic", "create", TOPIC, "-p", str(PARTITIONS), "--policy", str(file), *where)
    assert "OBSERVERS" in five.run(*made).stdout
    load = Load(five.bootstrap)
    try:
        wait_until(lambda: load.count > 500, what="the load")
        assert observers(five) <= set(WEST)
        wait_until(
            lambda: all(
                set(one["in_sync"]) == set(one["replicas"][:3]) <= {1, 2, 5}
                for one in described(five, TOPIC)
            ),
            what="all voters in sync",
        )
        for one in described(five, TOPIC):
            (watching,) = one["observers"]
            assert one["replicas"][-1] == watching
            index = one["partition"]
            broker = Broker(five, watching)
            wait_until(lambda b=broker, i=index: count_at(b, i) > 50, what="reads")  # type: ignore[misc]
        five.run("cluster", "alter", "-c", "broker.lost.after.ms=4000", *where)
        dead = min(observers(five))
        (other,) = set(WEST) - {dead}
        five.kill(dead)
        before = load.count
        wait_until(lambda: load.count > before + 500, what="more load")
        wait_until(lambda: observers(five) == {other}, what="another observer", timeout_s=90)
        wait_until(lambda: count_at(Broker(five, other), 0) > 50, what="reads there")
        five.start(dead)
    finally:
        load.stop()
    expect_read(five, load.written)


def test_confluent_s_json_is_taken_from_kafka_s_own_clients(five: DevCluster) -> None:
    where = ("--bootstrap", five.bootstrap)
    text = json.dumps(CONSTRAINTS)
    five.run("topic", "create", "orders", "-p", "2", "-c",
             f"confluent.placement.constraints={text}", *where)  # fmt: skip
    assert all(sorted(one["observers"]) == list(WEST) for one in described(five, "orders"))
    admin = AdminClient({"bootstrap.servers": five.bootstrap})
    for one in partitions_of(admin, "orders").values():
        assert sorted(one.replicas[3:]) == list(WEST)
    wait_until(
        lambda: all(
            sorted(one.isrs) == sorted(one.replicas[:3]) and one.leader in (1, 2, 5)
            for one in partitions_of(admin, "orders").values()
        ),
        what="all voters in sync",
    )
    told = five.run("topic", "explain", "orders", *where).stdout
    assert "2 partitions of 3 voters and 2 observers" in told
    refused = five.run("partition", "move", "orders", "0", "--to", "1,2,5", *where, check=False)
    assert refused.returncode == 1 and "name 5 brokers, the observers last" in refused.stderr
