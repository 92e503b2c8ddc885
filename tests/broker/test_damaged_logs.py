"""A log rots: a leader that cannot read it lets another replica lead.

Source: reliability reference 1b (disk corruption) and 6 (CRC per batch, checked on read)."""

from collections.abc import Iterator

import pytest
from tests.broker.cluster_world import (
    DATA_DIRECTORY,
    SCRUB_INTERVAL_MS,
    ClusterWorld,
    three_brokers,
)
from tests.broker.test_broker_in_a_cluster import fetch, produce

from strandline.base.errors import StorageError
from strandline.config.broker import StorageSection
from strandline.model.ids import BrokerId, Offset
from strandline.protocol.errors import Error
from strandline.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from strandline.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from strandline.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from strandline.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from strandline.records.batch import HEADER_BYTES, iterate_headers
from strandline.replication.repair.log_repair import SLICE_BYTES
from strandline.replication.replica.replica import Replica
from strandline.simulation.disk.file_image import CrashStyle, FileImage
from strandline.storage.config import LogConfig
from strandline.storage.recovery.scrubbing import Scrub

FIRST_SEGMENT = f"{0:020d}-0-0.log"
MAGIC_AT = 16
IN_RECORDS = HEADER_BYTES + 20
IN_OFFSET = 2
IN_EPOCH = 13
"""Where the epoch of a batch is, in the bytes of its header: not the lowest one."""
VALUES = [b"%d" % number for number in range(5)]
TRUST_MS = LogConfig().trust_ms
ANYWHERE = (IN_OFFSET, IN_EPOCH, MAGIC_AT, IN_RECORDS)
"""No checksum covers the offset and the epoch; nothing but the checksum covers the records."""


@pytest.fixture
def scrubbed() -> Iterator[ClusterWorld]:
    """Three brokers that have joined and look for damage."""
    with three_brokers(scrub_rate=StorageSection().scrub_rate) as world:
        yield world


def rot(world: ClusterWorld, broker: int, replica: Replica, *, at: int, batch: int = 0) -> None:
    """Change a byte, `at` bytes into the first data batch in the replica's first segment, or into
    a later one."""
    path = f"{replica.log.directory}/{FIRST_SEGMENT}"
    start = data_batches(world, broker, path)[batch]
    world.hosts[broker].disk.rot(path, (start + at) * 8)
    return file_size(world, broker, path)


def file_size(world: ClusterWorld, broker: int, path: str) -> int:
    image = world.hosts[broker].disk.tree.find(path)
    assert isinstance(image, FileImage)
    return image.current.size


def fetch_error(world: ClusterWorld, broker: int, topic: str) -> int:
    asked = FetchPartition(fetch_offset=0, partition_max_bytes=1_000_000)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=1, topics=[FetchTopic(topic=topic, partitions=[asked])]
    )
    return world.ask(broker, request, FetchResponse, 12).responses[0].partitions[0].error_code


@pytest.mark.parametrize("at", ANYWHERE)
def test_a_leader_that_cannot_read_its_log_lets_another_lead(
    cluster: ClusterWorld, at: int
) -> None:
    cluster.create_topic("t")
    assert produce(cluster, "t", *VALUES).error_code == 0
    leader = cluster.leader_of("t")
    rot(cluster, leader, cluster.replicas_of("t")[leader], at=at)
    cluster.advance(TRUST_MS)
    assert fetch_error(cluster, leader, "t") == Error.KAFKA_STORAGE_ERROR
    cluster.until(lambda: cluster.leader_of("t") not in (0, leader))
    assert fetch(cluster, "t") == VALUES
    assert produce(cluster, "t", b"more").error_code == 0


