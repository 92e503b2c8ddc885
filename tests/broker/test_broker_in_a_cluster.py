"""Brokers join, host the groups that the controller's state asks for, and serve through a loss.

Source: design sections 3 and 5; reliability reference 1b."""

from collections.abc import Callable, Iterator
from errno import EIO
from typing import Any

import pytest
from tests.broker.broker_world import batch_of
from tests.broker.cluster_world import CLEAN_INTERVAL_MS, ClusterWorld, joined

from strandline.base.errors import OperatorError
from strandline.broker.groups.group_settings import GroupSettings, TopicSettings
from strandline.broker.groups.hosting import RECONCILE_SHARE_MS
from strandline.broker.groups.log_opener import FULL_RETRY_MS
from strandline.controller.commands import (
    AlterConfigs,
    AlterReassignments,
    ConfigChange,
    ConfigOperation,
    DeleteTopics,
    ResourceChanges,
    ResourceResults,
    ResourceType,
    TopicResults,
    TopicToDelete,
    WantedReplicas,
)
from strandline.controller.records import VotersStable
from strandline.model.cluster import Partition
from strandline.model.ids import CONTROLLER_GROUP, BrokerId
from strandline.protocol.errors import Error
from strandline.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from strandline.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from strandline.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from strandline.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from strandline.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from strandline.records.batch import iterate_headers
from strandline.records.record import decode_records
from strandline.replication.host.group_spec import GroupSpec
from strandline.replication.host.opening import FLUSHED_EACH_MAX, Opening
from strandline.replication.replica.replica import Replica
from strandline.simulation.disk.disk import SimDisk

NOT_A_VOTER = 4


@pytest.fixture(scope="module")
def shared() -> Iterator[ClusterWorld]:
    """Four brokers that have joined; tests use topics of their own and leave all brokers up."""
    with joined(ClusterWorld()) as world:
        yield world


@pytest.fixture
def cluster() -> Iterator[ClusterWorld]:
    """The same, for tests that do worse to it."""
    with joined(ClusterWorld()) as world:
        yield world


def produce(
    world: ClusterWorld, topic: str, *values: bytes, acks: int = -1, **options: int
) -> PartitionProduceResponse:
    """One batch to partition 0, by way of its leader."""
    leader = world.leader_of(topic)
    timestamp = world.broker(leader).services.clock.wall_ms()
    data = PartitionProduceData(records=batch_of(*values, timestamp=timestamp, **options))
    request = ProduceRequest(
        acks=acks,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )
    answer = world.ask(leader, request, ProduceResponse, 9)
    return answer.responses[0].partition_responses[0]


def fetch(world: ClusterWorld, topic: str, *, at: int = 0, offset: int = 0) -> list[bytes | None]:
    """The values in partition 0, from its leader or from broker `at`."""
    asked = FetchPartition(fetch_offset=offset, partition_max_bytes=1_000_000)
    request = FetchRequest(
        max_wait_ms=1_000, min_bytes=1, topics=[FetchTopic(topic=topic, partitions=[asked])]
    )
    answer = world.ask(at or world.leader_of(topic), request, FetchResponse, 12)
    (part,) = answer.responses[0].partitions
    assert part.error_code == 0
    records = part.records
    assert isinstance(records, memoryview)
    return [
        record.value
        for header in iterate_headers(records)
        for record in decode_records(records, header.position)
    ]


def latest(world: ClusterWorld, topic: str) -> int:
    asked = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(timestamp=-1)])
    request = ListOffsetsRequest(topics=[asked])
    answer = world.ask(world.leader_of(topic), request, ListOffsetsResponse, 7)
    return answer.topics[0].partitions[0].offset


def set_config(world: ClusterWorld, topic: str, key: str, value: str) -> None:
    change = ConfigChange(key, ConfigOperation.SET, value)
    answer = world.submit(AlterConfigs((ResourceChanges(ResourceType.TOPIC, topic, (change,)),)))
    assert isinstance(answer, ResourceResults)
    assert answer.resources[0].error_code == 0, answer


