"""What a scrape of a broker tells: of partitions with observers, with replicas that are gone, of
leaders that change, of logs that fail, and, on the controller, of what is down.

Source: decision 0023; reference observers 4.4."""

from collections.abc import Iterator

import pytest
from tests.admin.scrapes import Monitor, controller_of
from tests.broker.cluster_world import BROKERS, ClusterWorld, joined, three_brokers
from tests.broker.moving_world import TOPIC, MovingWorld
from tests.broker.test_broker_in_a_cluster import fetch, produce
from tests.broker.test_damaged_logs import IN_RECORDS, rot

from strandline.admin.exposition import FRESH_MS
from strandline.admin.metric_table import (
    BROKER_METRICS,
    CONTROLLER_METRICS,
    METRICS,
    PARTITION_METRICS,
)
from strandline.admin.remote_reads import REMOTE_METRICS
from strandline.base.errors import StorageError
from strandline.client.operations.replica_status import PartitionStatus
from strandline.config.broker import StorageSection
from strandline.model.ids import BrokerId
from strandline.protocol.messages.describe_replica_status import (
    DescribeReplicaStatusRequest,
    DescribeReplicaStatusResponse,
    ReplicaStatusTopic,
)

HERE = {"topic": "t", "partition": "0"}
DOMAINS = {1: "east", 2: "east", 3: "west", 4: "west"}


@pytest.fixture
def world() -> Iterator[ClusterWorld]:
    """Four brokers in two regions, a topic of two partitions on three of them, three records."""
    with joined(ClusterWorld(BROKERS, regions=DOMAINS)) as made:
        made.create_topic("t", partitions=2, configs=(("min.insync.replicas", "3"),))
        assert produce(made, "t", b"a", b"b", b"c").error_code == 0
        made.advance(2_000)
        yield made


def test_every_metric_of_the_table_is_told_and_no_other(world: ClusterWorld) -> None:
    monitor = Monitor(world)
    leader, controller = world.leader_of("t"), controller_of(world)
    told = monitor.scrape(leader)
    told.expect_known()
    assert {one.name for one in PARTITION_METRICS} <= told.series.keys()
    remote = {one.name for one in REMOTE_METRICS}
    absent = remote | {
        "strandline_certificate_seconds_left",
        "strandline_refused_connections_total",
    }
    assert {one.name for one in BROKER_METRICS} - absent <= told.series.keys()
    assert not remote & told.series.keys()  # It has no buckets.
    assert {"process_cpu_seconds_total", "process_resident_memory_bytes"} <= told.series.keys()
    judged = monitor.scrape(controller)
    judged.expect_known()
    assert {one.name for one in CONTROLLER_METRICS} <= judged.series.keys()
    other = next(one for one in BROKERS if one != controller)
    names = monitor.scrape(other).series.keys()
    assert not names & {one.name for one in CONTROLLER_METRICS}
    for row in METRICS:
        if row.name in told.series:
            assert f"# HELP {row.name} {row.help_line}\n" in told.text


def test_only_the_leader_tells_of_a_partition(world: ClusterWorld) -> None:
    monitor = Monitor(world)
    tellers = [
        one for one in BROKERS if any(dict(key) == HERE for key in
        monitor.scrape(one).of("strandline_partition_replicas"))
    ]  # fmt: skip
    assert tellers == [world.leader_of("t")]
    leaders = sum(monitor.scrape(one).value("strandline_leaders") for one in BROKERS)
    replicas = sum(monitor.scrape(one).value("strandline_replicas") for one in BROKERS)
    assert (leaders, replicas) == (2, 6)


