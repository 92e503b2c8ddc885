"""A real broker is put into another region while librdkafka produces, as the page about it says.

Source: docs/decisions/0015-labels-at-run-time.md; docs/operating/placement.md."""

import json
from pathlib import Path

import pytest
from tests.integration.conftest import DevCluster, wait_until
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

TITLE = "Change labels while brokers run"


def labels_of(cluster: DevCluster, broker: int) -> dict[str, dict[str, str]]:
    """{"labels": ..., "configured": ...}"""
    where = ("--bootstrap", cluster.bootstrap, "--json")
    (told,) = json.loads(cluster.run("broker", "label", str(broker), *where).stdout)
    return {key: told[key] for key in ("labels", "configured")}


def kept_by(cluster: DevCluster, broker: int) -> dict[str, dict[str, str]]:
    """What the broker's data directory says."""
    (file,) = cluster.directory.glob(f"**/broker-{broker}/**/labels.json")
    found: dict[str, dict[str, str]] = json.loads(Path(file).read_text())
    return found


def test_a_broker_is_put_into_another_region_under_load_and_no_write_fails(
    five: DevCluster, tmp_path: Path
) -> None:
    where = ("--bootstrap", five.bootstrap)
    admin = place(five, tmp_path / "policy.yaml")
    spread = {("east", "south", "west")}
    assert regions_of(admin, TOPIC) == spread

    def racks() -> dict[int, str]:
        """As every Kafka client sees them."""
        return {one.id: one.rack for one in admin.describe_cluster().result(TIMEOUT_S).nodes}

    load = Load(five.bootstrap)
    try:
        wait_until(lambda: load.count > 500, what="the load")
        before = {one: racks()[one] for one in (1, 2, 4, 5)}
        told = type_in(five, commands("placement.md", TITLE))
        assert "nothing changed" in told and f"topic {TOPIC}: " in told
        assert labels_of(five, 3)["labels"] == {"region": "south"}
        assert labels_of(five, 3)["configured"] == {"region": "west"}
        wait_until(lambda: racks() == {**before, 3: "south"}, what="Kafka's rack")
        wait_until(
            lambda: regions_of(admin, TOPIC) == spread and not balance(five)["moves"],
            what="three regions again", timeout_s=90,
        )  # fmt: skip

        # Broker 4 is the last one in the west.
        for change in ("region=south", "region-"):
            refused = five.run("broker", "label", "4", change, *where, check=False)
            assert refused.returncode == 1 and f"topic {TOPIC}" in refused.stderr
            assert refused.stderr.endswith("to change the labels all the same, add --force\n")
        assert labels_of(five, 4)["labels"] == {"region": "west"}

        wait_until(lambda: kept_by(five, 3) == labels_of(five, 3), what="a copy on the disk")
        five.kill(3)
        five.start(3)
        assert labels_of(five, 3)["labels"] == {"region": "south"}
        wait_until(lambda: racks() == {**before, 3: "south"}, what="the rack, after a start")
        shown = five.run("broker", "label", "3", *where).stdout
        assert "region=south (configured: west)" in shown
        count = load.count
        wait_until(lambda: load.count > count + 500, what="more load")
    finally:
        load.stop()
    assert regions_of(admin, TOPIC) == spread
    assert balance(five)["waits"] == []
    expect_read(five, load.written)
