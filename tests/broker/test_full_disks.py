"""A replica without disk space takes no part for now, and continues by itself later.

Source: reliability reference 6 (ENOSPC)."""

from collections.abc import Iterator
from errno import ENOSPC

import pytest
from tests.broker.cluster_world import ClusterWorld, three_brokers
from tests.broker.test_broker_in_a_cluster import delete, fetch, produce, set_config
from tests.broker.test_delete_records import delete as delete_records

from strandline.protocol.errors import Error
from strandline.replication.replica.replica import Replica
from strandline.simulation.disk.disk import SimDisk, SimFile
from strandline.storage.reserve import Reserve

RESERVE_BYTES = 64 * 1024


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[ClusterWorld]:
    """Three brokers that have joined; their journals take no space ahead."""
    monkeypatch.setattr("strandline.storage.state_journal._ALLOCATE_BYTES", 0)
    monkeypatch.setattr("strandline.storage.state_journal._FREE_BYTES_MIN", 0)
    with three_brokers() as world:
        world.create_topic("t")
        yield world


def fill(world: ClusterWorld, broker: int) -> None:
    disk = world.hosts[broker].disk
    disk.faults.foreign_bytes = disk.capacity_bytes - disk.used_bytes()


def make_room(world: ClusterWorld, broker: int) -> None:
    world.hosts[broker].disk.faults.foreign_bytes = 0


def failed(world: ClusterWorld) -> list[Replica]:
    return [
        replica
        for host in world.hosts.values()
        if host.program is not None
        for replica in host.program.replication.replicas.values()
        if replica.failed is not None
    ]


def test_a_leader_without_space_refuses_and_takes_writes_again(cluster: ClusterWorld) -> None:
    assert produce(cluster, "t", b"first").error_code == 0
    fill(cluster, cluster.leader_of("t"))
    full = cluster.leader_of("t")
    assert produce(cluster, "t", b"refused").error_code == Error.KAFKA_STORAGE_ERROR
    assert fetch(cluster, "t") == [b"first"]
    make_room(cluster, full)
    cluster.advance(1_000)
    assert produce(cluster, "t", b"second").error_code == 0
    assert fetch(cluster, "t") == [b"first", b"second"]
    assert failed(cluster) == []


def test_what_comes_behind_a_refused_batch_is_refused_like_it_and_not_out_of_order(
    cluster: ClusterWorld,
) -> None:
    """Else librdkafka begins a new epoch, and repeats what it has no answers for."""

    def send(sequence: int, *, epoch: int = 0, producer: int = 7) -> int:
        numbers = {"producer_id": producer, "producer_epoch": epoch, "base_sequence": sequence}
        return produce(cluster, "t", b"%d" % sequence, **numbers).error_code

    assert send(0) == 0
    full = cluster.leader_of("t")
    fill(cluster, full)
    assert send(1) == send(2) == send(3) == Error.KAFKA_STORAGE_ERROR
    assert send(1, producer=8) == send(2, producer=8) == Error.KAFKA_STORAGE_ERROR
    make_room(cluster, full)
    cluster.advance(1_000)
    assert send(2) == send(2, producer=8) == Error.KAFKA_STORAGE_ERROR
    assert send(2, epoch=1) == Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert [send(1), send(2), send(3)] == [0, 0, 0]
    assert send(5) == Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert [send(1, producer=8), send(2, producer=8)] == [0, 0]
    assert fetch(cluster, "t") == [b"0", b"1", b"2", b"3", b"1", b"2"]


def test_a_follower_without_space_holds_up_nobody_and_catches_up(cluster: ClusterWorld) -> None:
    leader = cluster.leader_of("t")
    full = next(broker for broker in (1, 2, 3) if broker != leader)
    fill(cluster, full)
    for number in range(5):
        assert produce(cluster, "t", b"%d" % number).error_code == 0
    cluster.advance(5_000)
    make_room(cluster, full)
    cluster.until(lambda: cluster.replicas_of("t")[full].high_watermark == 5)
    assert failed(cluster) == []


