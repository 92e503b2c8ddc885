"""What `policy test --topic` says would move is what moves once the policy is set, on real brokers.

Source: docs/operating/placement.md; docs/decisions/0010-the-balancer.md."""

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from tests.integration.conftest import DevCluster, wait_until
from tests.integration.metadata import partitions_of

pytestmark = pytest.mark.integration

TIMEOUT_S = 60
TOPIC = "payments"
PARTITIONS = 8
RECORD_BYTES = 10_000
POLICIES = (
    "survive: [region, 2 brokers]\nleaders: {failback_delay_ms: 0}\n",
    "rules: [{count: 3, where: [{label: region, op: in, values: [east, south]}]}]\n"
    "leaders:\n  prefer: [[{label: region, op: in, values: [south]}]]\n  failback_delay_ms: 0\n",
)


def replicas(admin: AdminClient) -> list[list[int]]:
    return [list(one.replicas) for one in partitions_of(admin, TOPIC).values()]


def leaders(admin: AdminClient) -> list[int]:
    return [one.leader for one in partitions_of(admin, TOPIC).values()]


@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_told_is_what_happens(five: DevCluster, tmp_path: Path, policy: str) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(policy)
    where = ("--bootstrap", five.bootstrap)
    five.run("topic", "create", TOPIC, "-p", str(PARTITIONS), "-r", "3", *where)
    producer = Producer({"bootstrap.servers": five.bootstrap, "acks": "all", "linger.ms": 0})
    for number in range(PARTITIONS * 20):
        producer.produce(TOPIC, bytes(RECORD_BYTES), partition=number % PARTITIONS)
    assert producer.flush(TIMEOUT_S) == 0
    admin = AdminClient({"bootstrap.servers": five.bootstrap})
    before, led = replicas(admin), leaders(admin)

    def balance() -> Any:
        return json.loads(five.run("cluster", "balance", "--json", *where).stdout)

    wait_until(lambda: balance()["has_looked"], what="the balancer to know the brokers")
    lines = five.run("policy", "test", str(file), "--topic", TOPIC, *where).stdout.splitlines()
    assert lines[0].startswith(f"topic {TOPIC} with placement.policy ")
    told = json.loads(
        five.run("policy", "test", str(file), "--topic", TOPIC, "--json", *where).stdout
    )
    assert told["whole"] and not told["waits"] and told["moves"]
    assert replicas(admin) == before and not balance()["moves"]  # Nothing was changed.

    five.run("topic", "alter", TOPIC, "--policy", str(file), *where)
    wait_until(lambda: replicas(admin) == told["replicas"], what="what was told", timeout_s=90)
    after = {one["partition"]: one["after"] for one in told["leaders"]}
    expected = [after.get(index, one) for index, one in enumerate(led)]
    wait_until(lambda: leaders(admin) == expected, what="the leaders told", timeout_s=90)
    wait_until(lambda: not balance()["moves"], what="the end of all moves")
    assert replicas(admin) == told["replicas"] and balance()["waits"] == []

    copied = sum(
        len(set(new) - set(old)) for old, new in zip(before, told["replicas"], strict=True)
    )
    assert told["cost"]["copies"] >= copied  # A replica may take two steps.
    assert told["cost"]["bytes"] >= copied * 20 * RECORD_BYTES