def delete(world: ClusterWorld, topic: str, *, at: int = 1) -> None:
    answer = world.submit(DeleteTopics((TopicToDelete(name=topic),)), at=at)
    assert isinstance(answer, TopicResults)
    assert answer.topics[0].error_code == 0, answer


def test_every_broker_knows_the_same_cluster(shared: ClusterWorld) -> None:
    ids = {shared.broker(one).controller.cluster.cluster_id for one in shared.hosts}
    assert len(ids) == 1
    assert set(shared.cluster_ids.values()) == ids
    shared.until(
        lambda: all(
            sorted(shared.broker(one).controller.cluster.brokers) == [1, 2, 3, 4]
            for one in shared.hosts
        )
    )
    answer = shared.ask(NOT_A_VOTER, MetadataRequest(topics=[]), MetadataResponse, 9)
    assert [(one.node_id, one.host) for one in answer.brokers] == [
        (one, f"kafka-{one}") for one in (1, 2, 3, 4)
    ]
    assert answer.controller_id in (1, 2, 3)


def test_a_broker_that_is_no_voter_observes_the_controller(shared: ClusterWorld) -> None:
    for one in shared.hosts:
        shared.until(
            lambda one=one: shared.controller(one).configuration.observers == (NOT_A_VOTER,)
        )
        assert shared.controller(one).configuration.voters == (1, 2, 3)


def test_a_topic_is_hosted_where_the_controller_says_and_led_by_the_preferred(
    shared: ClusterWorld,
) -> None:
    shared.create_topic("spread", partitions=8)
    topic = shared.broker(1).controller.cluster.topics["spread"]
    for partition in topic.partitions:
        replicas = shared.replicas_of("spread", partition.index)
        assert sorted(replicas) == sorted(partition.replicas)
        assert shared.leader_of("spread", partition.index) == partition.replicas[0]


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_what_was_acknowledged_is_read_back(shared: ClusterWorld, acks: int) -> None:
    topic = f"acks{acks}"
    shared.create_topic(topic)
    if acks:
        assert produce(shared, topic, b"a", b"b", acks=acks).base_offset == 0
        assert produce(shared, topic, b"c", acks=acks).base_offset == 2
        assert fetch(shared, topic) in ([b"a", b"b", b"c"], [b"a", b"b"])
        shared.until(lambda: latest(shared, topic) == 3)
        assert fetch(shared, topic, offset=2) == [b"c"]


def test_followers_serve_what_is_committed(shared: ClusterWorld) -> None:
    shared.create_topic("followed")
    assert produce(shared, "followed", b"a").error_code == 0
    for one in shared.replicas_of("followed"):
        assert fetch(shared, "followed", at=one) == [b"a"]


def test_an_idempotent_producers_repetition_gets_the_same_offset(shared: ClusterWorld) -> None:
    shared.create_topic("once")
    request = InitProducerIdRequest(transactional_id=None)
    ids = [shared.ask(one, request, InitProducerIdResponse, 4) for one in (1, 2, 1)]
    assert len({one.producer_id for one in ids}) == 3
    own = {"producer_id": ids[0].producer_id, "producer_epoch": 0}
    for _ in range(2):
        assert produce(shared, "once", b"a", b"b", base_sequence=0, **own).base_offset == 0
    assert produce(shared, "once", b"c", base_sequence=2, **own).base_offset == 2
    gap = produce(shared, "once", b"d", base_sequence=9, **own)
    assert gap.error_code == Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert gap.log_start_offset == 0
    assert fetch(shared, "once") == [b"a", b"b", b"c"]


def test_a_topics_configuration_reaches_its_logs_and_its_quorum(shared: ClusterWorld) -> None:
    shared.create_topic("tuned")
    set_config(shared, "tuned", "retention.ms", "1234")
    set_config(shared, "tuned", "min.insync.replicas", "3")
    replicas = shared.replicas_of("tuned").values()
    shared.until(lambda: all(one.log.config.retention_ms == 1234 for one in replicas))
    shared.until(lambda: all(one.configuration.min_insync == 3 for one in replicas))
    assert produce(shared, "tuned", b"on all three").error_code == 0