def test_a_leader_can_count_on_a_follower_that_began_anew_without_space(
    cluster: ClusterWorld,
) -> None:
    leader = cluster.leader_of("t")
    full = next(broker for broker in (1, 2, 3) if broker != leader)
    fill(cluster, full)
    assert produce(cluster, "t", b"first").error_code == 0
    follower = cluster.replicas_of("t")[full]
    forgot_count = 0
    for _ in range(100):
        cluster.advance(50)
        forgot_count += follower.leader_id != leader
        # The leader answers reads for as long as this one's heartbeats say that it follows.
        assert follower.host.liveness.bound_votes.is_leader_alive(follower)
    assert forgot_count > 0


def test_a_vote_that_cannot_be_remembered_is_not_given_until_there_is_space(
    cluster: ClusterWorld,
) -> None:
    assert produce(cluster, "t", b"first").error_code == 0
    leader = cluster.leader_of("t")
    others = [broker for broker in (1, 2, 3) if broker != leader]
    full = others[0]
    epochs = {name: replica.epoch for name, replica in cluster.replicas_of("t").items()}
    fill(cluster, full)
    cluster.hosts[leader].kill()
    cluster.advance(10_000)
    assert cluster.leader_of("t") == 0
    assert cluster.replicas_of("t")[full].epoch == epochs[full]
    make_room(cluster, full)
    cluster.until(lambda: cluster.leader_of("t") in others)
    assert produce(cluster, "t", b"second").error_code == 0
    assert fetch(cluster, "t") == [b"first", b"second"]
    assert failed(cluster) == []


def test_a_broker_waits_where_the_controller_has_no_space_to_admit_it(
    cluster: ClusterWorld,
) -> None:
    """It ended, with what the controller's disk had said."""
    (full,) = (one for one in cluster.hosts if cluster.controller(one).is_leader)
    late = next(one for one in cluster.hosts if one != full)
    cluster.hosts[late].kill()
    fill(cluster, full)
    cluster.hosts[late].start()
    cluster.advance(3_000)
    assert cluster.controller(full).is_leader
    assert not cluster.starts[late].done()
    make_room(cluster, full)
    cluster.until_started(late)
    assert failed(cluster) == []


@pytest.fixture
def keeping(monkeypatch: pytest.MonkeyPatch) -> Iterator[ClusterWorld]:
    """Three brokers that have joined, and keep some space; their journals take none ahead."""
    monkeypatch.setattr("strandline.storage.state_journal._ALLOCATE_BYTES", 0)
    monkeypatch.setattr("strandline.storage.state_journal._FREE_BYTES_MIN", 0)
    with three_brokers(reserve_bytes=RESERVE_BYTES) as world:
        world.create_topic("t")
        yield world


def reserve_of(world: ClusterWorld, broker: int) -> Reserve:
    return world.broker(broker).replication.reserve


def test_a_broker_whose_disk_is_full_hears_what_may_go(keeping: ClusterWorld) -> None:
    """It did not: the controller's log had no space for the word that would have made some."""
    keeping.create_topic("gone")
    (leader,) = (one for one in keeping.hosts if keeping.controller(one).is_leader)
    full = next(one for one in keeping.hosts if one != leader)
    fill(keeping, full)
    assert len(keeping.directories(full)) == 2
    delete(keeping, "gone")
    keeping.until(lambda: len(keeping.directories(full)) == 1)
    assert reserve_of(keeping, full).is_released
    assert failed(keeping) == []


def test_an_active_controller_whose_disk_is_full_takes_changes(keeping: ClusterWorld) -> None:
    (leader,) = (one for one in keeping.hosts if keeping.controller(one).is_leader)
    fill(keeping, leader)
    keeping.create_topic("new")
    assert keeping.controller(leader).is_leader
    assert reserve_of(keeping, leader).is_released
    assert failed(keeping) == []


def test_released_space_is_not_for_producers(
    keeping: ClusterWorld,
) -> None:
    full = keeping.leader_of("t")
    assert produce(keeping, "t", b"first").error_code == 0
    fill(keeping, full)
    reserve_of(keeping, full).release("a test")
    free_bytes = keeping.hosts[full].disk.free_bytes()
    assert free_bytes == RESERVE_BYTES
    assert produce(keeping, "t", b"refused").error_code == Error.KAFKA_STORAGE_ERROR
    assert keeping.hosts[full].disk.free_bytes() == free_bytes
    make_room(keeping, full)
    keeping.advance(1_000)
    assert not reserve_of(keeping, full).is_released
    assert produce(keeping, "t", b"second").error_code == 0
    assert fetch(keeping, "t") == [b"first", b"second"]


