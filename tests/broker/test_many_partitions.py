"""Many partitions on a few brokers: the counts here must not grow with their number.

Source: design section 5 ("an idle group costs nothing in it")."""

from collections import Counter

import pytest
from tests.broker.cluster_world import ClusterWorld
from tests.broker.test_broker_in_a_cluster import fetch, produce

from strandline.controller.commands import CreateTopics, NewTopic
from strandline.model.ids import BrokerId
from strandline.replication.host.opening import FLUSHED_EACH_MAX
from strandline.replication.replica.replica import Replica
from strandline.replication.wire import Kind, encode_control

PARTITIONS = 40
FEW = FLUSHED_EACH_MAX + 2
TICKS_MS = 10_000


def sent_while_idle(world: ClusterWorld) -> int:
    """Messages of all brokers while nothing is asked of them."""
    world.advance(5_000)
    counters = world.fabric.counters
    before = sum(counters.sent_count.values())
    world.advance(TICKS_MS)
    return sum(counters.sent_count.values()) - before


def test_idle_groups_send_nothing_of_their_own(cluster: ClusterWorld) -> None:
    alone = sent_while_idle(cluster)
    cluster.create_topic("many", partitions=PARTITIONS)
    # A heartbeat and its answer for each pair of brokers, each way, ten times a second.
    pairs = 3 * 2
    most = pairs * 2 * (TICKS_MS // 100 + 1)
    assert alone <= most
    assert sent_while_idle(cluster) <= most


def test_new_leaders_are_announced_together(
    cluster: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    announced: list[int] = []

    def encode(kind: Kind, body: object) -> bytes:
        if kind is Kind.LEADERS:
            assert isinstance(body, list)
            announced.append(len(body))
        return encode_control(kind, body)

    monkeypatch.setattr("strandline.replication.host.control_outbox.encode_control", encode)
    cluster.create_topic("many", partitions=PARTITIONS)
    assert sum(announced) == PARTITIONS
    assert len(announced) < PARTITIONS / 2


def test_logs_that_are_created_together_are_made_durable_together(cluster: ClusterWorld) -> None:
    before = {one: host.disk.counters.directory_flush_count for one, host in cluster.hosts.items()}
    cluster.create_topic("many", partitions=PARTITIONS)
    for one, host in cluster.hosts.items():
        assert host.disk.counters.directory_flush_count - before[one] < PARTITIONS / 10


def test_a_state_that_moves_on_while_logs_are_opened_keeps_what_was_found(
    cluster: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strandline.broker.groups.hosting.RECONCILE_SHARE_MS", 0)
    disk = cluster.broker(2).replication.disk
    honest = disk.flush_file_system
    flushes: list[str] = []

    def flush(path: str) -> None:
        flushes.append(path)
        honest(path)

    monkeypatch.setattr(disk, "flush_file_system", flush)
    cluster.create_topic("many", partitions=FEW)
    assert 0 < len(flushes) <= 2
    del flushes[:]
    names = [f"one-{number}" for number in range(3)]
    for name in names:  # Each is a new version of the state.
        topic = NewTopic(name=name, partitions=FEW, replication_factor=3)
        cluster.submit(CreateTopics((topic,)))
    cluster.until(lambda: all(cluster.leader_of(name, one) for name in names for one in range(FEW)))
    assert 0 < len(flushes) <= 2 * len(names)
    assert len(cluster.broker(2).replication.replicas) == 1 + 4 * FEW


def test_a_broker_that_is_stopped_while_it_opens_logs_opens_them_at_its_next_start(
    cluster: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strandline.broker.groups.hosting.RECONCILE_SHARE_MS", 0)
    cluster.submit(CreateTopics((NewTopic(name="few", partitions=FEW, replication_factor=3),)))
    host, broker = cluster.hosts[2], cluster.broker(2)
    cluster.until(lambda: bool(broker.replication.opening.specs))
    assert host.process is not None
    host.process.run_now(broker.stop)
    host.process.run_now(broker.replication.stop)
    assert not broker.replication.opening.specs
    host.kill()
    host.start()
    cluster.until_started()
    cluster.until(lambda: len(cluster.broker(2).replication.replicas) == 1 + FEW)
    cluster.until(lambda: all(cluster.leader_of("few", one) for one in range(FEW)))


def test_what_was_acknowledged_by_new_logs_survives_a_power_failure(cluster: ClusterWorld) -> None:
    cluster.create_topic("many", partitions=PARTITIONS)
    assert produce(cluster, "many", b"kept").error_code == 0
    cluster.lose_power()
    cluster.until(lambda: all(cluster.leader_of("many", one) for one in range(PARTITIONS)))
    assert fetch(cluster, "many") == [b"kept"]


def test_logs_that_cannot_be_made_durable_take_no_part(
    cluster: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = cluster.broker(2).replication.disk
    honest = disk.flush_file_system
    calls: list[str] = []

    def failing(path: str) -> None:
        calls.append(path)
        if len(calls) == 1:
            cluster.hosts[2].disk.faults.fail_flush_count = 1
        honest(path)

    monkeypatch.setattr(disk, "flush_file_system", failing)
    cluster.create_topic("many", partitions=PARTITIONS)
    cluster.advance(5_000)
    assert calls
    held = cluster.broker(2).replication.replicas
    missing = PARTITIONS + 1 - len(held)
    assert 0 < missing <= PARTITIONS
    assert all(cluster.leader_of("many", one) for one in range(PARTITIONS))


def test_attempts_to_reach_a_dead_broker_cost_the_leaders_nothing(
    cluster: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.create_topic("many", partitions=PARTITIONS)
    cluster.hosts[3].kill()
    cluster.advance(5_000)
    asked: Counter[str] = Counter()

    def count(self: Replica, peer: BrokerId) -> None:
        asked[self.name] += 1

    monkeypatch.setattr(Replica, "on_peer_reset", count)
    cluster.advance(10_000)
    assert not asked