def test_a_byte_that_flipped_while_the_broker_was_away_is_not_served(
    cluster: ClusterWorld,
) -> None:
    cluster.create_topic("t")
    assert produce(cluster, "t", *VALUES).error_code == 0
    leader = cluster.leader_of("t")
    damaged = next(broker for broker in (1, 2, 3) if broker != leader)
    cluster.until(lambda: cluster.replicas_of("t")[damaged].high_watermark == len(VALUES))
    replica = cluster.replicas_of("t")[damaged]
    stop(cluster, damaged)
    rot(cluster, damaged, replica, at=IN_RECORDS)
    cluster.hosts[damaged].start()
    cluster.until_started(damaged)
    cluster.until(lambda: damaged in cluster.replicas_of("t"))
    cluster.until(lambda: damaged in cluster.replicas_of("t")[cluster.leader_of("t")].in_sync())
    cluster.replicas_of("t")[cluster.leader_of("t")].transfer_leadership(damaged)
    cluster.until(lambda: cluster.leader_of("t") == damaged)
    assert fetch_error(cluster, damaged, "t") == Error.KAFKA_STORAGE_ERROR
    cluster.until(lambda: cluster.leader_of("t") not in (0, damaged))
    assert fetch(cluster, "t") == VALUES
    assert produce(cluster, "t", b"more").error_code == 0


def test_a_single_replica_goes_on_with_what_it_can_read(cluster: ClusterWorld) -> None:
    cluster.create_topic("t", replicas=1)
    assert produce(cluster, "t", *VALUES).error_code == 0
    leader = cluster.leader_of("t")
    rot(cluster, leader, cluster.replicas_of("t")[leader], at=MAGIC_AT)
    assert fetch_error(cluster, leader, "t") == Error.KAFKA_STORAGE_ERROR
    cluster.advance(5_000)
    assert cluster.leader_of("t") == leader
    assert produce(cluster, "t", b"more").base_offset == len(VALUES)


@pytest.mark.parametrize("at", ANYWHERE)
def test_a_leader_that_cannot_send_what_a_follower_lacks_lets_another_lead(
    cluster: ClusterWorld, at: int
) -> None:
    cluster.create_topic("t")
    leader = cluster.leader_of("t")
    away = next(broker for broker in (1, 2, 3) if broker != leader)
    cluster.hosts[away].kill()
    cluster.advance(3_000)
    leader = cluster.leader_of("t")
    assert produce(cluster, "t", *VALUES).error_code == 0
    rot(cluster, leader, cluster.replicas_of("t")[leader], at=at)
    cluster.hosts[away].start()
    cluster.until_started(away)
    cluster.until(lambda: cluster.leader_of("t") not in (0, leader))
    cluster.until(lambda: cluster.replicas_of("t")[away].high_watermark == len(VALUES))
    assert fetch(cluster, "t", at=away) == VALUES


def test_what_was_acknowledged_is_not_outvoted_by_a_log_that_rots_while_the_power_fails(
    cluster: ClusterWorld,
) -> None:
    """Two of three voters have it, one of them damaged: it waits, and takes nothing back. Before
    the mark of what is durable was flushed itself, that one ended before the damage, was elected by
    the voter that had been away, and cut the good copy."""
    cluster.create_topic("t")
    away = next(broker for broker in (1, 2, 3) if broker != cluster.leader_of("t"))
    cluster.hosts[away].kill()
    cluster.advance(3_000)
    leader = cluster.leader_of("t")
    damaged = next(broker for broker in (1, 2, 3) if broker not in (leader, away))
    for value in VALUES:
        assert produce(cluster, "t", value).error_code == 0
    cluster.advance(20_000)
    replica = cluster.replicas_of("t")[damaged]
    cluster.hosts[damaged].kill()
    cluster.hosts[damaged].disk.crash(CrashStyle.LOSE_ALL)
    rot(cluster, damaged, replica, at=IN_RECORDS, batch=1)
    cluster.hosts[leader].kill()
    for broker in (damaged, away):
        cluster.hosts[broker].start()
    cluster.advance(20_000)
    assert cluster.leader_of("t") == 0
    assert damaged not in cluster.replicas_of("t"), "it waits for another one to lead"
    cluster.hosts[leader].start()
    cluster.until_started()
    cluster.until(lambda: cluster.leader_of("t") == leader)
    assert fetch(cluster, "t") == VALUES
    cluster.until(lambda: fetch_error(cluster, damaged, "t") == Error.NONE)
    assert fetch(cluster, "t", at=damaged) == VALUES