def test_a_vote_is_remembered_where_the_disk_is_full(keeping: ClusterWorld) -> None:
    leader = keeping.leader_of("t")
    full = next(broker for broker in (1, 2, 3) if broker != leader)
    epoch = keeping.replicas_of("t")[full].epoch
    fill(keeping, full)
    keeping.hosts[leader].kill()
    keeping.until(lambda: keeping.replicas_of("t")[full].epoch > epoch)
    assert failed(keeping) == []


def fill_all(world: ClusterWorld) -> None:
    for broker in world.hosts:
        fill(world, broker)


def test_what_is_on_full_disks_can_be_read_after_a_start_and_shortened(
    keeping: ClusterWorld,
) -> None:
    """The group lost its leader: the entry of the new epoch was refused like a producer's batch. So
    nothing was committed, and retention, which goes by that, freed nothing for ever."""
    set_config(keeping, "t", "internal.segment.bytes", "50000")
    values = [b"%d" % number + bytes(40_000) for number in range(8)]
    for value in values:
        assert produce(keeping, "t", value).error_code == 0
    fill_all(keeping)
    for host in keeping.hosts.values():
        host.kill()
    for host in keeping.hosts.values():
        host.start()
    keeping.until_started()
    assert all(reserve_of(keeping, one).is_released for one in keeping.hosts)
    keeping.until(lambda: keeping.leader_of("t") != 0)
    assert fetch(keeping, "t") == values
    assert produce(keeping, "t", b"refused").error_code == Error.KAFKA_STORAGE_ERROR
    set_config(keeping, "t", "retention.bytes", "60000")
    keeping.until(lambda: not any(reserve_of(keeping, one).is_released for one in keeping.hosts))
    assert produce(keeping, "t", b"last").error_code == 0
    assert failed(keeping) == []


def test_records_are_deleted_where_all_disks_are_full(keeping: ClusterWorld) -> None:
    """That needs an entry in the log, too."""
    set_config(keeping, "t", "internal.segment.bytes", "50000")
    for number in range(8):
        assert produce(keeping, "t", b"%d" % number + bytes(40_000)).error_code == 0
    fill_all(keeping)
    assert delete_records(keeping, 6).error_code == 0
    assert all(reserve_of(keeping, one).is_released for one in keeping.hosts)
    keeping.until(lambda: not any(reserve_of(keeping, one).is_released for one in keeping.hosts))
    assert produce(keeping, "t", b"last").error_code == 0
    assert failed(keeping) == []


def test_another_replica_leads_though_all_disks_are_full(keeping: ClusterWorld) -> None:
    assert produce(keeping, "t", b"first").error_code == 0
    fill_all(keeping)
    leader = keeping.leader_of("t")
    keeping.hosts[leader].kill()
    keeping.until(lambda: keeping.leader_of("t") not in (0, leader))
    assert fetch(keeping, "t") == [b"first"]
    assert failed(keeping) == []


def test_retention_makes_room_where_not_even_a_name_has_any(
    keeping: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What goes is named in the directory first, which may need a block more for that."""
    set_config(keeping, "t", "internal.segment.bytes", "50000")
    set_config(keeping, "t", "retention.ms", "60000")
    for number in range(8):
        assert produce(keeping, "t", b"%d" % number + bytes(40_000)).error_code == 0
    create = SimDisk.open

    def need_space_for_names(disk: SimDisk, path: str, *, create_new: bool) -> SimFile:
        if create_new and not disk.exists(path) and not disk.hardware.free_bytes():
            raise OSError(ENOSPC, "No space left on device", path)
        return create(disk, path, create=create_new)

    monkeypatch.setattr(
        SimDisk,
        "open",
        lambda disk, path, create=False: need_space_for_names(disk, path, create_new=create),
    )
    fill_all(keeping)
    keeping.advance(120_000)
    for replica in keeping.replicas_of("t").values():
        assert replica.log.start_offset == 8
    keeping.until(lambda: not any(reserve_of(keeping, one).is_released for one in keeping.hosts))
    assert produce(keeping, "t", b"last").error_code == 0
    assert failed(keeping) == []
