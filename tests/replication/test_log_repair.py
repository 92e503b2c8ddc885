"""What is done where mending meets more damage than it came for. Source: decision 0007."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from errno import EIO
from unittest.mock import AsyncMock, Mock

import pytest
from tests.replication.copies import make_copies
from tests.storage.storage_world import ForgetfulFile
from tests.storage.test_log_compaction import CONFIG
from tests.storage.test_mending import compacted_pair, entries_of, newest, scrubbed

from strandline.base.errors import StorageError
from strandline.model.ids import BrokerId, GroupId
from strandline.replication.repair import log_repair as repairs_module
from strandline.replication.repair.gap_fetch import Patch, RepairAttempt
from strandline.replication.repair.log_repair import LogRepair
from strandline.storage.compaction.segment_work import read_verified
from strandline.storage.layout import LOG
from strandline.storage.recovery.scrubbing import Gap


def test_what_is_found_damaged_while_a_segment_is_written_anew_is_looked_for() -> None:
    """It is in none of the known gaps: the same would be refused again and again."""
    repairs = LogRepair({}, Mock(), Mock())
    replica = Mock(group=GroupId(1), failed=None)
    repairs._gaps[replica.group] = [Mock()]
    damage = StorageError("/logs/t-0/00000000000000000000-0-0.log", 9, expected="a", found="b")
    rewrite = Mock(step=Mock(side_effect=damage))
    assert not asyncio.run(repairs._rewrite(replica, rewrite))
    assert repairs._suspects == {replica.group: damage.path}
    rewrite.abandon.assert_called_once()


@pytest.mark.parametrize("order", [list, reversed])
@pytest.mark.parametrize("who_compacts", ["peer", "nobody"])
def test_a_gap_that_has_grown_over_another_one_is_mended_once(
    who_compacts: str, order: Callable[[list[Gap]], list[Gap]]
) -> None:
    """A brief seed: a batch beside a known gap rotted, and the segment was written anew with what
    belongs there twice, which was refused again and again. And gaps are found in any order."""
    world, peer = compacted_pair(random.Random(1))
    if who_compacts == "peer":
        end = peer.log.end_offset
        while peer.log.compact(end, outlived=end, bytes_max=10_000):
            peer.disk.run()
    expected = newest(peer.log)
    log = world.log
    segment = log._row.segments[0]
    headers = list(segment.headers(0, segment.size_bytes))
    known: list[Gap] = []
    for number in (1, 2, len(headers) - 1):
        world.disk.flip_bit(segment.path(LOG), headers[number].position + 40)
        known += [gap for gap in scrubbed(log) if gap not in known]
    assert len(known) == 3 and log.mending.find_again(known[0]) == log.mending.find_again(known[1])
    clock = Mock()
    clock.monotonic_ms.return_value = 0
    repairs = LogRepair({}, Mock(), clock)
    replica = Mock(log=log, failed=None, is_busy=False)

    def fetch(_replica: object, gap: Gap, _lost_at: object) -> list[Patch]:
        return [Patch(gap, log.mending.fitting(gap, entries_of(peer.log, gap)), BrokerId(2))]

    async def mend() -> list[Gap]:
        task = asyncio.create_task(
            repairs._mend_segment(replica, list(order(known)), RepairAttempt())
        )
        while not task.done():
            world.disk.run()
            await asyncio.wait({task}, timeout=0.001)
        return task.result()

    repairs.gap_fetch.fetch = AsyncMock(side_effect=fetch)  # type: ignore[method-assign]
    assert not asyncio.run(mend())
    assert not repairs._suspects and not scrubbed(log)
    assert newest(log) == expected


def test_a_sector_that_cannot_be_read_beside_the_known_gaps_is_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A segment that is written anew keeps what is beside them."""
    world, _ = compacted_pair(random.Random(1))
    segment = world.log._row.segments[0]
    header = list(segment.headers(0, segment.size_bytes))[-1]
    pread = ForgetfulFile.pread

    def unreadable(self: ForgetfulFile, length: int, position: int) -> bytes:
        if self.path == segment.path(LOG) and position <= header.position + 70 < position + length:
            raise OSError(EIO, "Input/output error")
        return pread(self, length, position)

    monkeypatch.setattr(ForgetfulFile, "pread", unreadable)
    with pytest.raises(StorageError, match=f"at byte {header.position}"):
        read_verified(segment, header)


def test_what_was_compacted_by_who_heard_of_that_earlier_is_not_taken_for_what_was_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An attack: it is shorter, and what follows it here is sound."""
    monkeypatch.setattr(repairs_module, "PAUSE_S", 0)
    config = replace(CONFIG, segment_bytes=100_000, index_interval_bytes=4_096)
    first, *others = make_copies(replace(config, compacted=False, delete=True), 3)
    for copy in (first, *others):
        world = copy.world
        world.mark(1)
        world.append([(b"a", bytes(40)), (b"p", bytes(73))])
        for key in (b"b", b"c"):
            world.append([(key, bytes(40))])
        world.close_segment()
        world.append([(b"p", b"newer")])
        world.close_segment()
        world.append([(b"e", b"e")])
        world.flush()
    for copy in others:
        copy.world.log.config = config
        copy.replica.raft.is_compacted = True
        copy.world.compact(bytes_max=10_000)
    second = list(others[0].rows()[0].headers(0, others[0].rows()[0].size_bytes))[2]
    for copy in others:  # What follows is lost there.
        copy.world.disk.flip_bit(copy.rows()[0].path(LOG), second.position + 70)
    segment = first.rows()[0]
    whole = list(segment.headers(0, segment.size_bytes))
    first.world.disk.flip_bit(segment.path(LOG), whole[1].position + 70)
    follows = segment.file.pread(whole[2].size, whole[2].position)
    asyncio.run(first.mend(lambda: None))
    assert segment.file.pread(whole[2].size, whole[2].position) == follows
    (gap,) = first.gaps()
    assert gap.start.position == whole[1].position
