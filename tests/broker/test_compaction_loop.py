"""Compaction begins soon after its condition holds, whatever the interval of other maintenance.

Source: Kafka's log.cleaner.backoff.ms; decision 0045."""

from collections.abc import Iterator

import pytest
from tests.broker.cluster_world import VOTERS, ClusterWorld, joined
from tests.broker.test_broker_in_a_cluster import fetch, produce, set_config
from tests.controller.controller_world import changes

from strandline.controller.commands import AlterConfigs

BACKOFF_MS = 15_000
HOUR_MS = 3_600_000


@pytest.fixture
def world() -> Iterator[ClusterWorld]:
    with joined(ClusterWorld(VOTERS, clean_interval_ms=HOUR_MS)) as made:
        yield made


def fill(world: ClusterWorld, topic: str, **configs: str) -> None:
    """A topic with ten values of one key, in a segment that is due to be closed soon."""
    world.create_topic(topic, configs=(("cleanup.policy", "compact"), ("segment.ms", "1000")))
    for key, value in configs.items():
        set_config(world, topic, key.replace("_", "."), value)
    for number in range(10):
        assert produce(world, topic, b"%d" % number).error_code == 0


def test_a_log_is_compacted_within_the_back_off_of_its_condition(world: ClusterWorld) -> None:
    fill(world, "table")
    world.advance(1_000 + BACKOFF_MS + 1_000)
    assert fetch(world, "table") == [b"9"]


def test_a_topic_that_is_not_compacted_is_left_alone(world: ClusterWorld) -> None:
    world.create_topic("log", configs=(("segment.ms", "1000"),))
    for number in range(3):
        produce(world, "log", b"%d" % number)
    world.advance(3 * BACKOFF_MS)
    assert fetch(world, "log") == [b"0", b"1", b"2"]


def test_a_lag_holds_compaction_back(world: ClusterWorld) -> None:
    fill(world, "table", min_compaction_lag_ms="60000")
    world.advance(2 * BACKOFF_MS)
    assert len(fetch(world, "table")) == 10
    world.advance(60_000)
    assert fetch(world, "table") == [b"9"]


def test_the_back_off_is_changed_while_brokers_run(world: ClusterWorld) -> None:
    change = changes(4, "", ("log.cleaner.backoff.ms", 0, "1000"))
    world.submit(AlterConfigs((change,)))
    world.advance(BACKOFF_MS)
    fill(world, "table")
    world.advance(5_000)
    assert fetch(world, "table") == [b"9"]
