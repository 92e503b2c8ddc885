"""Replicas of real brokers move by themselves while librdkafka produces: a policy is changed, a
broker is lost; and the page about it does what it says.

Source: docs/decisions/0010-the-balancer.md."""

from pathlib import Path

import pytest
from tests.integration.conftest import DevCluster, wait_until
from tests.integration.metadata import partitions_of
from tests.integration.pages import commands, type_in
from tests.integration.placed_load import (
    TIMEOUT_S,
    TOPIC,
    Load,
    balance,
    expect_read,
    place,
    regions_of,
)

pytestmark = pytest.mark.integration

WEST = "rules:\n  - {count: 2, where: [{label: region, op: in, values: [west]}]}\n"


def test_a_policy_is_changed_under_load_as_the_page_says_and_no_write_fails(
    five: DevCluster, tmp_path: Path
) -> None:
    file = tmp_path / "policy.yaml"
    where = ("--bootstrap", five.bootstrap)
    admin = place(five, file)
    assert regions_of(admin, TOPIC) == {("east", "south", "west")}
    load = Load(five.bootstrap)
    try:
        wait_until(lambda: load.count > 500, what="the load")
        file.write_text("survive: [region, 2 brokers]\n")
        lines = commands("placement.md", "Change your mind")
        assert len(lines) >= 4
        type_in(five, lines, directory=tmp_path)
        spread = {("east", "east", "south", "west", "west")}
        wait_until(lambda: regions_of(admin, TOPIC) == spread, what="5 replicas", timeout_s=90)

        file.write_text(WEST)
        five.run("topic", "alter", TOPIC, "--policy", str(file), *where)
        wait_until(
            lambda: regions_of(admin, TOPIC) == {("west", "west")}, what="the west", timeout_s=90
        )
        before = load.count
        wait_until(lambda: load.count > before + 500, what="more load")

        file.write_text("survive: [2 regions]\n")
        refused = five.run("topic", "alter", TOPIC, "--policy", str(file), *where, check=False)
        assert refused.returncode == 1
        assert "\n  this would be possible: " in refused.stderr
    finally:
        load.stop()
    expect_read(five, load.written)
    wait_until(lambda: not balance(five)["moves"], what="the end of all moves")
    assert balance(five)["waits"] == []


def test_a_lost_broker_is_replaced_under_load_and_a_lost_region_only_where_that_may_be(
    five: DevCluster, tmp_path: Path
) -> None:
    file = tmp_path / "policy.yaml"
    where = ("--bootstrap", five.bootstrap)
    admin = place(five, file)
    five.run("cluster", "alter", "-c", "broker.lost.after.ms=4000", *where)
    nodes = {node.id: node.rack for node in admin.describe_cluster().result(TIMEOUT_S).nodes}
    (south,) = [broker for broker, rack in nodes.items() if rack == "south"]
    victim = max(broker for broker, rack in nodes.items() if rack == "west")

    def holders() -> set[int]:
        found = partitions_of(admin, TOPIC).values()
        return {broker for one in found for broker in one.replicas}

    load = Load(five.bootstrap)
    try:
        wait_until(lambda: load.count > 500, what="the load")
        assert victim in holders()
        five.kill(victim)
        wait_until(lambda: victim not in holders(), what="other replicas", timeout_s=90)
        assert south in holders()
        five.kill(south)

        def needed() -> list[str]:
            waits = balance(five)["waits"]
            assert isinstance(waits, list)
            return [one["text"] for one in waits if one["reason"] == "needs-broker"]

        text = f"needs one more broker with region=south in place of broker {south}"
        wait_until(lambda: text in needed(), what="that it is said who is needed", timeout_s=90)
        assert south in holders()
        five.run("cluster", "alter", "-c", "balancer.best.effort.enable=true", *where)
        makeshift = {("east", "east", "west"), ("east", "west", "west")}
        wait_until(
            lambda: regions_of(admin, TOPIC) <= makeshift, what="makeshift replicas", timeout_s=90
        )
        assert south not in holders()
        five.start_all()
        whole = {("east", "south", "west")}
        wait_until(lambda: regions_of(admin, TOPIC) == whole, what="all to be well", timeout_s=90)
        wait_until(lambda: balance(five)["waits"] == [], what="nothing to be missing")
    finally:
        load.stop()
    expect_read(five, load.written)
