"""What each acks level waits for, and when its records are seen: one path for all of them.

Source: Redpanda RFC 20220119, "Current solution", "Proposed solution", "Implementation details"."""

import pytest
from tests.simulation.full_speed import counted, leader_of, run_for
from tests.simulation.plain_scenario import plain_scenario, started
from tests.simulation.test_replication_path import followers

from strandline.model.ids import Index
from strandline.records.batch import iterate_headers
from strandline.records.record import Record, build_batch
from strandline.replication.leader.requests import AppendResult
from strandline.replication.replica.replica import Replica
from strandline.simulation.scenarios.scenario import Scenario
from strandline.simulation.world.member import visible_end
from strandline.simulation.world.world import World
from strandline.storage.log.log import Log
from strandline.storage.log.reads import Entries

ONE_WAY_MS = 5
FLUSH_MS = 100


def slow_flushes() -> Scenario:
    """A flush takes ten round trips."""
    flush_us = FLUSH_MS * 1_000
    return plain_scenario(
        one_way_us=ONE_WAY_MS * 1_000, jitter_ratio=0.0, flush_us=(flush_us, flush_us)
    )


def at_rest() -> tuple[World, Replica]:
    world = started(slow_flushes())
    run_for(world, 3_000)
    return world, leader_of(world)


def send(world: World, replica: Replica, *, acks: int) -> list[AppendResult]:
    """One record; the list takes its answer."""
    batch = build_batch([Record(0, 1_000, None, b"v")])
    answers: list[AppendResult] = []
    process = world.hosts[replica.self_id].process
    assert process is not None
    headers = list(iterate_headers(batch))
    process.run_now(lambda: replica.replicate([batch], headers, acks=acks, done=answers.append))
    return answers


def test_with_a_quorum_the_call_ends_once_a_majority_has_flushed() -> None:
    """RFC: "the replication call finishes when the requested entry is safely replicated to the
    majority of the replicas and is flushed"."""
    world, replica = at_rest()
    answers = send(world, replica, acks=-1)
    run_for(world, FLUSH_MS)
    assert answers == []
    run_for(world, 10 * FLUSH_MS)
    (answer,) = answers
    assert answer.error_code == 0
    flushed = [one.log.flushed_index == one.log.last_index for one in world.cluster.replicas()]
    assert sum(flushed) >= 2


def test_with_the_leaders_acknowledgement_the_call_ends_before_any_flush() -> None:
    """RFC: "the replicate call finishes as soon as the write to the leader disk is finished (before
    it is flushed)"; apply_on_leader "will return immediately after the successful
    leader_append"."""
    world, replica = at_rest()
    answers = send(world, replica, acks=1)
    run_for(world, 1)
    assert [answer.error_code for answer in answers] == [0]
    assert replica.log.flushed_index < replica.log.last_index
    assert all(
        one.log.last_index < replica.log.last_index
        for one in world.cluster.replicas()
        if one is not replica
    )


@pytest.mark.parametrize("acks", [1, -1])
def test_what_is_seen_and_when_follows_from_the_acks(acks: int) -> None:
    """RFC: quorum entries are visible "as soon as they are fsynced on the majority of nodes", those
    with leader_ack "as soon as they are written to the follower's disk, but they are not required
    to be fsynced"."""
    world, replica = at_rest()
    begin = replica.high_watermark
    send(world, replica, acks=acks)
    run_for(world, 3 * ONE_WAY_MS)
    is_written = [one.log.last_index == replica.log.last_index for one in world.cluster.replicas()]
    is_flushed = [
        one.log.flushed_index == replica.log.last_index for one in world.cluster.replicas()
    ]
    assert (is_written, is_flushed) == ([True] * 3, [False] * 3)
    assert replica.high_watermark == (begin + 1 if acks == 1 else begin)
    run_for(world, 10 * FLUSH_MS)
    assert replica.high_watermark == begin + 1


def test_followers_are_sent_an_append_while_the_leader_flushes_and_more_while_they_do() -> None:
    """RFC: "dispatches append_entries_requests to the follower in parallel with the leader disk
    flush. In this case, Raft implementation may have multiple requests in flight per follower."""
    world, replica = at_rest()
    answers = []
    for _ in range(5):
        answers.append(send(world, replica, acks=-1))
        run_for(world, 1)
    run_for(world, 2 * ONE_WAY_MS)
    assert replica.log.flushed_index < replica.log.last_index, "its own flush is under way"
    assert not any(answers)
    for one in world.cluster.replicas():
        assert one.log.last_index == replica.log.last_index
    run_for(world, 10 * FLUSH_MS)
    assert [answer.error_code for (answer,) in answers] == [0] * 5


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_who_keeps_up_is_served_from_memory_and_nothing_recovers(
    acks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RFC: batches "are not first handed off to the disk and then read again, but rather shared to
    generate a leader disk write and follower append_entries requests"; "When the follower is up to
    date with the leader, recovery_stm is simply not running."""
    world, replica = at_rest()
    read_count = 0
    read_entries = Log.read_entries

    def read(log: Log, from_index: Index, max_bytes: int) -> Entries:
        nonlocal read_count
        read_count += 1
        return read_entries(log, from_index, max_bytes)

    monkeypatch.setattr(Log, "read_entries", read)
    first = replica.log.last_index + 1
    with counted(monkeypatch) as sent:
        for _ in range(50):
            send(world, replica, acks=acks)
            run_for(world, 2)
        run_for(world, 20 * FLUSH_MS)
    count = replica.log.last_index - first + 1
    assert count == 50
    assert read_count == 0
    assert sent.entry_count == dict.fromkeys(followers(world), count)
    assert (sent.repeated, sent.skipped) == ([], [])
    assert replica.raft.commit == replica.log.last_index


def test_all_levels_share_one_order() -> None:
    """RFC: "both currently supported consistency levels will be handled in the same way with use of
    replicate_batcher and replicate_entries stm"."""
    world, replica = at_rest()
    begin = replica.log_end_offset
    answers = [send(world, replica, acks=(1, -1, 0)[number % 3]) for number in range(30)]
    run_for(world, 20 * FLUSH_MS)
    offsets = [answer.base_offset for (answer,) in answers]
    assert offsets == list(range(begin, begin + 30))
    assert replica.high_watermark == begin + 30


def test_what_may_be_seen_is_what_was_said_before_while_the_core_is_ahead_of_its_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A brief seed: acks=1 records that were to be cut were still shown, rightly, while the next
    epoch was being made durable, and NothingShownTooEarly went by the core."""
    world, replica = at_rest()
    send(world, replica, acks=1)
    run_for(world, 3 * ONE_WAY_MS)
    assert visible_end(replica) == replica.high_watermark
    replica.raft.state.visible = Index(0)
    assert visible_end(replica) < replica.high_watermark
    monkeypatch.setattr(replica, "is_busy", True)
    assert visible_end(replica) == replica.high_watermark