def test_a_replica_that_is_gone_is_missed(world: ClusterWorld) -> None:
    monitor, leader = Monitor(world), world.leader_of("t")
    told = monitor.scrape(leader)
    expected = {
        "replicas": 3, "observer_replicas": 0, "in_sync_replicas": 3, "caught_up_replicas": 3,
        "not_caught_up": 0, "observers_in_isr": 0, "under_replicated": 0, "under_min_isr": 0,
        "log_start_offset": 0, "log_end_offset": 3,
    }  # fmt: skip
    for name, value in expected.items():
        assert told.value(f"strandline_partition_{name}", **HERE) == value, name
    assert told.value("strandline_under_min_isr_partitions") == 0
    gone = next(one for one in world.replicas_of("t") if one != leader)
    world.hosts[gone].kill()
    world.advance(5_000)
    told = monitor.scrape(leader)
    changed = {
        "in_sync_replicas": 2, "caught_up_replicas": 2, "not_caught_up": 1,
        "under_replicated": 1, "under_min_isr": 1,
    }  # fmt: skip
    for name, value in (expected | changed).items():
        assert told.value(f"strandline_partition_{name}", **HERE) == value, name
    for name in ("under_replicated", "under_min_isr", "not_caught_up"):
        led = told.of(f"strandline_partition_{name}").values()
        assert told.value(f"strandline_{name}_partitions") == sum(led) >= 1
    assert told.value("strandline_peer_up", peer=str(gone)) == 0
    assert not told.of("strandline_peer_round_trip_seconds").keys() & {
        frozenset({("peer", str(gone))})
    }


def test_just_enough_in_sync_is_told_apart_from_too_few(world: ClusterWorld) -> None:
    world.create_topic("u", configs=(("min.insync.replicas", "2"),))
    world.advance(2_000)
    leader = world.leader_of("u")
    monitor = Monitor(world)
    assert monitor.scrape(leader).value("strandline_at_min_isr_partitions") == 0
    gone = next(one for one in world.replicas_of("u") if one != leader)
    world.hosts[gone].kill()
    world.advance(5_000)
    told = monitor.scrape(leader)
    assert told.value("strandline_at_min_isr_partitions") >= 1
    assert told.value("strandline_partition_under_min_isr", topic="u", partition="0") == 0
    assert told.value("strandline_partition_under_replicated", topic="u", partition="0") == 1


def test_observers_are_counted_apart_and_are_no_reason_to_be_under_replicated(
    moving: MovingWorld,
) -> None:
    monitor, leader = Monitor(moving), moving.leader_of(TOPIC)
    here = {"topic": TOPIC, "partition": "0"}

    def told() -> dict[str, float]:
        scrape = monitor.scrape(leader)
        return {
            one.name.removeprefix("strandline_partition_"): scrape.value(one.name, **here)
            for one in PARTITION_METRICS
        }

    before = told()
    assert (before["replicas"], before["observer_replicas"]) == (5, 2)
    assert (before["in_sync_replicas"], before["caught_up_replicas"]) == (3, 5)
    assert (before["observers_in_isr"], before["not_caught_up"]) == (0, 0)
    moving.hosts[4].kill()
    moving.advance(5_000)
    after = told()
    assert (after["in_sync_replicas"], after["caught_up_replicas"]) == (3, 4)
    assert (after["not_caught_up"], after["under_replicated"]) == (1, 0)
    request = DescribeReplicaStatusRequest(topics=[ReplicaStatusTopic(TOPIC, [0])])
    answer = moving.ask(leader, request, DescribeReplicaStatusResponse, 0).topics[0].partitions[0]
    status = PartitionStatus(TOPIC, 0, BrokerId(leader), False, answer).counts
    names = {one.kafka.rpartition("=")[2]: one.name for one in PARTITION_METRICS}
    for kafka, value in status.items():
        assert after[names[kafka].removeprefix("strandline_partition_")] == value, kafka


