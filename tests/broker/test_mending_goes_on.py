"""Damage that cannot be repaired, or not now, blocks no other detection or repair.

Source: decision 0007; an attack on the mending of damage."""

import asyncio
import contextlib
from collections.abc import Sequence
from errno import EIO
from functools import partial

import pytest
from tests.broker.cluster_world import ClusterWorld, three_brokers
from tests.broker.test_broker_in_a_cluster import produce
from tests.broker.test_damaged_logs import (
    FIRST_SEGMENT,
    IN_RECORDS,
    MAGIC_AT,
    TRUST_MS,
    VALUES,
    data_batches,
    fetch_error,
    rot,
    scrubbed,
    stop,
)

from strandline.base.errors import StorageError
from strandline.model.ids import BrokerId, Offset
from strandline.raft.events import Event
from strandline.replication.repair.gap_fetch import METHOD
from strandline.replication.replica.entries import Entries
from strandline.replication.replica.replica import Replica
from strandline.simulation.disk.disk import SimFile
from strandline.storage.layout import LOG

__all__ = ["scrubbed"]
LARGE = 5_000
"""Each such batch is a gap of its own: the index knows where it begins."""
ROUNDS_MS = 300_000
"""Time for many rounds of the scrub."""


def written(world: ClusterWorld, topic: str, *, size: int = LARGE, replicas: int = 3) -> None:
    """A batch of each value, on every replica."""
    world.create_topic(topic, replicas=replicas)
    write_more(world, topic, size=size)


def write_more(world: ClusterWorld, topic: str, *, size: int = LARGE) -> None:
    for value in VALUES:
        assert produce(world, topic, value * size).error_code == 0
    some = world.replicas_of(topic).values()
    world.until(lambda: len({one.high_watermark for one in some}) == 1)


def a_follower(world: ClusterWorld, topic: str) -> Replica:
    leader = world.leader_of(topic)
    return next(one for broker, one in world.replicas_of(topic).items() if broker != leader)


def lost_offsets(replica: Replica) -> list[Offset]:
    """Where what is damaged begins."""
    scrub = replica.log.mending.scrub(replica.log.start_index)
    while scrub.step(1 << 20):
        pass
    return [gap.start.offset for gap in scrub.gaps]


def test_a_gap_that_nobody_can_mend_leaves_the_others_of_its_segment_to_be_mended(
    scrubbed: ClusterWorld,
) -> None:
    written(scrubbed, "t")
    one = a_follower(scrubbed, "t")
    for broker, replica in scrubbed.replicas_of("t").items():
        rot(scrubbed, broker, replica, at=IN_RECORDS, batch=0)
    rot(scrubbed, one.self_id, one, at=IN_RECORDS, batch=3)
    scrubbed.advance(ROUNDS_MS)
    assert lost_offsets(one) == [0]


def test_two_replicas_that_have_all_batches_between_them_mend_each_other(
    scrubbed: ClusterWorld,
) -> None:
    """Where the index knows of no place between what one and the other lack."""
    written(scrubbed, "t", size=50, replicas=2)
    for batch, (broker, replica) in enumerate(scrubbed.replicas_of("t").items()):
        rot(scrubbed, broker, replica, at=IN_RECORDS, batch=1 + batch)
    scrubbed.advance(ROUNDS_MS)
    assert not any(map(lost_offsets, scrubbed.replicas_of("t").values()))


def test_what_a_reader_meets_beside_a_gap_that_nobody_can_mend_is_mended(
    cluster: ClusterWorld,
) -> None:
    written(cluster, "t")
    for broker, replica in cluster.replicas_of("t").items():
        cluster.hosts[broker].process.run_now(replica.log._roll)
    write_more(cluster, "t")
    for broker, replica in cluster.replicas_of("t").items():
        rot(cluster, broker, replica, at=IN_RECORDS, batch=0)
    cluster.advance(TRUST_MS)
    one = a_follower(cluster, "t")
    with pytest.raises(StorageError):
        one.read_verified(Offset(0), 10_000)
    cluster.until(lambda: one.is_damaged)
    path = one.log._row.segments[1].path(LOG)
    begins = data_batches(cluster, one.self_id, path)[1]
    cluster.hosts[one.self_id].disk.rot(path, (begins + IN_RECORDS) * 8)
    for _ in range(8):
        cluster.advance(TRUST_MS)
        with contextlib.suppress(StorageError):
            one.read_verified(Offset(len(VALUES) + 1), 4_000)
    assert lost_offsets(one) == [0]