def test_a_replica_whose_vote_is_forgotten_stays_closed(cluster: ClusterWorld) -> None:
    cluster.create_topic("t")
    assert produce(cluster, "t", *VALUES).error_code == 0
    leader = cluster.leader_of("t")
    other = next(broker for broker in (1, 2, 3) if broker != leader)
    cluster.hosts[other].kill()
    image = cluster.hosts[other].disk.tree.find(f"{DATA_DIRECTORY}/state.journal")
    assert isinstance(image, FileImage)
    image.resize(0)
    cluster.hosts[other].start()
    cluster.until(lambda: cluster.starts[other].done())
    assert "state.journal" in str(cluster.starts[other].exception())
    assert "expected the state of group 0" in str(cluster.starts[other].exception())
    assert produce(cluster, "t", b"others serve").error_code == 0


def test_offsets_are_not_loaded_from_a_damaged_log(cluster: ClusterWorld) -> None:
    cluster.create_topic("t")
    leader = commit_offset(cluster, 7)
    name = coordinating_partition(cluster)
    topic, _, index = name.rpartition("-")
    replicas = cluster.replicas_of(topic, int(index))
    damaged = next(broker for broker in replicas if broker != leader)
    rot(cluster, damaged, replicas[damaged], at=IN_RECORDS)
    replicas[leader].transfer_leadership(damaged)
    cluster.until(lambda: cluster.leader_of(topic, int(index)) not in (0, leader, damaged))
    cluster.until(lambda: committed_offset(cluster, cluster.leader_of(topic, int(index))) == 7)


def stop(world: ClusterWorld, broker: int) -> None:
    """SIGTERM: the logs are closed in order."""
    process = world.hosts[broker].process
    program = world.broker(broker)
    assert process is not None

    def end() -> None:
        program.stop()
        program.replication.stop()

    process.run_now(end)
    world.hosts[broker].kill()


def data_batches(world: ClusterWorld, broker: int, path: str) -> list[int]:
    """Where they begin."""
    image = world.hosts[broker].disk.tree.find(path)
    assert isinstance(image, FileImage)
    headers = iterate_headers(image.current.read(100_000, 0))
    return [header.position for header in headers if not header.is_marker]


def coordinating_partition(world: ClusterWorld) -> str:
    partition = world.broker(1).coordinator.partition_of("g")
    assert partition is not None
    return f"{partition.topic}-{partition.index}"


def commit_offset(world: ClusterWorld, offset: int) -> int:
    """Commit for group "g", partition 0 of "t"; the broker that coordinates it."""
    found = FindCoordinatorResponse()

    def is_found() -> bool:
        return found.error_code == 0 and found.node_id > 0

    for _ in range(20):
        found = world.ask(1, FindCoordinatorRequest(key="g"), FindCoordinatorResponse, 3)
        if is_found():
            break
        world.advance(500)
    request = OffsetCommitRequest(
        group_id="g",
        topics=[
            OffsetCommitRequestTopic(
                name="t", partitions=[OffsetCommitRequestPartition(committed_offset=offset)]
            )
        ],
    )
    for _ in range(20):
        answer = world.ask(found.node_id, request, OffsetCommitResponse, 7)
        if answer.topics[0].partitions[0].error_code == 0:
            return found.node_id
        world.advance(500)
    raise AssertionError(answer)


def committed_offset(world: ClusterWorld, coordinator: int) -> int:
    if not coordinator:
        return -1
    request = OffsetFetchRequest(
        group_id="g", topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
    )
    answer = world.ask(coordinator, request, OffsetFetchResponse, 7)
    return answer.topics[0].partitions[0].committed_offset if answer.topics else -1


# ---- mending -----------------------------------------------------------------------------------


def repaired(cluster: ClusterWorld, broker: int) -> int:
    return cluster.broker(broker).replication.repairs.mended_count


def is_sound(cluster: ClusterWorld, broker: int, topic: str) -> bool:
    """Whether everything that a replica holds is as it was written."""
    return is_whole(cluster.replicas_of(topic)[broker])


def is_whole(replica: Replica) -> bool:
    """The same, of any replica."""
    scrub = replica.log.mending.scrub(replica.log.start_index)
    while scrub.step(1 << 20):
        pass
    return not scrub.gaps and not replica.is_damaged


