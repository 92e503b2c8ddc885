"""A follower that opens its log late catches up soon, however long its leader has tried before."""

import pytest
from tests.broker.cluster_world import ClusterWorld
from tests.broker.test_broker_in_a_cluster import produce

from strandline.replication.host.early_appends import EarlyAppends
from strandline.replication.replica.replica import Replica


def open_late(world: ClusterWorld) -> tuple[int, int]:
    """Close a follower's replica while records are written, and open it again 30 s later; how long
    it takes until it has everything, in ms, and how many messages said that it is there."""
    world.create_topic("flights")
    leader = world.leader_of("flights")
    late = next(one for one in world.hosts if one != leader)
    broker = world.broker(late)
    group = world.replicas_of("flights")[late].group
    broker.replication.close_group(group)
    for number in range(5):
        assert produce(world, "flights", b"%d" % number).error_code == 0
    world.advance(30_000)
    broker._hosting._look_again()
    begun_us = world.scheduler.now_us

    def is_whole() -> bool:
        replicas = world.replicas_of("flights")
        follower: Replica | None = replicas.get(late)
        return follower is not None and follower.high_watermark == 5

    world.until(is_whole)
    return (world.scheduler.now_us - begun_us) // 1_000, len(
        broker.replication.early_appends._missed
    )


def test_a_log_that_is_opened_late_has_everything_within_a_few_round_trips(
    cluster: ClusterWorld,
) -> None:
    waited_ms, still_missed = open_late(cluster)
    assert waited_ms < 500
    assert still_missed == 0


def test_without_a_word_its_leader_asks_seconds_later(
    cluster: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EarlyAppends, "on_opened", lambda *_: None)
    waited_ms, _ = open_late(cluster)
    assert waited_ms > 1_000
