"""A rewritten segment replaces the segments it was made from, and nothing else.

Source: `storage.log.row.SegmentRow.replace`; decisions 0007 and 0039."""

import random
from collections.abc import Callable

import pytest
from tests.storage.log_world import DIRECTORY, MARK_INTERVAL_MS, World
from tests.storage.storage_world import Content, ManualClock
from tests.storage.test_claims import CRASHES, alarm_count
from tests.storage.test_flushed_mark import marked, settle
from tests.storage.test_log_compaction import World as CompactedWorld
from tests.storage.test_mending import entries_of, scrubbed

from strandline.base.disk import is_full
from strandline.model.ids import Index, Offset
from strandline.records.batch import iterate_headers
from strandline.storage.log.log import Log
from strandline.storage.recovery.rewriting import Rewrite


def answer(world: World | CompactedWorld, is_meant: Callable[[Content], bool]) -> None:
    """The flushes of these files; the others stay under way."""
    flushes, world.disk.flushes = world.disk.flushes, []
    for content, count, done in flushes:
        if is_meant(content):
            content.flush_up_to(count)
            done(None)
        else:
            world.disk.flushes.append((content, count, done))


def rewriting(world: World, peer: World, *, segment: int) -> Rewrite:
    """One bit of that segment has flipped, and is mended from a peer."""
    damaged = world.log._row.segments[segment]
    content = world.disk._find(damaged.path(".log"))
    assert content is not None
    content.seen[70] ^= 1
    if not content.changes:
        content.platter[70] ^= 1
    (gap,) = scrubbed(world.log)
    data = world.log.mending.fitting(gap, entries_of(peer.log, gap))
    return world.log.mending.rewrite([(gap, data)])


def rolling() -> World:
    return World(segment_bytes=100_000, segment_ms=1_000, index_interval_bytes=10)


def rolling_pair() -> tuple[World, World]:
    """(a durable log of four batches, another replica's)."""
    world, peer = rolling(), rolling()
    for _ in range(4):
        world.append()
        peer.append()
    world.flush()
    return world, peer


def finish(world: World, rewrite: Rewrite, is_meant: Callable[[Content], bool]) -> bool:
    """As `replication.repairs` does; whether it took its place."""
    while rewrite.step(1 << 20):
        answer(world, is_meant)
        cleaned = rewrite.take()
        if cleaned is not None:
            world.log.mending.replace(cleaned)
            return True
    rewrite.abandon()
    return False


def read_epochs(world: World, start: int) -> list[int]:
    data = world.log.read_records(Offset(start), 1 << 20, world.log.end_offset).bytes()
    return [header.partition_leader_epoch for header in iterate_headers(data)]


@pytest.mark.parametrize("is_reset", [False, True])
def test_what_was_cut_meanwhile_does_not_come_back(is_reset: bool) -> None:
    """The end of a segment that is mended was never committed: another leader has it cut, other
    entries follow, and are acknowledged."""
    world, peer = rolling_pair()
    rewrite = rewriting(world, peer, segment=0)
    rewrite.step(1 << 20)
    if is_reset:
        world.log.reset_to(Index(0), Offset(0), previous_epoch=world.log.previous_epoch)
    else:
        world.log.truncate(Index(2))
    while world.log.last_index < 3:
        world.append(epoch=2)
    world.flush()
    world.clock.advance(1_000)
    world.log.roll_if_due()
    world.append(epoch=2)
    world.flush()
    assert not finish(world, rewrite, lambda content: True)
    assert world.log.last_index == 4
    assert read_epochs(world, 0 if is_reset else 2)[:2] == [2, 2]


def test_who_was_given_up_removes_nothing_of_who_works_there_now() -> None:
    world, peer = rolling_pair()
    first = rewriting(world, peer, segment=0)
    first.step(1 << 20)
    world.log.mending.abandon()
    (gap,) = scrubbed(world.log)
    data = world.log.mending.fitting(gap, entries_of(peer.log, gap))
    second = world.log.mending.rewrite([(gap, data)])
    second.step(1 << 20)
    first.abandon()
    assert finish(world, second, lambda content: True)
    assert not scrubbed(world.log)


def test_a_segment_that_is_mended_is_sealed_once_all_before_it_is_durable() -> None:
    world, peer = (World(segment_bytes=310) for _ in range(2))
    while len(world.files()) < 2:
        world.append()
        peer.append()
    world.append()
    peer.append()
    results: list[Index | OSError] = []
    world.log.flush_soon(results.append)
    first = world.disk._find(world.log._row.segments[0].path(".log"))
    rewrite = rewriting(world, peer, segment=1)
    assert finish(world, rewrite, lambda content: content is not first)
    assert not world.files(".summary")
    assert alarm_count(world) == 0
    world.disk.run()
    world.flush()
    assert len(world.files(".summary")) == 2
    assert alarm_count(world) == 0


def compacting(world: CompactedWorld, *, space: int | None = None) -> None:
    """Compact all, while flushes of marks stay under way; the disk has so much room once the
    cleaned segment is written."""
    marks = [c for n, c in world.disk.names[DIRECTORY].items() if n.endswith(".flushed")]
    has_more = True
    while has_more:
        has_more = world.log.compact(
            Offset(world.log.end_offset), outlived=Offset(0), bytes_max=300
        )
        names = world.disk.list_directory(DIRECTORY)
        if space is not None and any(n.endswith(".cleaned") for n in names) and world.disk.flushes:
            world.disk.capacity = world.disk.used() + space
        answer(world, lambda content: not any(content is one for one in marks))


def filled() -> CompactedWorld:
    world = CompactedWorld()
    for value in (b"1", b"2", b"3"):
        world.append([(value, value * 50), (b"a", value * 50)])
    world.flush()
    return world


def test_a_mark_that_is_under_way_is_not_lowered_by_compaction() -> None:
    world = filled()
    world.close_segment()
    for value in (b"4", b"5"):
        world.append([(value, value * 50), (b"b", value * 50)])
    world.flush()
    world.clock.advance(MARK_INTERVAL_MS)
    compacting(world)
    world.disk.run()
    assert max(marked(world)) == world.log.last_index


@pytest.mark.parametrize("space", [0, 10, 13])
def test_compaction_without_space_for_a_mark_leaves_the_old_one(space: int) -> None:
    world = filled()
    settle(world)
    last = world.log.last_index
    world.clock.advance(world.config.segment_ms)
    assert world.log.roll_if_due()
    world.flush()
    assert max(marked(world)) == last
    try:
        compacting(world, space=space)
    except OSError as error:
        assert is_full(error)
        assert space < 13
    assert max(marked(world)) == last
    assert not world.log.failed
    world.disk.capacity = None
    compacting(world)
    for seed in range(CRASHES):
        disk = world.disk.twin()
        disk.crash(random.Random(seed))
        found = Log.open(disk, DIRECTORY, config=world.config, clock=ManualClock())
        assert found.last_index == last