def test_what_a_leader_cannot_read_is_mended_and_it_may_lead_again(cluster: ClusterWorld) -> None:
    cluster.create_topic("t")
    assert produce(cluster, "t", *VALUES).error_code == 0
    leader = cluster.leader_of("t")
    rot(cluster, leader, cluster.replicas_of("t")[leader], at=IN_RECORDS)
    with pytest.raises(StorageError):
        cluster.replicas_of("t")[leader].read_verified(Offset(0), 10_000)
    cluster.until(lambda: repaired(cluster, leader) == 1)
    cluster.until(lambda: is_sound(cluster, leader, "t"))
    cluster.until(lambda: cluster.leader_of("t") not in (0, leader))
    cluster.replicas_of("t")[cluster.leader_of("t")].transfer_leadership(BrokerId(leader))
    cluster.until(lambda: cluster.leader_of("t") == leader)
    assert fetch(cluster, "t") == VALUES
    assert produce(cluster, "t", b"more").base_offset == len(VALUES)


def test_what_is_not_committed_yet_is_mended_too(scrubbed: ClusterWorld) -> None:
    """A brief seed: only a replica that took no part had what its leader could not read any more,
    and without that nothing could be committed, nor anybody else lead."""
    scrubbed.create_topic("t", configs=(("min.insync.replicas", "3"),))
    leader = scrubbed.leader_of("t")
    away, near = (broker for broker in (1, 2, 3) if broker != leader)
    scrubbed.hosts[away].kill()
    assert produce(scrubbed, "t", *VALUES, acks=1).error_code == 0
    has_all = scrubbed.replicas_of("t")[leader].log_end_offset
    scrubbed.until(lambda: scrubbed.replicas_of("t")[near].log_end_offset == has_all)
    damaged = scrubbed.replicas_of("t")[leader]
    rot(scrubbed, leader, damaged, at=IN_RECORDS)
    scrubbed.until(lambda: repaired(scrubbed, leader) == 1)
    assert damaged.committed_end < has_all
    assert is_sound(scrubbed, leader, "t")


def test_what_nobody_reads_is_found_by_the_scrub_and_mended(scrubbed: ClusterWorld) -> None:
    scrubbed.create_topic("t")
    assert produce(scrubbed, "t", *VALUES).error_code == 0
    leader = scrubbed.leader_of("t")
    damaged = next(broker for broker in (1, 2, 3) if broker != leader)
    scrubbed.until(lambda: scrubbed.replicas_of("t")[damaged].high_watermark == len(VALUES))
    rot(scrubbed, damaged, scrubbed.replicas_of("t")[damaged], at=IN_RECORDS)
    scrubbed.until(lambda: repaired(scrubbed, damaged) == 1)
    assert is_sound(scrubbed, damaged, "t")
    assert fetch(scrubbed, "t", at=damaged) == VALUES
    assert scrubbed.leader_of("t") == leader


def test_a_leader_whose_damage_is_mended_sends_followers_what_they_lack(
    cluster: ClusterWorld,
) -> None:
    cluster.create_topic("t")
    away = next(broker for broker in (1, 2, 3) if broker != cluster.leader_of("t"))
    cluster.hosts[away].kill()
    cluster.advance(3_000)
    cluster.until(lambda: cluster.leader_of("t") != 0)
    leader = cluster.leader_of("t")
    assert produce(cluster, "t", *VALUES).error_code == 0
    rot(cluster, leader, cluster.replicas_of("t")[leader], at=IN_RECORDS)
    with pytest.raises(StorageError):
        cluster.replicas_of("t")[leader].read_verified(Offset(0), 10_000)
    cluster.hosts[away].start()
    cluster.until_started(away)
    cluster.until(lambda: away in cluster.replicas_of("t"))
    cluster.until(lambda: cluster.replicas_of("t")[away].high_watermark == len(VALUES))
    assert fetch(cluster, "t", at=away) == VALUES
    cluster.until(lambda: is_sound(cluster, leader, "t"))