@pytest.mark.parametrize("rate", [64 << 10])
def test_a_log_that_is_written_faster_than_it_is_looked_at_does_not_hold_up_the_scrub(
    rate: int,
) -> None:
    with three_brokers(scrub_rate=rate) as world:
        world.create_topic("busy")
        written(world, "quiet", size=50)
        one = a_follower(world, "quiet")
        busy = world.leader_of("busy")

        def write(seconds: int) -> None:
            for _ in range(10 * seconds):
                world.advance(100)
                for _ in range(2):
                    assert produce(world, "busy", bytes(5_000)).error_code == 0

        write(40)  # The scrub has come to it.
        rot(world, one.self_id, one, at=IN_RECORDS)
        write(60)
        assert world.leader_of("busy") == busy
        assert not lost_offsets(one)


def refuse_writes_over(
    monkeypatch: pytest.MonkeyPatch, world: ClusterWorld, replica: Replica
) -> None:
    """The sectors of its log cannot be written any more."""
    pwrite = SimFile.pwrite
    hardware = world.hosts[replica.self_id].disk

    def refused(self: SimFile, buffers: Sequence[bytes], position: int) -> int:
        if self.path.startswith(replica.log.directory) and self._disk.hardware is hardware:
            raise OSError(EIO, "Input/output error")
        return pwrite(self, buffers, position)

    monkeypatch.setattr(SimFile, "pwrite", refused)


