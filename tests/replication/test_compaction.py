"""A compacted log on real disks: small, complete, the same for whoever reads it.

Source: design section 4; `replication/replica/compactor.py`."""

import asyncio
import dataclasses
from pathlib import Path

from tests.replication.hosts import Host, bring_back, led, until, write_records

from strandline.coordinator.log_records import CommittedOffset, encode_offset
from strandline.coordinator.replay import LoadedGroup, OffsetsState
from strandline.model.ids import BrokerId, Epoch, Index, Offset
from strandline.raft.group.configuration import Configuration
from strandline.raft.messages import AppendRequest, Run
from strandline.records.batch import iterate_headers
from strandline.records.cleaning import filler
from strandline.records.record import Record, build_batch, decode_records
from strandline.replication.catchup.peer_sender import split_after
from strandline.replication.replica.entries import Entries, cut_before
from strandline.replication.replica.replica import Replica
from strandline.storage.config import LogConfig
from strandline.storage.log import reads

LOG = LogConfig(segment_bytes=16 * 1024, delete=False, compacted=True, preallocate=False)
GROUP_COUNT = 4
COMMIT_COUNT = 1_500
COMMITS_AT_ONCE = 50


def commits(start: int, count: int) -> list[Record]:
    """As a coordinator writes them: each group says again and again how far it has come."""
    records = []
    for number in range(start, start + count):
        value = CommittedOffset(number, 1, f"commit {number}", 1_000 + number)
        key, encoded = encode_offset(f"group-{number % GROUP_COUNT}", "t", 0, value=value)
        records.append(Record(0, 1_000 + number, key, encoded))
    return records


async def commit_all(replica: Replica, records: list[Record]) -> None:
    """Some at a time: heartbeats must get their turn on a machine that has more to do."""
    for start in range(0, len(records), COMMITS_AT_ONCE):
        results = await asyncio.gather(
            *(
                write_records(replica, [record], acks=-1)
                for record in records[start : start + COMMITS_AT_ONCE]
            )
        )
        assert {result.error_code for result in results} == {0}


def load(replica: Replica) -> dict[str, LoadedGroup]:
    """What a coordinator makes of the log."""
    state = OffsetsState()
    position = replica.log_start_offset
    while position < replica.high_watermark:
        data = replica.read_verified(position, 4_000)
        for header in iterate_headers(data):
            for record in decode_records(data, header.position):
                state.replay(record.key, record.value)
            position = header.next_offset
    assert state.unreadable_count == 0
    return state.groups


async def clean(host: Host) -> None:
    """Roll, and compact to the end."""
    host.replica.log.config = dataclasses.replace(LOG, segment_ms=0)
    host.replica.clean()
    host.replica.flush()
    # A pass that began before does not go to the end.
    await until(lambda: not _dirty(host) and not _cleans(host), "everything is flushed")
    host.replica.clean()
    await until(lambda: not _cleans(host), "compaction is over")


def _dirty(host: Host) -> bool:
    return host.replica.log.flushed_index < host.replica.log.last_index


def _cleans(host: Host) -> bool:
    return host.replication.compactor.is_busy


def test_offsets_are_loaded_from_a_small_log_and_whoever_was_away_catches_up(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with led(tmp_path, log=LOG) as (hosts, leader):
            await commit_all(leader, commits(0, 150))
            await until(lambda: hosts[2].replica.high_watermark == 150, "the third has a part")
            hosts[2].stop()
            await commit_all(leader, commits(150, COMMIT_COUNT - 150))
            await until(
                lambda: hosts[1].replica.high_watermark == COMMIT_COUNT, "the second has all"
            )
            expected = load(leader)
            assert next(iter(expected["group-3"].offsets.values())).offset == COMMIT_COUNT - 1
            before = leader.log.size_bytes()

            for host in hosts[:2]:
                await clean(host)
                assert host.replica.log.size_bytes() < before / 20
                assert load(host.replica) == expected
                assert host.replica.log_end_offset == COMMIT_COUNT

            await bring_back(hosts, 2)
            await until(
                lambda: hosts[2].replica.high_watermark == COMMIT_COUNT, "the third has all"
            )
            assert load(hosts[2].replica) == expected
            await clean(hosts[2])
            assert hosts[2].replica.log.size_bytes() < before / 20
            assert load(hosts[2].replica) == expected

            hosts[0].stop()
            await bring_back(hosts, 0)
            await until(
                lambda: hosts[0].replica.high_watermark == COMMIT_COUNT, "the first is back"
            )
            assert load(hosts[0].replica) == expected

    asyncio.run(scenario())


def test_an_empty_batch_is_cut_where_what_is_asked_for_ends() -> None:
    """A batch with records is not."""
    records = [Record(delta, 5, b"k", b"v") for delta in range(2)]
    data = bytes(build_batch(records, base_offset=Offset(8), epoch=2))
    data += bytes(filler(Offset(10), Offset(20), Epoch(2)))
    read = reads.Entries(data, Index(10), Index(21), [(Epoch(2), Index(21))], [])
    cut = cut_before(read, Index(15))
    headers = list(iterate_headers(memoryview(cut.data)))
    assert [(one.base_offset, one.next_offset) for one in headers] == [(8, 10), (10, 13)]
    assert (cut.last_index, cut.runs) == (14, [(2, 14)])
    assert cut_before(read, Index(12)).last_index == 11
    assert cut_before(read, Index(11)) == read


def test_what_is_lent_in_parts_is_what_was_asked_for() -> None:
    members = Configuration((BrokerId(1),), (), (), 1)
    runs = (Run(Epoch(1), Index(5)), Run(Epoch(2), Index(9)))
    asked = AppendRequest(
        Epoch(3), Index(1), Epoch(1), Index(9), Index(9), runs, ((Index(6), members),)
    )
    assert split_after(asked, Index(9)) == (asked, None)
    for index, counts, epoch in ((4, (1, 2), 1), (5, (1, 1), 1), (6, (2, 1), 2), (8, (2, 1), 2)):
        head, rest = split_after(asked, Index(index))
        assert rest is not None
        assert (head.prev_index, head.runs[-1].last_index) == (1, index)
        assert (rest.prev_index, rest.prev_epoch, rest.runs[-1].last_index) == (index, epoch, 9)
        assert (len(head.runs), len(rest.runs)) == counts
        assert (*head.configurations, *rest.configurations) == asked.configurations
        assert bool(head.configurations) == (index >= 6)


def test_an_empty_batch_is_cut_where_the_followers_log_ends() -> None:
    """The leader compacted several batches to one after this follower had taken the first."""
    data = bytes(filler(Offset(10), Offset(20), Epoch(2)))
    data += bytes(build_batch([Record(0, 5, b"k", b"v")], base_offset=Offset(20), epoch=2))
    request = AppendRequest(
        Epoch(3), Index(11), Epoch(2), Index(22), Index(22), (Run(Epoch(2), Index(22)),)
    )
    entries = Entries.checked(memoryview(data), request)
    for index, offset in ((12, 10), (15, 13), (21, 19), (22, 20)):
        buffers, headers = entries.from_index(Index(index))
        whole = b"".join(buffers)
        assert [h.base_offset for h in headers] == [h.base_offset for h in iterate_headers(whole)]
        assert sum(header.size for header in headers) == len(whole)
        assert headers[0].base_offset == offset
        assert sum(header.index_count for header in headers) == 23 - index
