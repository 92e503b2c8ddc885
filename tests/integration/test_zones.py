"""A zone of a region is held by a person, is killed, and is released: real brokers that say in
which zone they are.

Source: docs/decisions/0018-outages.md; docs/operating/outages.md."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from tests.integration.conftest import ALARMS, DevCluster, start_cluster, stop_cluster, wait_until
from tests.integration.metadata import partitions_of
from tests.integration.test_outages import told

__all__ = ["told"]  # The fixture.

pytestmark = pytest.mark.integration

TOPIC, TIMEOUT_S = "payments", 60
LOST_AFTER_MS = 4_000
NAME = "west/a"


@pytest.fixture
def six(tmp_path: Path) -> Iterator[DevCluster]:
    """Four brokers in the west, one in each of two other regions."""
    cluster = start_cluster(tmp_path / "cluster", regions="east=1,west=4,south=1", options=ALARMS)
    yield cluster
    stop_cluster(cluster)


def status(cluster: DevCluster) -> dict[str, dict[str, object]]:
    """{name of a zone or region: what is shown of it}"""
    shown = cluster.run("zone", "status", "--json", "--bootstrap", cluster.bootstrap).stdout
    return {one["name"]: one for one in json.loads(shown)["zones"]}


def zone(cluster: DevCluster) -> tuple[object, ...]:
    """(what was said of the zone, whether it is down, whether it is held)"""
    found = status(cluster)[NAME]
    return found["ruling"], found["down"], found["held"]


def test_a_zone_is_held_killed_told_of_and_released(
    six: DevCluster, told: tuple[str, list[dict[str, object]]]
) -> None:
    url, posted = told
    where = ("--bootstrap", six.bootstrap)
    for one in (f"broker.lost.after.ms={LOST_AFTER_MS}", f"alarm.webhook.url={url}"):
        six.run("cluster", "alter", "-c", one, *where)
    west = status(six)["west"]["brokers"]
    assert isinstance(west, list) and len(west) == 4
    lost, left = sorted(west)[-2:], sorted(west)[:2]  # Of the controller's voters one at most.
    east = status(six)["east"]["brokers"]
    assert isinstance(east, list)
    for brokers, label in ((lost, "a"), (left, "b"), (east, "a")):
        six.run("broker", "label", ",".join(map(str, brokers)), f"zone={label}", *where)
    wait_until(lambda: status(six).get(NAME, {}).get("brokers") == lost, what="the labels")

    create = ("topic", "create", TOPIC, "-p", "6", "-c", 'placement.policy={"rules":[{"count":3}]}')
    six.run(*create, *where)
    admin = AdminClient({"bootstrap.servers": six.bootstrap})

    def replicas() -> list[list[int]]:
        return [sorted(one.replicas) for one in partitions_of(admin, TOPIC).values()]

    before = replicas()
    assert {one for each in before for one in each} & set(lost)

    six.run("zone", "hold", NAME, "--for", "1h", *where)
    wait_until(lambda: zone(six) == ("hold", False, True), what="the hold")
    assert "held by hand until " in six.run("zone", "status", *where).stdout
    six.run("zone", "release", NAME, *where)
    wait_until(lambda: zone(six) == (None, False, False), what="the end of it")

    for broker in lost:
        six.kill(broker)
    wait_until(lambda: zone(six) == (None, True, True), what="the outage", timeout_s=TIMEOUT_S)

    def alarms() -> list[tuple[object, ...]]:
        # One of the two may be told of before the other is silent, too; and what goes on is posted
        # again where the controller changes.
        keys = ("class", "subject", "state")
        told = [tuple(one[key] for key in keys) for one in posted if one["class"] != "broker"]
        return list(dict.fromkeys(told))

    wait_until(lambda: alarms() == [("zone", f"zone {NAME}", "begun")], what="the alarm")

    def lasted_ms() -> int:
        value = status(six)[NAME]["down_ms"]
        return value if isinstance(value, int) else 0

    wait_until(lambda: lasted_ms() > 4 * LOST_AFTER_MS, what="much more than a loss takes")
    assert replicas() == before and status(six)["west"]["down"] is False
    six.run("zone", "release", NAME, *where)
    wait_until(lambda: zone(six) == ("release", True, False), what="the release")
    wait_until(
        lambda: not {one for each in replicas() for one in each} & set(lost),
        what="replicas elsewhere",
        timeout_s=TIMEOUT_S,
    )