def test_old_segments_go_when_their_time_is_over(shared: ClusterWorld) -> None:
    shared.create_topic("short")
    set_config(shared, "short", "segment.ms", "2000")
    set_config(shared, "short", "retention.ms", "5000")
    produce(shared, "short", b"old")
    shared.advance(9_000)
    produce(shared, "short", b"new")
    leader = shared.replicas_of("short")[shared.leader_of("short")]
    shared.until(lambda: leader.log_start_offset == 1)
    assert fetch(shared, "short", offset=1) == [b"new"]


def test_a_deleted_topic_is_gone_from_every_disk(shared: ClusterWorld) -> None:
    shared.create_topic("doomed", partitions=4)
    assert any(name.startswith("doomed") for name in shared.directories(1))
    delete(shared, "doomed", at=NOT_A_VOTER)
    shared.until(
        lambda: (
            not any(
                name.startswith("doomed")
                for one in shared.hosts
                for name in shared.directories(one)
            )
        )
    )
    asked = MetadataRequest(
        topics=[MetadataRequestTopic(name="doomed")], allow_auto_topic_creation=False
    )
    answer = shared.ask(1, asked, MetadataResponse, 9)
    assert answer.topics[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION


def test_another_leader_goes_on_where_a_killed_one_stopped(cluster: ClusterWorld) -> None:
    cluster.create_topic("t")
    assert produce(cluster, "t", b"before").error_code == 0
    killed = cluster.leader_of("t")
    cluster.hosts[killed].kill()
    cluster.until(lambda: cluster.leader_of("t") not in (0, killed))
    assert produce(cluster, "t", b"after").base_offset == 1
    cluster.advance(3_000)
    other = next(one for one in cluster.hosts if one != killed)
    answer = cluster.ask(other, MetadataRequest(topics=None), MetadataResponse, 9)
    assert killed not in [one.node_id for one in answer.brokers]
    assert answer.topics[0].partitions[0].leader_id == cluster.leader_of("t")
    cluster.hosts[killed].start()
    cluster.until_started(killed)
    cluster.until(lambda: cluster.replicas_of("t")[killed].high_watermark == 2)
    assert fetch(cluster, "t", at=killed) == [b"before", b"after"]


def test_a_cluster_that_lost_its_power_comes_back_whole(cluster: ClusterWorld) -> None:
    cluster.create_topic("t")
    for number in range(5):
        assert produce(cluster, "t", b"%d" % number).error_code == 0
    cluster.lose_power()
    cluster.until(lambda: cluster.leader_of("t") != 0)
    assert fetch(cluster, "t") == [b"0", b"1", b"2", b"3", b"4"]


def test_what_was_deleted_while_a_broker_was_away_goes_when_it_returns(
    cluster: ClusterWorld,
) -> None:
    cluster.create_topic("doomed", partitions=4)
    cluster.create_topic("kept", partitions=4)
    away = 3
    before = cluster.directories(away)
    cluster.hosts[away].kill()
    delete(cluster, "doomed")
    cluster.hosts[away].start()
    cluster.until_started(away)
    after = cluster.directories(away)
    assert after == [name for name in before if name.startswith("kept")]
    assert after != before


def test_a_broker_of_another_cluster_is_refused(cluster: ClusterWorld) -> None:
    cluster.hosts[2].kill()
    cluster.cluster_ids[2] = "another-cluster"
    cluster.hosts[2].start()
    cluster.until(lambda: cluster.starts[2].done())
    with pytest.raises(OperatorError, match="refuses broker 2: broker 2 belongs to cluster anoth"):
        cluster.starts[2].result()


class SlowClock:
    """Time goes by whenever it is looked at."""

    def __init__(self) -> None:
        self._now_ms = 0

    def monotonic_ms(self) -> int:
        self._now_ms += RECONCILE_SHARE_MS // 2
        return self._now_ms


def test_many_groups_are_gone_through_in_shares(shared: ClusterWorld) -> None:
    shared.create_topic("shares", partitions=20)
    hosting = shared.broker(1)._hosting
    clock, hosting._clock = hosting._clock, SlowClock()  # type: ignore[assignment]
    held = [group for group in shared.broker(1).replication.replicas if group != CONTROLLER_GROUP]

    def shares() -> int:
        count = 1
        while not hosting.reconcile():
            count += 1
        return count

    hosting._is_all_due = True
    assert shares() >= len(held) // 2 >= 5  # Two at a time.
    for group in held:
        hosting._on_applied(VotersStable(group, 1))
    assert shares() >= len(held) // 2
    hosting._clock = clock
    assert hosting.reconcile()


def test_a_change_of_one_partition_is_no_work_for_the_others(
    shared: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared.create_topic("untouched", partitions=20)
    shared.create_topic("changed", partitions=1)
    seen: list[str] = []
    for hosting in (shared.broker(one)._hosting for one in shared.hosts):
        honest = hosting._take_up

        def take_up(
            partition: Partition,
            settings: object,
            honest: Callable[[Partition, Any], list[GroupSpec]] = honest,
        ) -> list[GroupSpec]:
            seen.append(partition.topic)
            return honest(partition, settings)

        monkeypatch.setattr(hosting, "_take_up", take_up)
    shared.advance(1_000)
    seen.clear()
    leader = shared.leader_of("changed")
    partition = shared.broker(leader).controller.cluster.topics["changed"].partitions[0]
    other = next(one for one in partition.replicas if one != leader)
    wanted = WantedReplicas(topic="changed", index=0, replicas=(BrokerId(leader), other))
    shared.submit(AlterReassignments((wanted,)))
    cluster = shared.broker(leader).controller.cluster
    shared.until(lambda: len(cluster.topics["changed"].partitions[0].replicas) == 2)
    shared.advance(1_000)
    assert set(seen) == {"changed"}


def test_upkeep_visits_every_log_within_its_interval(cluster: ClusterWorld) -> None:
    cluster.create_topic("many", partitions=20)
    visited: set[str] = set()
    replicas = cluster.broker(1).replication.replicas.values()
    for replica in replicas:
        replica.clean = lambda name=replica.name: visited.add(name)  # type: ignore[method-assign]
    cluster.advance(2 * CLEAN_INTERVAL_MS + 100)
    assert visited == {replica.name for replica in replicas}


def test_a_log_that_finds_no_space_to_begin_in_begins_once_there_is_some(
    cluster: ClusterWorld,
) -> None:
    disk = cluster.hosts[NOT_A_VOTER].disk
    disk.faults.foreign_bytes = disk.capacity_bytes
    cluster.create_topic("t", partitions=4, replicas=4)
    cluster.advance(FULL_RETRY_MS)
    assert NOT_A_VOTER not in cluster.replicas_of("t")
    disk.faults.foreign_bytes = 0
    cluster.until(lambda: all(NOT_A_VOTER in cluster.replicas_of("t", one) for one in range(4)))
    assert produce(cluster, "t", b"a").error_code == 0
    replica = cluster.replicas_of("t")[NOT_A_VOTER]
    cluster.until(lambda: replica.failed is not None or replica.high_watermark == 1)
    assert replica.failed is None


def test_a_log_that_cannot_be_removed_keeps_no_other_waiting(
    cluster: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are deleted by one command, and nothing happens in the cluster after that."""
    for name in ("stuck", "gone"):
        cluster.create_topic(name)
    cluster.advance(1_000)
    honest = SimDisk.remove_tree

    def remove_tree(self: SimDisk, path: str) -> None:
        if "stuck" in path:
            raise OSError(EIO, "cannot be removed")
        honest(self, path)

    monkeypatch.setattr(SimDisk, "remove_tree", remove_tree)
    assert any(name.startswith("gone") for name in cluster.directories(2))
    topics = (TopicToDelete(name="stuck"), TopicToDelete(name="gone"))
    answer = cluster.submit(DeleteTopics(topics))
    assert isinstance(answer, TopicResults) and not any(one.error_code for one in answer.topics)
    cluster.advance(1_000)
    assert not any(name.startswith("gone") for name in cluster.directories(2))
    held = cluster.broker(2).replication.replicas
    assert not any(one.name.startswith(("stuck", "gone")) for one in held.values())
    cluster.hosts[2].kill()
    cluster.hosts[2].start()
    cluster.until_started(2)
    assert any(name.startswith("stuck") for name in cluster.directories(2))


def test_what_failed_is_tried_again_though_nothing_changes(
    cluster: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosting = cluster.broker(2)._hosting
    honest, left = hosting._take_up, [2]

    def take_up(partition: Partition, settings: Any) -> list[GroupSpec]:
        if left[0]:
            left[0] -= 1
            raise RuntimeError("nobody thought of this")
        return honest(partition, settings)

    monkeypatch.setattr(hosting, "_take_up", take_up)
    cluster.create_topic("late", configs=(("min.insync.replicas", "3"),), replicas=4)
    assert 2 not in cluster.replicas_of("late")
    cluster.until(lambda: 2 in cluster.replicas_of("late"))
    assert not left[0]


def test_partitions_that_move_here_together_are_made_durable_together(
    cluster: ClusterWorld,
) -> None:
    """Whether there are ten or twenty, one flush of everything does: a flush of each directory
    would hold up the loop for as long as there are partitions."""
    cluster.create_topic("moves", partitions=60)
    cluster.advance(1_000)
    topic = cluster.broker(1).controller.cluster.topics["moves"]
    moved = [one for one in topic.partitions if NOT_A_VOTER not in one.replicas]
    assert len(moved) > FLUSHED_EACH_MAX
    wanted = tuple(
        WantedReplicas(
            topic="moves", index=one.index, replicas=(*one.replicas[:2], BrokerId(NOT_A_VOTER))
        )
        for one in moved
    )
    counters = cluster.hosts[NOT_A_VOTER].disk.counters
    before = counters.directory_flush_count
    cluster.submit(AlterReassignments(wanted))
    held = cluster.broker(NOT_A_VOTER).replication.replicas
    cluster.until(lambda: all(one.group in held for one in moved))
    assert counters.directory_flush_count == before


def test_what_changes_while_many_are_opened_is_opened_by_what_is_known_then(
    cluster: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.create_topic("opened", partitions=20, replicas=4)
    cluster.hosts[NOT_A_VOTER].kill()
    partitions = cluster.broker(1).controller.cluster.topics["opened"].partitions
    last = partitions[-1].group
    happened: list[str] = []
    honest_spec, honest_add, honest_one = GroupSettings.spec, Opening.add, Opening.open_one

    def spec(self: GroupSettings, partition: Partition, settings: TopicSettings) -> GroupSpec:
        if partition.group == last:
            happened.append("looked at")
        return honest_spec(self, partition, settings)

    def add(self: Opening, asked: GroupSpec) -> None:
        if asked.group == last:
            happened.append("opened")
        elif "changed" not in happened:
            happened.append("changed")
            cluster.broker(NOT_A_VOTER)._hosting._on_applied(VotersStable(last, 1))
        honest_add(self, asked)

    def open_one(self: Opening, asked: GroupSpec) -> Replica:
        if asked.group == last:
            happened.append("opened")
        return honest_one(self, asked)

    cluster.hosts[NOT_A_VOTER].start()
    monkeypatch.setattr(GroupSettings, "spec", spec)
    monkeypatch.setattr(Opening, "add", add)
    monkeypatch.setattr(Opening, "open_one", open_one)
    cluster.until_started(NOT_A_VOTER)
    assert happened[happened.index("changed") + 1 : happened.index("opened")]
    assert happened[-1] == "opened" and happened.count("opened") == 1
    held = cluster.broker(NOT_A_VOTER).replication.replicas
    assert all(one.group in held for one in partitions)
