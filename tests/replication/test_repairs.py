"""What is done where mending meets more damage than it came for. Source: decision 0007."""

import asyncio
import random
from collections.abc import Callable
from unittest.mock import AsyncMock, Mock

import pytest
from tests.storage.test_mending import compacted_pair, entries_of, newest, scrubbed

from strandline.base.errors import StorageError
from strandline.model.ids import BrokerId, GroupId
from strandline.replication.repairs import Repairs
from strandline.storage.layout import LOG
from strandline.storage.scrubbing import Gap


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

    def fetch(_replica: object, gap: Gap) -> tuple[bytes, BrokerId]:
        return log.mending.fitting(gap, entries_of(peer.log, gap)), BrokerId(2)

    async def mend() -> bool:
        task = asyncio.create_task(repairs._mend_segment(replica, list(order(known))))
        while not task.done():
            world.disk.run()
            await asyncio.sleep(0.001)
        return task.result()

    repairs._fetch = AsyncMock(side_effect=fetch)  # type: ignore[method-assign]
    assert asyncio.run(mend())
    assert not repairs._suspects and not scrubbed(log)
    assert newest(log) == expected
