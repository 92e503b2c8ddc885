"""Two of four voters are killed at once: the partition waits, and goes on after the command that
the page names.

Source: docs/decisions/0020-who-votes.md; docs/operating/outages.md."""

import json

import pytest
from confluent_kafka.admin import AdminClient
from tests.integration.conftest import DevCluster, wait_until
from tests.integration.metadata import partitions_of
from tests.integration.pages import commands, type_in
from tests.integration.test_kill import Writer, read_back

pytestmark = pytest.mark.integration

PAGE, TITLE = "outages.md", "Most voters of a partition are lost"
TOPIC, HOME, LOST = "orders", (2, 3, 4, 5), (4, 5)
LEFT = set(HOME) - set(LOST)
TIMEOUT_S = 60


def in_sync(cluster: DevCluster) -> set[int]:
    told = cluster.run("topic", "describe", TOPIC, "-b", cluster.bootstrap, "--json").stdout
    (topic,) = json.loads(told)["topics"]
    return set(topic["partitions"][0]["in_sync"])


def survivors(cluster: DevCluster) -> str:
    """What those who answer hold, and what to type."""
    return cluster.run("partition", "survivors", TOPIC, "0", "-b", cluster.bootstrap).stdout


def test_a_partition_that_has_lost_two_of_four_voters_goes_on_with_the_others(
    five: DevCluster,
) -> None:
    where = ("-b", five.bootstrap)
    five.run("topic", "create", TOPIC, "-p", "1", "-r", "4", "-c", "min.insync.replicas=2", *where)
    home = ",".join(map(str, HOME))
    five.run("partition", "move", TOPIC, "0", "--to", home, "--force", *where)
    wait_until(lambda: in_sync(five) == set(HOME), what="the move", timeout_s=TIMEOUT_S)
    writer = Writer(five, TOPIC, 1)
    writer.write(500)
    writer.flush()
    for broker in LOST:
        five.kill(broker)
    writer.write(500)
    (line,) = commands(PAGE, TITLE)
    wait_until(lambda: line in survivors(five), what="what to do", timeout_s=TIMEOUT_S)
    assert len(writer.acknowledged) == 500

    type_in(five, [line])
    writer.flush()
    assert len(writer.acknowledged) == 1_000 and in_sync(five) == LEFT
    admin = AdminClient({"bootstrap.servers": five.bootstrap})
    assert partitions_of(admin, TOPIC)[0].leader in LEFT

    for broker in LOST:
        five.start(broker)
    wait_until(lambda: in_sync(five) == set(HOME), what="four voters again", timeout_s=TIMEOUT_S)
    assert read_back(five, TOPIC, 1) == writer.acknowledged
