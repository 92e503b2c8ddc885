"""Three replication hosts in one process, over real sockets and real files."""

import asyncio
import errno
from pathlib import Path

import pytest
from tests.replication.hosts import bring_back, contents, leader_of, led, until, write

from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error
from strandline.records.batch import iterate_headers
from strandline.records.record import Record, build_batch
from strandline.replication.leader.requests import AppendResult
from strandline.storage.disk.real_disk import RealFile


def test_the_preferred_replica_leads_and_all_replicas_hold_the_same_bytes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with led(tmp_path) as (hosts, leader):
            assert leader.self_id == 1
            for number, acks in enumerate((-1, 1, 0, -1)):
                result = await write(leader, [b"%d-%d" % (number, n) for n in range(10)], acks=acks)
                assert result.error_code == Error.NONE
                assert result.base_offset == number * 10
            await until(
                lambda: all(host.replica.high_watermark == 40 for host in hosts),
                "every replica may show all records",
            )
            first, second, third = (contents(host.replica) for host in hosts)
            assert first == second == third
            assert leader.in_sync() == [1, 2, 3]

    asyncio.run(scenario())


def test_a_stopped_leader_is_replaced_and_catches_up_on_its_return(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with led(tmp_path) as (hosts, leader):
            await write(leader, [b"before"], acks=-1)
            hosts[0].stop()
            await until(lambda: leader_of(hosts[1:]) is not None, "another leader")
            second = leader_of(hosts[1:])
            assert second is not None
            assert second.epoch > 1
            for number in range(50):
                assert (await write(second, [b"%d" % number], acks=-1)).error_code == Error.NONE
            await bring_back(hosts, 0)
            await until(
                lambda: hosts[0].replica.high_watermark == 51, "the returned replica has all"
            )
            assert contents(hosts[0].replica) == contents(second)

    asyncio.run(scenario())


def test_a_leader_cut_off_from_its_quorum_acknowledges_and_answers_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with led(tmp_path) as (hosts, leader):
            hosts.pop().stop()
            hosts.pop().stop()
            done: list[AppendResult] = []
            batch = build_batch([Record(offset_delta=0, key=None, value=b"alone")])
            leader.replicate([batch], list(iterate_headers(batch)), acks=-1, done=done.append)
            await until(lambda: not leader.can_serve_reads, "the lease has run out")
            await until(lambda: not leader.is_leader, "leadership was given up")
            assert done and done[0].error_code == Error.NOT_LEADER_OR_FOLLOWER

    asyncio.run(scenario())


def test_leadership_is_handed_over_without_an_election_timeout(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with led(tmp_path) as (hosts, leader):
            await write(leader, [b"x"], acks=-1)
            leader.transfer_leadership(BrokerId(3))
            await until(lambda: hosts[2].replica.can_serve_reads, "broker 3 leads")
            result = await write(hosts[2].replica, [b"y"], acks=-1)
            assert result.base_offset == 1

    asyncio.run(scenario())


def test_an_unknown_producer_begins_anywhere_and_goes_on_from_there(tmp_path: Path) -> None:
    """Its earlier batches may be forgotten, or in a deleted topic of the same name."""

    async def scenario() -> None:
        async with led(tmp_path) as (_, leader):
            codes = []
            for sequence in (8, 0, 9):
                batch = build_batch(
                    [Record(offset_delta=0, key=None, value=b"x")],
                    producer_id=7,
                    producer_epoch=0,
                    base_sequence=sequence,
                )
                done: asyncio.Future[AppendResult] = asyncio.get_running_loop().create_future()
                leader.replicate(
                    [batch], list(iterate_headers(batch)), acks=-1, done=done.set_result
                )
                codes.append((await done).error_code)
            assert codes == [Error.NONE, Error.OUT_OF_ORDER_SEQUENCE_NUMBER, Error.NONE]

    asyncio.run(scenario())


class FullDirectories:
    """Makes file systems full, by directory: nothing can be allocated there any more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.paths: set[Path] = set()
        allocate = RealFile.allocate

        def allocate_unless_full(file: RealFile, size: int) -> None:
            if any(Path(file.path).is_relative_to(path) for path in self.paths):
                raise OSError(errno.ENOSPC, "No space left on device", file.path)
            allocate(file, size)

        monkeypatch.setattr(RealFile, "allocate", allocate_unless_full)


def test_a_follower_with_a_full_disk_goes_on_when_there_is_room_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        full = FullDirectories(monkeypatch)
        async with led(tmp_path) as (hosts, leader):
            full.paths.add(hosts[2].directory)
            value = bytes(200_000)
            for _ in range(20):
                assert (await write(leader, [value], acks=-1)).error_code == Error.NONE
            assert hosts[2].replica.failed is None
            assert hosts[2].replica.log.end_offset < 20
            full.paths.clear()
            await until(
                lambda: hosts[2].replica.high_watermark == 20, "the third replica caught up"
            )
            assert contents(hosts[2].replica) == contents(leader)

    asyncio.run(scenario())


def test_a_leader_with_a_full_disk_refuses_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        full = FullDirectories(monkeypatch)
        async with led(tmp_path) as (hosts, leader):
            await write(leader, [b"kept"], acks=-1)
            full.paths.add(hosts[0].directory)
            value = bytes(500_000)
            results = [await write(leader, [value], acks=-1) for _ in range(8)]
            assert results[-1].error_code == Error.KAFKA_STORAGE_ERROR
            stored = sum(result.error_code == Error.NONE for result in results)
            full.paths.clear()
            result = await write(leader, [value], acks=-1)
            assert (result.error_code, result.base_offset) == (Error.NONE, 1 + stored)

    asyncio.run(scenario())
