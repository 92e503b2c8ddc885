"""Every question about offsets, at every boundary between buckets and disks, against one list of
the records in memory.

How:    a topic has two epochs, and four objects of ten records in two buckets; the disks have the
        last ten records. The second epoch begins inside an object. Then records are deleted up to
        some boundary, and every question is asked about every boundary.
Source: KIP-320, KIP-405, KIP-1005, KIP-1023; decisions 0057 and 0060."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from tests.broker.cluster_world import VOTERS, ClusterWorld, joined
from tests.broker.test_broker_in_a_cluster import produce
from tests.broker.test_delete_records import delete
from tests.broker.test_remote_reads_in_a_cluster import CONFIGS, SECTION, let_go
from tests.broker.tiering_world import leader

from strandline.protocol.errors import Error
from strandline.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from strandline.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from strandline.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from strandline.records.batch import iterate_headers

SEGMENTS, RECORDS = 4, 10
END, LOCAL = 50, 40
CHANGE = 25
"""Where the second epoch begins."""
OBJECTS = range(0, LOCAL, RECORDS)
BOUNDARIES = sorted(
    {at + delta for at in (*OBJECTS, CHANGE, LOCAL, END) for delta in (-1, 0, 1) if at + delta >= 0}
)
DELETED = (0, 1, 13, 20, CHANGE, 39, LOCAL, 41, 49, END)
"""Records before these are deleted: inside an object, at a base, at the seam, on disks, all."""


class Row(NamedTuple):
    """One record."""

    timestamp: int
    epoch: int


class Reference:
    """The partition, in memory."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self.start = 0

    def epoch_at(self, offset: int) -> int:
        return self.rows[min(offset, END - 1)].epoch

    def delete(self, before: int) -> tuple[int, int]:
        """(error, low watermark)"""
        if before > END:
            return Error.OFFSET_OUT_OF_RANGE, -1
        self.start = max(self.start, before)
        return Error.NONE, self.start

    def list(self, timestamp: int) -> tuple[int, int]:
        """(offset, epoch)"""
        local = max(self.start, LOCAL)
        if timestamp in (-1, -2, -4, -6):
            offset = {-1: END, -2: self.start, -4: local, -6: local}[timestamp]
            return offset, self.epoch_at(offset)
        readable = range(self.start, END)
        if timestamp == -5:
            found = LOCAL - 1 if self.start < LOCAL else -1
        elif timestamp == -3:
            found = max(readable, key=lambda one: self.rows[one].timestamp, default=-1)
        else:
            found = next((one for one in readable if self.rows[one].timestamp >= timestamp), -1)
        return (found, self.rows[found].epoch) if found >= 0 else (-1, -1)

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """(the greatest epoch <= `epoch`, where it ends)"""
        epochs = sorted({one.epoch for one in self.rows})
        if epoch > epochs[-1]:
            return -1, -1
        if epoch == epochs[-1]:
            return epoch, END
        # Those from before the partition begins end where it begins.
        if epoch < epochs[0] or self.start >= CHANGE:
            return epoch, self.start
        return epochs[0], CHANGE

    def fetch(self, offset: int) -> tuple[int, int]:
        """(error, first offset that comes; -1 for none)"""
        if not self.start <= offset <= END:
            return Error.OFFSET_OUT_OF_RANGE, -1
        return Error.NONE, offset if offset < END else -1


def write(world: ClusterWorld, rows: list[Row], count: int) -> None:
    for _ in range(count):
        broker = world.leader_of("t")
        timestamp = world.broker(broker).services.clock.wall_ms()
        assert produce(world, "t", b"%03d" % len(rows)).base_offset == len(rows)
        rows.append(Row(timestamp, leader(world).epoch))
        world.advance(10)


def roll(world: ClusterWorld) -> None:
    world.advance(1_000)
    for broker, replica in world.replicas_of("t").items():
        process = world.hosts[broker].process
        assert process is not None
        process.run_now(replica.log._roll)


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return []


