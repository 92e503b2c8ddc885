"""A shard loads its partition before it answers, and closes as soon as leadership is lost."""

import asyncio
import random
from typing import cast

import pytest
from tests.broker.broker_world import OTHER, BrokerWorld, ObedientReplica

from strandline.broker.coordinators.coordinator_shard import CoordinatorShard
from strandline.broker.coordinators.timer_table import Name, TimerTable
from strandline.coordinator.answers import Answer, CommitAnswer, DeleteAnswer
from strandline.coordinator.log_records import CommittedOffset, encode_offset
from strandline.coordinator.requests import (
    CommitOffsets,
    DeleteGroup,
    OffsetToCommit,
    Request,
)
from strandline.coordinator.settings import DEFAULT_GROUP_SETTINGS
from strandline.protocol.errors import Error
from strandline.records.batch import iterate_headers, read_header
from strandline.records.record import Record, build_batch

GROUPS = 40


BATCH_BYTES_MAX = 20_000


def make_shard(world: BrokerWorld, replica: ObedientReplica) -> CoordinatorShard:
    return CoordinatorShard(
        cast("object", replica),  # type: ignore[arg-type]
        clock=world.clock,
        rng=random.Random(1),
        settings=DEFAULT_GROUP_SETTINGS,
        batch_bytes_max=lambda: BATCH_BYTES_MAX,
    )


def fill(replica: ObedientReplica, batches: int) -> None:
    """Commits of many groups, each group's offset rising with every batch."""
    for number in range(batches):
        records = []
        for delta in range(GROUPS):
            value = CommittedOffset(number, -1, "m" * 200, commit_ms=1)
            key, encoded = encode_offset(f"g{delta}", "flights", 0, value=value)
            records.append(Record(offset_delta=delta, timestamp=1, key=key, value=encoded))
        batch = build_batch(records)
        header = read_header(batch)
        assert header is not None
        header.stamp(batch, base_offset=replica.log.end_offset, epoch=replica.epoch)
        replica.log.append([batch], [header])
    replica.high_watermark = replica.log.end_offset


def commit(token: int, offset: int) -> CommitOffsets:
    return CommitOffsets(token=token, group="g1", offsets=(OffsetToCommit("flights", 0, offset),))