def test_the_scrub_reads_at_its_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    rate, seconds = 64 << 10, 8
    looked_at: list[int] = []
    step = Scrub.step

    def counted(self: Scrub, bytes_max: int) -> int:
        looked_at.append(step(self, bytes_max))
        return looked_at[-1]

    with three_brokers(scrub_rate=rate) as world:
        world.create_topic("t")
        for _ in range(40):  # More than can be looked at meanwhile.
            assert produce(world, "t", bytes(20_000)).error_code == 0
        world.advance(2 * SCRUB_INTERVAL_MS)
        monkeypatch.setattr(Scrub, "step", counted)
        world.advance(seconds * 1000)
    of_each = sum(looked_at) / 3
    assert rate * seconds * 0.9 < of_each <= rate * seconds + SLICE_BYTES


def test_replicas_that_are_all_damaged_mend_each_other(scrubbed: ClusterWorld) -> None:
    scrubbed.create_topic("t")
    for value in VALUES:
        assert produce(scrubbed, "t", value * 5_000).error_code == 0
    scrubbed.until(
        lambda: all(one.high_watermark == len(VALUES) for one in scrubbed.replicas_of("t").values())
    )
    for number, (broker, replica) in enumerate(scrubbed.replicas_of("t").items()):
        rot(scrubbed, broker, replica, at=IN_RECORDS, batch=number)
    scrubbed.until(lambda: all(is_sound(scrubbed, broker, "t") for broker in (1, 2, 3)))
    scrubbed.until(lambda: bool(scrubbed.leader_of("t")))
    assert fetch(scrubbed, "t") == [value * 5_000 for value in VALUES]
    assert produce(scrubbed, "t", b"more").base_offset == len(VALUES)