def test_partitions_beyond_the_limit_are_counted_all_the_same(
    world: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.create_topic("many", partitions=12, replicas=1)
    world.advance(2_000)
    leader = next(one for one in BROKERS if world.broker(one).replication.led.all)
    config = world.broker(leader).config
    monitor = Monitor(world)
    whole = monitor.scrape(leader)
    led = whole.value("strandline_leaders")
    assert led > 1 and whole.value("strandline_partitions_without_series") == 0
    assert len(whole.of("strandline_partition_replicas")) == led
    for limit in (1, 0):
        world.advance(FRESH_MS)
        monkeypatch.setattr(type(config.metrics), "partition_count_max", limit)
        told = monitor.scrape(leader)
        assert len(told.of("strandline_partition_replicas")) == limit
        assert told.value("strandline_partitions_without_series") == led - limit
        assert told.value("strandline_leaders") == led
        told.expect_known()


def test_elections_and_leaders_are_counted_as_they_come_and_go(world: ClusterWorld) -> None:
    monitor = Monitor(world)
    monitor.watch(*BROKERS)
    old = world.leader_of("t")
    before = {one: monitor.scrape(one) for one in BROKERS}
    transfer_target = next(one for one in world.replicas_of("t") if one != old)
    world.replicas_of("t")[old].transfer_leadership(BrokerId(transfer_target))
    world.until(lambda: world.leader_of("t") == transfer_target)
    world.advance(FRESH_MS)
    after = {one: monitor.scrape(one) for one in BROKERS}

    def grown(broker: int, name: str, **labels: str) -> float:
        return after[broker].value(name, **labels) - before[broker].value(name, **labels)

    assert grown(transfer_target, "strandline_leader_changes_total", change="begun") == 1
    assert grown(old, "strandline_leader_changes_total", change="ended") == 1
    assert grown(transfer_target, "strandline_elections_total") == 1
    assert grown(old, "strandline_elections_total") == 0


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (OSError(5, "Input/output error"), "io"),
        (StorageError("f", 0, expected="a", found="b"), "damage"),
    ],
)
def test_a_replica_that_is_stopped_is_counted_by_its_cause(
    world: ClusterWorld, error: Exception, cause: str
) -> None:
    broker = world.leader_of("t")
    monitor = Monitor(world)
    monitor.watch(broker)
    world.replicas_of("t")[broker].fail(error)
    told = monitor.scrape(broker)
    for each in ("io", "damage"):
        name = "strandline_replica_failures_total"
        assert told.value(name, cause=each) == (1 if each == cause else 0)
    assert told.value("strandline_offline_replicas") == 1
    assert told.value("strandline_replicas") >= 1


def test_a_log_that_rots_is_told_until_it_is_mended() -> None:
    with three_brokers(scrub_rate=StorageSection().scrub_rate) as world:
        world.create_topic("t")
        assert produce(world, "t", b"a", b"b", b"c").error_code == 0
        leader = world.leader_of("t")
        one, other = (broker for broker in world.replicas_of("t") if broker != leader)
        world.until(lambda: world.replicas_of("t")[one].high_watermark == 3)
        monitor = Monitor(world)
        assert monitor.scrape(one).value("strandline_damaged_logs") == 0
        for broker in (leader, other):
            world.hosts[broker].kill()
        rot(world, one, world.replicas_of("t")[one], at=IN_RECORDS)
        world.until(lambda: world.replicas_of("t")[one].is_damaged)
        world.advance(FRESH_MS)
        told = monitor.scrape(one)
        assert told.value("strandline_damaged_logs") == 1
        assert told.value("strandline_mended_gaps_total") == 0
        for broker in (leader, other):
            world.hosts[broker].start()
        world.until(lambda: not world.replicas_of("t")[one].is_damaged)
        world.advance(FRESH_MS)
        told = monitor.scrape(one)
        assert told.value("strandline_damaged_logs") == 0
        assert told.value("strandline_mended_gaps_total") >= 1