def test_a_long_log_is_loaded_in_parts_before_anything_is_answered(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("__consumer_offsets")
    fill(replica, batches=100)
    shard = make_shard(world, replica)
    world._run(shard.start)
    assert shard.error is Error.COORDINATOR_LOAD_IN_PROGRESS
    world.advance(0)
    assert shard.error is Error.NONE
    assert replica.read_count > 3
    assert len(shard.coordinator.list_groups()) == GROUPS
    assert shard.coordinator.committed("g7")["flights", 0].offset == 99
    world.run(shard.close)


def test_strange_batches_in_the_log_are_passed_over(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("__consumer_offsets")
    replica.write(b"somebody else's")
    fill(replica, batches=1)
    shard = make_shard(world, replica)
    world.run(shard.start)
    assert len(shard.coordinator.list_groups()) == GROUPS
    world.run(shard.close)


def test_leadership_that_is_lost_while_loading_ends_it(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("__consumer_offsets")
    fill(replica, batches=100)
    shard = make_shard(world, replica)
    world._run(shard.start)
    world._run(shard.close)
    world.advance(1_000)
    assert shard.error is Error.NOT_COORDINATOR
    assert not shard.is_loaded


def test_what_is_not_visible_yet_is_waited_for(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("__consumer_offsets")
    fill(replica, batches=1)
    end, replica.high_watermark = replica.high_watermark, replica.log_start_offset
    shard = make_shard(world, replica)
    world.run(shard.start)
    assert not shard.is_loaded
    replica.high_watermark = end
    world.run(replica.watchers.notify)
    assert shard.is_loaded
    world.run(shard.close)


def ask(world: BrokerWorld, shard: CoordinatorShard, request: Request) -> Answer:
    """The answer to a request."""
    tasks: list[asyncio.Task[Answer]] = []
    world.run(lambda: tasks.append(asyncio.get_running_loop().create_task(shard.ask(request))))
    return tasks[0].result()


def many(token: int, count: int, metadata: str = "") -> CommitOffsets:
    offsets = tuple(OffsetToCommit("flights", at, at, metadata=metadata) for at in range(count))
    return CommitOffsets(token=token, group="g1", offsets=offsets)


def test_what_is_larger_than_a_batch_may_be_is_refused_and_the_log_has_none_of_it(
    world: BrokerWorld,
) -> None:
    (replica,) = world.add_topic("__consumer_offsets")
    shard = make_shard(world, replica)
    world.run(shard.start)
    answer = ask(world, shard, many(1, 10, metadata="m" * 4_000))
    assert isinstance(answer, CommitAnswer)
    assert {one.error_code for one in answer.partitions} == {Error.INVALID_COMMIT_OFFSET_SIZE}
    assert replica.high_watermark == 0
    assert shard.coordinator.committed("g1") == {}
    answer = ask(world, shard, many(2, 4, metadata="m" * 4_000))
    assert isinstance(answer, CommitAnswer)
    assert {one.error_code for one in answer.partitions} == {Error.NONE}
    world.run(shard.close)


@pytest.mark.parametrize("fails", [False, True])
def test_a_large_group_is_removed_in_several_batches(world: BrokerWorld, fails: bool) -> None:
    (replica,) = world.add_topic("__consumer_offsets")
    shard = make_shard(world, replica)
    world.run(shard.start)
    for token in range(10):
        offsets = tuple(OffsetToCommit("flights", 200 * token + at, 1) for at in range(200))
        commit_some = CommitOffsets(token=token + 1, group="g1", offsets=offsets)
        assert isinstance(ask(world, shard, commit_some), CommitAnswer)
    before = replica.high_watermark
    if fails:
        replica.follow(OTHER, epoch=2)
    answer = ask(world, shard, DeleteGroup(token=20, group="g1"))
    if fails:
        assert answer == DeleteAnswer(Error.NOT_COORDINATOR)
        assert len(shard.coordinator.committed("g1")) == 2_000
    else:
        assert answer == DeleteAnswer(Error.NONE)
        data = replica.read_verified(before, 1 << 20)
        sizes = [header.size for header in iterate_headers(data)]
        assert len(sizes) > 2
        assert max(sizes) <= BATCH_BYTES_MAX
        assert sum(header.records_count for header in iterate_headers(data)) == 2_001
    world.run(shard.close)


def test_requests_that_wait_are_answered_when_leadership_is_lost(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("__consumer_offsets")
    shard = make_shard(world, replica)
    world.run(shard.start)
    replica.commits_at_once = False
    tasks: list[asyncio.Task[object]] = []

    def ask() -> None:
        for token in (1, 2):
            waiting = shard.ask(commit(token, token))
            tasks.append(asyncio.get_running_loop().create_task(waiting))

    world.run(ask)
    assert not any(task.done() for task in tasks)
    replica.follow(OTHER, epoch=2)
    world.run(shard.close)
    world.run(replica.commit)
    for task in tasks:
        answer = task.result()
        assert isinstance(answer, CommitAnswer)
        assert answer.partitions[0].error_code == Error.NOT_COORDINATOR


def test_a_refused_write_is_answered_at_once(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("__consumer_offsets")
    shard = make_shard(world, replica)
    world.run(shard.start)
    replica.is_leader = False
    tasks: list[asyncio.Task[object]] = []
    world.run(lambda: tasks.append(asyncio.get_running_loop().create_task(shard.ask(commit(1, 1)))))
    answer = tasks[0].result()
    assert isinstance(answer, CommitAnswer)
    assert answer.partitions[0].error_code == Error.NOT_COORDINATOR
    world.run(shard.close)


def test_a_leader_without_its_lease_answers_nobody(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("__consumer_offsets")
    shard = make_shard(world, replica)
    world.run(shard.start)
    replica.can_serve_reads = False
    assert shard.error is Error.NOT_COORDINATOR
    world.run(shard.close)


def test_a_timer_set_anew_fires_once_at_its_last_deadline(world: BrokerWorld) -> None:
    fired: list[tuple[Name, int]] = []
    start = world.clock.monotonic_ms()
    table = TimerTable(
        world.clock, lambda name: fired.append((name, world.clock.monotonic_ms() - start))
    )
    world.run(lambda: table.set(("g", "later"), 100))
    world.advance(60)
    world.run(lambda: table.set(("g", "later"), 100))
    world.run(lambda: table.set(("g", "sooner"), 500))
    world.run(lambda: table.set(("g", "sooner"), 20))
    world.run(lambda: table.set(("g", "never"), 10))
    world.run(lambda: table.cancel(("g", "never")))
    world.advance(1_000)
    assert fired == [(("g", "sooner"), 80), (("g", "later"), 160)]
    assert len(table) == 0


def test_cleared_timers_do_not_fire(world: BrokerWorld) -> None:
    fired: list[Name] = []
    table = TimerTable(world.clock, fired.append)
    world.run(lambda: table.set(("g", "a"), 10))
    world.run(table.clear)
    world.advance(100)
    assert fired == []