def test_a_disk_that_refuses_what_mends_a_log_fails_that_log_and_no_other(
    scrubbed: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(scrubbed, "a")
    written(scrubbed, "b")
    one = a_follower(scrubbed, "a")
    other = scrubbed.replicas_of("b")[one.self_id]
    refuse_writes_over(monkeypatch, scrubbed, one)
    rot(scrubbed, one.self_id, one, at=IN_RECORDS, batch=1)
    scrubbed.until(lambda: one.log.failed)
    scrubbed.advance(1_000)
    assert one.failed is not None
    rot(scrubbed, one.self_id, other, at=IN_RECORDS, batch=1)
    scrubbed.advance(ROUNDS_MS)
    assert not lost_offsets(other)


@pytest.mark.parametrize("gaps", [1, 9])
def test_a_log_whose_helpers_do_not_answer_does_not_hold_up_the_scrub(
    scrubbed: ClusterWorld, gaps: int
) -> None:
    written(scrubbed, "a")
    for _ in range(4):
        write_more(scrubbed, "a")
    written(scrubbed, "b")
    one = a_follower(scrubbed, "a")
    other = scrubbed.replicas_of("b")[one.self_id]

    async def hang(sender: BrokerId, payload: bytes) -> bytes:
        await asyncio.Event().wait()
        raise AssertionError("nothing sets it")

    for broker in (1, 2, 3):
        if broker != one.self_id:
            scrubbed.broker(broker).replication.calls._handlers[METHOD] = hang
    for number in range(gaps):
        rot(scrubbed, one.self_id, one, at=IN_RECORDS, batch=1 + 2 * number)
    scrubbed.until(lambda: one.is_damaged)
    rot(scrubbed, one.self_id, other, at=IN_RECORDS, batch=1)
    scrubbed.advance(100_000)
    assert other.is_damaged


def end_with_another_tail(world: ClusterWorld, *, times: int = 1) -> tuple[int, list[int]]:
    """The leader stops with batches that no other replica has; the others continue."""
    leader = world.leader_of("t")
    others = [broker for broker in (1, 2, 3) if broker != leader]
    for broker in others:
        world.hosts[broker].kill()
    for _ in range(times):
        assert produce(world, "t", b"lost", acks=1).error_code == 0
    world.advance(200)
    stop(world, leader)
    for broker in others:
        world.hosts[broker].start()
    world.until_started(*others)
    world.until(lambda: world.leader_of("t") in others)
    world.until(lambda: produce(world, "t", b"kept").error_code == 0)
    return leader, others


def comes_back(world: ClusterWorld, broker: int) -> None:
    """Until it has what the others have."""
    world.hosts[broker].start()
    world.until_started(broker)

    def is_whole() -> bool:
        some = world.replicas_of("t")
        ends = {one.high_watermark for one in some.values()}
        return len(some) == 3 and ends == {len(VALUES) + 1}

    world.until(is_whole)


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("hides_next", [False, True])
def test_a_voter_whose_log_is_damaged_where_it_has_to_be_cut_is_mended_and_cut(
    scrubbed: ClusterWorld, times: int, hides_next: bool
) -> None:
    """What is cut lies behind the damage, before the next place that the index knows of."""
    written(scrubbed, "t", size=50)
    one = scrubbed.replicas_of("t")[scrubbed.leader_of("t")]
    broker, _ = end_with_another_tail(scrubbed, times=times)
    rot(scrubbed, broker, one, at=IN_RECORDS, batch=len(VALUES) - 1)
    if hides_next:
        rot(scrubbed, broker, one, at=MAGIC_AT, batch=len(VALUES))
    comes_back(scrubbed, broker)
    assert not lost_offsets(scrubbed.replicas_of("t")[broker])


@pytest.mark.parametrize("leads_since", ["the write", "afterwards"])
def test_a_log_is_cut_behind_what_is_lost_everywhere(
    scrubbed: ClusterWorld, leads_since: str
) -> None:
    """And gets what lies behind it, which a leader that was elected since does not have in memory,
    and cannot look for but behind the damage."""
    written(scrubbed, "t", size=50)
    one = scrubbed.replicas_of("t")[scrubbed.leader_of("t")]
    broker, others = end_with_another_tail(scrubbed)
    if leads_since == "afterwards":
        before = scrubbed.leader_of("t")
        after = next(other for other in others if other != before)
        leader = scrubbed.replicas_of("t")[before]
        scrubbed.hosts[before].process.run_now(partial(leader.transfer_leadership, after))
        scrubbed.until(lambda: scrubbed.leader_of("t") == after)
    rot(scrubbed, broker, one, at=IN_RECORDS, batch=1)
    for other in others:
        rot(scrubbed, other, scrubbed.replicas_of("t")[other], at=IN_RECORDS, batch=1)
    if leads_since == "afterwards":
        scrubbed.advance(TRUST_MS)
    comes_back(scrubbed, broker)


def test_a_leader_that_cannot_read_what_the_others_lack_gives_up_though_they_lost_something_else(
    scrubbed: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(scrubbed, "t")
    for broker, replica in scrubbed.replicas_of("t").items():
        scrubbed.hosts[broker].process.run_now(replica.log._roll)
    assert produce(scrubbed, "t", bytes(LARGE)).error_code == 0
    for broker, replica in scrubbed.replicas_of("t").items():
        rot(scrubbed, broker, replica, at=IN_RECORDS, batch=0)
    scrubbed.advance(100_000)
    one = scrubbed.replicas_of("t")[scrubbed.leader_of("t")]
    step = Replica.step

    def takes_nothing(self: Replica, event: Event, entries: Entries | None = None) -> None:
        if self.group != one.group or self.self_id == one.self_id or entries is None:
            step(self, event, entries)

    with monkeypatch.context() as patch:
        patch.setattr(Replica, "step", takes_nothing)
        for _ in range(3):
            assert produce(scrubbed, "t", bytes(LARGE), acks=1).error_code == 0
        scrubbed.advance(300)
        path = one.log._row.active.path(LOG)
        begins = data_batches(scrubbed, one.self_id, path)[1]
        scrubbed.hosts[one.self_id].disk.rot(path, (begins + IN_RECORDS) * 8)
        scrubbed.advance(3_000)
    scrubbed.advance(60_000)
    assert produce(scrubbed, "t", b"more").error_code == 0


def test_what_one_gap_has_behind_a_batch_that_is_lost_everywhere_is_mended(
    scrubbed: ClusterWorld,
) -> None:
    written(scrubbed, "t")
    one = scrubbed.replicas_of("t")[scrubbed.leader_of("t")]
    for broker, replica in scrubbed.replicas_of("t").items():
        rot(scrubbed, broker, replica, at=IN_RECORDS, batch=0)
    for batch in (1, 2):
        rot(scrubbed, one.self_id, one, at=IN_RECORDS, batch=batch)
    scrubbed.advance(ROUNDS_MS)
    assert [lost_offsets(each) for each in scrubbed.replicas_of("t").values()] == [[0]] * 3


@pytest.mark.parametrize("is_one_down", [False, True])
def test_a_batch_that_is_lost_everywhere_does_not_send_the_lead_round(
    scrubbed: ClusterWorld, is_one_down: bool
) -> None:
    written(scrubbed, "t")
    for broker, replica in scrubbed.replicas_of("t").items():
        rot(scrubbed, broker, replica, at=IN_RECORDS, batch=0)
    if is_one_down:
        scrubbed.hosts[a_follower(scrubbed, "t").self_id].kill()
    scrubbed.advance(60_000)
    before = max(one.epoch for one in scrubbed.replicas_of("t").values())
    for _ in range(300):
        if leader := scrubbed.leader_of("t"):
            fetch_error(scrubbed, leader, "t")
        scrubbed.advance(1_000)
    assert max(one.epoch for one in scrubbed.replicas_of("t").values()) <= before + 3


def test_a_cut_that_damage_keeps_from_being_made_is_not_tried_for_each_append(
    scrubbed: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(scrubbed, "t", size=50)
    one = a_follower(scrubbed, "t")
    undone_count = 0

    def damaged(*_: object) -> None:
        nonlocal undone_count
        undone_count += 1
        raise StorageError(one.log.directory, 9, expected="a batch", found="damaged bytes")

    monkeypatch.setattr(one.log, "append", damaged)
    for _ in range(100):
        assert produce(scrubbed, "t", b"more").error_code == 0
        scrubbed.advance(100)
    assert 5 < undone_count < 15
    monkeypatch.undo()
    scrubbed.until(lambda: one.high_watermark == len(VALUES) + 100)


def test_the_rest_of_a_gap_whose_beginning_was_mended_stays_known(cluster: ClusterWorld) -> None:
    """An attack: the repair source falls silent after its first answer, and there is no scrub."""
    count = 80
    cluster.create_topic("t", replicas=2)
    for number in range(count):
        assert produce(cluster, "t", bytes([number]) * LARGE).error_code == 0
    cluster.advance(1_000)
    one = a_follower(cluster, "t")
    path = f"{one.log.directory}/{FIRST_SEGMENT}"
    _, _, first, second, *_ = data_batches(cluster, one.self_id, path)
    for number in range(count - 4):
        start = first + number * (second - first)
        cluster.hosts[one.self_id].disk.rot(path, (start + IN_RECORDS) * 8)
    assert len(lost_offsets(one)) == 1
    handlers = cluster.broker(cluster.leader_of("t")).replication.calls._handlers
    sound = handlers[METHOD]
    answered = 0

    async def answer_once(sender: BrokerId, payload: bytes) -> bytes:
        nonlocal answered
        answered += 1
        if answered > 1:
            await asyncio.Event().wait()
        return await sound(sender, payload)

    handlers[METHOD] = answer_once
    cluster.advance(TRUST_MS)
    with pytest.raises(StorageError):
        one.read_verified(Offset(3), 10_000)
    cluster.until(lambda: answered > 1 and one.host.repairs.mended_count > 0)
    assert lost_offsets(one) and one.is_damaged
    handlers[METHOD] = sound
    cluster.until(lambda: not one.is_damaged)
    assert not lost_offsets(one)