def test_readers_of_what_nobody_can_mend_do_not_have_it_looked_for_again_and_again(
    cluster: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.create_topic("t", replicas=1)
    assert produce(cluster, "t", *VALUES).error_code == 0
    leader = cluster.leader_of("t")
    rot(cluster, leader, cluster.replicas_of("t")[leader], at=MAGIC_AT)
    step_count = 0
    step = Scrub.step

    def counted(self: Scrub, bytes_max: int) -> int:
        nonlocal step_count
        step_count += 1
        return step(self, bytes_max)

    monkeypatch.setattr(Scrub, "step", counted)
    for _ in range(50):
        assert fetch_error(cluster, leader, "t") == Error.KAFKA_STORAGE_ERROR
        with pytest.raises(StorageError):  # It names the directory alone.
            cluster.replicas_of("t")[leader].read_verified(Offset(0), 1_000)
        cluster.advance(100)
    assert 0 < step_count < 10


def test_what_nobody_else_has_stays_damaged_and_nothing_else_does(scrubbed: ClusterWorld) -> None:
    scrubbed.create_topic("t", replicas=1)
    for value in VALUES:
        assert produce(scrubbed, "t", value * 5_000).error_code == 0
    leader = scrubbed.leader_of("t")
    rot(scrubbed, leader, scrubbed.replicas_of("t")[leader], at=IN_RECORDS)
    scrubbed.until(lambda: scrubbed.replicas_of("t")[leader].is_damaged)
    scrubbed.advance(30_000)
    assert scrubbed.leader_of("t") == leader
    assert fetch_error(scrubbed, leader, "t") == Error.KAFKA_STORAGE_ERROR
    assert fetch(scrubbed, "t", offset=1) == [value * 5_000 for value in VALUES[1:]]


def test_the_offsets_of_groups_are_mended_though_their_log_is_compacted(
    scrubbed: ClusterWorld,
) -> None:
    scrubbed.create_topic("t")
    leader = commit_offset(scrubbed, 7)
    topic, _, index = coordinating_partition(scrubbed).rpartition("-")
    replicas = scrubbed.replicas_of(topic, int(index))
    damaged = next(broker for broker in replicas if broker != leader)
    scrubbed.until(lambda: replicas[damaged].high_watermark == replicas[leader].high_watermark)
    rot(scrubbed, damaged, replicas[damaged], at=IN_RECORDS)
    scrubbed.until(lambda: repaired(scrubbed, damaged) == 1)
    replicas[leader].transfer_leadership(BrokerId(damaged))
    scrubbed.until(lambda: scrubbed.leader_of(topic, int(index)) == damaged)
    scrubbed.until(lambda: committed_offset(scrubbed, damaged) == 7)


def test_a_log_that_is_found_damaged_at_the_start_is_cut_and_copied_again(
    cluster: ClusterWorld, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.create_topic("t")
    for value in VALUES:
        assert produce(cluster, "t", value * 5_000).error_code == 0
    leader = cluster.leader_of("t")
    damaged = next(broker for broker in (1, 2, 3) if broker != leader)
    cluster.until(lambda: cluster.replicas_of("t")[damaged].high_watermark == len(VALUES))
    cluster.advance(6_000)  # What is durable is noted every 5 s.
    assert produce(cluster, "t", b"last").error_code == 0
    cluster.advance(1_000)
    replica = cluster.replicas_of("t")[damaged]
    cluster.hosts[damaged].kill()
    rot(cluster, damaged, replica, at=IN_RECORDS, batch=2)
    cluster.hosts[damaged].start()
    cluster.until_started(damaged)
    assert "its log cannot be opened" in caplog.text
    assert damaged not in cluster.replicas_of("t")
    cluster.until(lambda: damaged in cluster.replicas_of("t"))
    copy = cluster.replicas_of("t")[damaged]
    assert copy.raft.has_lost_state
    assert copy.log_end_offset == 2
    cluster.until(lambda: not copy.raft.has_lost_state)
    cluster.until(lambda: copy.high_watermark == len(VALUES) + 1)
    assert is_sound(cluster, damaged, "t")
    assert fetch(cluster, "t", at=damaged) == [*(value * 5_000 for value in VALUES), b"last"]


def test_a_log_with_an_epoch_that_never_was_is_copied_anew(cluster: ClusterWorld) -> None:
    """No checksum covers the epoch of a batch; the state journal knows of none that is as high."""
    cluster.create_topic("t")
    assert produce(cluster, "t", *VALUES).error_code == 0
    leader = cluster.leader_of("t")
    damaged = next(broker for broker in (1, 2, 3) if broker != leader)
    cluster.until(lambda: cluster.replicas_of("t")[damaged].high_watermark == len(VALUES))
    cluster.advance(1_000)
    replica = cluster.replicas_of("t")[damaged]
    cluster.hosts[damaged].kill()
    rot(cluster, damaged, replica, at=IN_EPOCH)
    cluster.hosts[damaged].start()
    cluster.until_started(damaged)
    assert damaged not in cluster.replicas_of("t")
    cluster.until(lambda: damaged in cluster.replicas_of("t"))
    cluster.until(lambda: cluster.replicas_of("t")[damaged].high_watermark == len(VALUES))
    cluster.until(lambda: not cluster.replicas_of("t")[damaged].raft.has_lost_state)
    assert is_sound(cluster, damaged, "t")


def test_a_damaged_log_is_kept_while_nobody_else_leads(cluster: ClusterWorld) -> None:
    cluster.create_topic("t")
    for value in VALUES:
        assert produce(cluster, "t", value * 5_000).error_code == 0
    leader = cluster.leader_of("t")
    damaged = next(broker for broker in (1, 2, 3) if broker != leader)
    other = next(broker for broker in (1, 2, 3) if broker not in (leader, damaged))
    cluster.until(lambda: cluster.replicas_of("t")[damaged].high_watermark == len(VALUES))
    cluster.advance(6_000)
    assert produce(cluster, "t", b"last").error_code == 0
    cluster.advance(1_000)
    replica = cluster.replicas_of("t")[damaged]
    for broker in (1, 2, 3):
        cluster.hosts[broker].kill()
    path = f"{replica.log.directory}/{FIRST_SEGMENT}"
    size = rot(cluster, damaged, replica, at=IN_RECORDS, batch=2)
    for broker in (damaged, other):
        cluster.hosts[broker].start()
    cluster.until_started(damaged, other)
    cluster.advance(60_000)
    assert cluster.leader_of("t") == 0
    assert file_size(cluster, damaged, path) == size
    cluster.hosts[leader].start()
    cluster.until(lambda: cluster.leader_of("t") != 0)
    cluster.until(lambda: damaged in cluster.replicas_of("t"))
    cluster.until(lambda: cluster.replicas_of("t")[damaged].high_watermark == len(VALUES) + 1)
    assert is_sound(cluster, damaged, "t")
