"""What is done where mending meets more damage than it came for. Source: decision 0007."""

import asyncio
import random
from collections.abc import Callable
from errno import EIO
from unittest.mock import AsyncMock, Mock

import pytest
from tests.storage.storage_world import ForgetfulFile
from tests.storage.test_mending import compacted_pair, entries_of, newest, scrubbed

from strandline.base.errors import StorageError
from strandline.model.ids import BrokerId, GroupId
from strandline.replication.helping import Patch, Try
from strandline.replication.repairs import Repairs
from strandline.storage.layout import LOG
from strandline.storage.scrubbing import Gap
from strandline.storage.segment_work import read_proved


def test_what_is_found_damaged_while_a_segment_is_written_anew_is_looked_for() -> None:
    """It is in none of the known gaps: the same would be refused again and again."""
    repairs = Repairs(Mock())
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
    headers = list(segment.headers(0, segment.size))
    known: list[Gap] = []
    for number in (1, 2, len(headers) - 1):
        world.disk.flip_bit(segment.path(LOG), headers[number].position + 40)
        known += [gap for gap in scrubbed(log) if gap not in known]
    assert len(known) == 3 and log.mending.find_again(known[0]) == log.mending.find_again(known[1])
    host = Mock()
    host.clock.monotonic_ms.return_value = 0
    repairs = Repairs(host)
    replica = Mock(log=log, failed=None, is_busy=False)

    def fetch(_replica: object, gap: Gap, _lost_at: object) -> list[Patch]:
        return [Patch(gap, log.mending.fitting(gap, entries_of(peer.log, gap)), BrokerId(2))]

    async def mend() -> list[Gap]:
        task = asyncio.create_task(repairs._mend_segment(replica, list(order(known)), Try()))
        while not task.done():
            world.disk.run()
            await asyncio.wait({task}, timeout=0.001)
        return task.result()

    repairs.helping.fetch = AsyncMock(side_effect=fetch)  # type: ignore[method-assign]
    assert not asyncio.run(mend())
    assert not repairs._suspects and not scrubbed(log)
    assert newest(log) == expected


def test_a_sector_that_cannot_be_read_beside_the_known_gaps_is_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A segment that is written anew keeps what is beside them."""
    world, _ = compacted_pair(random.Random(1))
    segment = world.log._row.segments[0]
    header = list(segment.headers(0, segment.size))[-1]
    pread = ForgetfulFile.pread

    def unreadable(self: ForgetfulFile, length: int, position: int) -> bytes:
        if self.path == segment.path(LOG) and position <= header.position + 70 < position + length:
            raise OSError(EIO, "Input/output error")
        return pread(self, length, position)

    monkeypatch.setattr(ForgetfulFile, "pread", unreadable)
    with pytest.raises(StorageError, match=f"at byte {header.position}"):
        read_proved(segment, header)