@pytest.fixture
def world(rows: list[Row]) -> Iterator[ClusterWorld]:
    rows.clear()
    with joined(ClusterWorld(VOTERS, tiered=SECTION)) as cluster:
        cluster.create_topic("t", configs=CONFIGS)
        for segment in range(SEGMENTS + 1):
            if segment == CHANGE // RECORDS:
                write(cluster, rows, CHANGE % RECORDS)
                first = cluster.leader_of("t")
                cluster.hosts[first].kill()
                cluster.until(lambda first=first: cluster.leader_of("t") not in (0, first))
                cluster.hosts[first].start()
                cluster.until_started(first)
                write(cluster, rows, RECORDS - CHANGE % RECORDS)
            else:
                write(cluster, rows, RECORDS)
            if segment < SEGMENTS:
                roll(cluster)
        let_go(cluster)
        cluster.until(lambda: {one.log.start_offset for one in _replicas(cluster)} == {LOCAL})
        yield cluster


def _replicas(world: ClusterWorld) -> list[object]:
    return list(world.replicas_of("t").values())


def listed(world: ClusterWorld, timestamp: int) -> tuple[int, int]:
    asked = ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(timestamp=timestamp)])
    request = ListOffsetsRequest(topics=[asked])
    answer = world.ask(world.leader_of("t"), request, ListOffsetsResponse, 11)
    (one,) = answer.topics[0].partitions
    assert one.error_code == Error.NONE
    return one.offset, one.leader_epoch


def epoch_end(world: ClusterWorld, epoch: int) -> tuple[int, int]:
    asked = OffsetForLeaderTopic("t", [OffsetForLeaderPartition(leader_epoch=epoch)])
    request = OffsetForLeaderEpochRequest(topics=[asked])
    answer = world.ask(world.leader_of("t"), request, OffsetForLeaderEpochResponse, 4)
    (one,) = answer.topics[0].partitions
    assert one.error_code == Error.NONE
    return one.leader_epoch, one.end_offset


def first_fetched(world: ClusterWorld, offset: int, *, at: int) -> tuple[int, int]:
    asked = FetchPartition(fetch_offset=offset, partition_max_bytes=1_000_000)
    topics = [FetchTopic(topic="t", partitions=[asked])]
    request = FetchRequest(max_wait_ms=500, min_bytes=1, topics=topics)
    found = world.ask(at, request, FetchResponse, 12).responses[0].partitions[0]
    headers = list(iterate_headers(found.records)) if found.records else []
    return found.error_code, headers[0].base_offset if headers else -1


def deleted(world: ClusterWorld, before: int) -> tuple[int, int]:
    found = delete(world, before)
    return found.error_code, found.low_watermark


def compare(world: ClusterWorld, reference: Reference) -> None:
    """Ask everything about every boundary."""
    names = {one: reference.list(one) for one in (-1, -2, -3, -4, -5, -6)}
    assert {one: listed(world, one) for one in names} == names
    times = [
        reference.rows[at].timestamp + delta
        for at in BOUNDARIES
        if at < END
        for delta in (-1, 0, 1)
    ]
    assert {one: listed(world, one) for one in times} == {one: reference.list(one) for one in times}
    first, last = reference.rows[0].epoch, reference.rows[-1].epoch
    epochs = (*range(max(0, first - 1), last + 1), last + 5)
    assert {one: epoch_end(world, one) for one in epochs} == {
        one: reference.epoch_end(one) for one in epochs
    }
    for at in VOTERS:
        assert {one: first_fetched(world, one, at=at) for one in BOUNDARIES if one <= END} == {
            one: reference.fetch(one) for one in BOUNDARIES if one <= END
        }


@pytest.mark.parametrize("before", DELETED)
def test_all_answers_at_all_boundaries_are_those_of_the_list(
    world: ClusterWorld, rows: list[Row], before: int
) -> None:
    reference = Reference(list(rows))
    assert len({one.epoch for one in rows}) == 2
    if not before:
        compare(world, reference)
        assert deleted(world, END + 1) == reference.delete(END + 1)
    assert deleted(world, before) == reference.delete(before)
    world.until(
        lambda: {one.log_start_offset for one in _replicas(world)} == {before}  # type: ignore[attr-defined]
    )
    compare(world, reference)
    for again in (0, max(0, before - 1), before):
        assert deleted(world, again) == reference.delete(again)
    compare(world, reference)