def test_a_disk_that_tells_nothing_hides_nothing_else(
    world: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def space() -> tuple[int, int]:
        raise OSError(5, "Input/output error")

    leader = world.leader_of("t")
    monitor = Monitor(world)
    assert monitor.scrape(leader).value("strandline_disk_free_bytes") > 0
    monkeypatch.setattr(world.broker(leader).replication, "space", space)
    world.advance(FRESH_MS)
    told = monitor.scrape(leader)
    assert not told.of("strandline_disk_free_bytes")
    assert told.value("strandline_leaders") >= 1


def test_what_goes_in_and_out_is_counted(world: ClusterWorld) -> None:
    leader = world.leader_of("t")
    monitor = Monitor(world)
    before = monitor.scrape(leader)
    assert produce(world, "t", b"x" * 10_000).error_code == 0
    fetch(world, "t")
    world.advance(FRESH_MS)
    after = monitor.scrape(leader)
    for name in ("strandline_produced_bytes_total", "strandline_fetched_bytes_total"):
        assert 10_000 < after.value(name) - before.value(name) < 30_000, name


def test_the_controller_tells_of_a_region_that_is_down_and_what_is_held(
    world: ClusterWorld,
) -> None:
    if controller_of(world) == 3:
        world.controller(3).transfer_leadership(BrokerId(1))
        world.advance(5_000)
    monitor, controller = Monitor(world), controller_of(world)
    calm = monitor.scrape(controller)
    assert calm.value("strandline_controller_active") == 1
    assert set(calm.of("strandline_controller_alarms").values()) == {0}
    assert calm.value("strandline_controller_topics") == 1
    assert calm.value("strandline_controller_partitions") == 2
    assert calm.value("strandline_controller_offline_partitions") == 0
    assert calm.value("strandline_leaderless_replicas") == 0
    for broker in (3, 4):
        world.hosts[broker].kill()
    world.advance(30_000)
    told = monitor.scrape(controller)
    west = {"region": "west", "zone": ""}
    assert told.value("strandline_controller_alarms", **{"class": "region"}) == 1
    assert told.value("strandline_controller_domain_down", **west) == 1
    assert told.value("strandline_controller_domain_held", **west) == 1
    assert told.value("strandline_controller_domain_silent_brokers", **west) == 2
    assert told.value("strandline_controller_domain_down", region="east", zone="") == 0
    assert told.value("strandline_controller_held_brokers") == 2
    assert told.value("strandline_controller_brokers", state="down") == 2
    unled = [index for index in (0, 1) if not world.leader_of("t", index)]
    assert unled
    for broker in (1, 2):
        held = sum(broker in world.replicas_of("t", index) for index in unled)
        assert monitor.scrape(broker).value("strandline_leaderless_replicas") == held
    known = told.value("strandline_leaderless_replicas")
    assert known <= told.value("strandline_controller_offline_partitions") <= len(unled)
    for broker in (3, 4):
        world.hosts[broker].start()
    world.until_started(3, 4)
    world.advance(30_000)
    told = monitor.scrape(controller_of(world))
    assert told.value("strandline_controller_alarms", **{"class": "region"}) == 0
    assert told.value("strandline_controller_domain_down", **west) == 0
    assert told.value("strandline_controller_offline_partitions") == 0


def test_asking_again_at_once_costs_nothing_and_later_tells_what_is_new(
    world: ClusterWorld,
) -> None:
    monitor, leader = Monitor(world), world.leader_of("t")
    first = monitor.scrape(leader)
    assert produce(world, "t", b"d").error_code == 0
    again = monitor.scrape(leader)
    world.advance(FRESH_MS)
    later = monitor.scrape(leader)
    ends = [
        one.value("strandline_partition_log_end_offset", **HERE) for one in (first, again, later)
    ]
    assert ends[0] == 3 and ends[2] == 4
    assert again.text == first.text


def test_no_record_and_no_address_is_told(world: ClusterWorld) -> None:
    secret = b"top-secret-value"
    assert produce(world, "t", secret).error_code == 0
    text = Monitor(world).scrape(world.leader_of("t")).text
    assert secret.decode() not in text
    for broker in world.broker(1).controller.cluster.brokers.values():
        assert broker.incarnation not in text
        assert broker.kafka.host not in text and broker.rpc.host not in text
