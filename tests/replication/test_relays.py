"""What is new goes through one replica of a region to the others, over real sockets and files.
Source: decision 0034."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from unittest.mock import Mock

import pytest
from tests.replication.hosts import BROKERS, DEADLINE_S, GROUP, Host, contents, led, until, write

from strandline.base.errors import ProtocolError
from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId, Epoch, Index
from strandline.raft.messages import AppendRequest, Run
from strandline.replication.leader.follower_stream import FollowerStream
from strandline.replication.relay import forwarding, relays
from strandline.replication.replica.replica import Replica
from strandline.replication.settings import ReplicationSettings
from strandline.replication.wire import (
    AppendHead,
    Kind,
    NotRelayed,
    decode_append,
    decode_not_relayed,
    encode_append_head,
    encode_control,
)

MB = 1_000_000


def test_what_is_said_of_relays_as_bytes() -> None:
    request = AppendRequest(
        Epoch(3), Index(4), Epoch(2), Index(9), Index(9), (Run(Epoch(3), Index(8)),)
    )
    head = AppendHead(GROUP, request, may_wait=True, outlived=Index(2), to=BROKERS)
    for kind in (Kind.APPEND, Kind.RELAYED):
        message = encode_append_head(head, kind) + b"batches"
        assert decode_append(memoryview(message)) == (head, memoryview(b"batches"))
    missed = NotRelayed(GROUP, Epoch(3), [BrokerId(2)])
    assert decode_not_relayed(memoryview(encode_control(Kind.NOT_RELAYED, missed))[1:]) == missed
    with pytest.raises(ProtocolError, match="refusal of a relay"):
        decode_not_relayed(memoryview(b"?"))


@asynccontextmanager
async def stretched(directory: Path) -> AsyncIterator[tuple[Replica, Host, Host]]:
    """A leader in the east, its relay in the west, and another one there; all in step."""
    async with led(directory) as (hosts, leader):
        labels = {
            broker: Labels("east" if broker == leader.self_id else "west") for broker in BROKERS
        }
        for host in hosts:
            host.replication.nearness.place(labels)
        assert leader.leadership is not None
        ways = leader.leadership.sender.relays

        def relay() -> BrokerId:
            return max(ways.relay_of(one) for one in BROKERS if one != leader.self_id)

        async with asyncio.timeout(30):
            while relay() < 0:
                await write(leader, [b"before"], acks=-1)
                await asyncio.sleep(0.01)
        chosen = relay()
        (near,) = (host for host in hosts if host.broker == chosen)
        (behind,) = (host for host in hosts if host.broker not in (chosen, leader.self_id))
        yield leader, near, behind


async def all_have(leader: Replica, *hosts: Host) -> None:
    for host in hosts:
        await until(
            lambda host=host: host.replica.high_watermark == leader.log_end_offset,  # type: ignore[misc]
            f"broker {host.broker} has all",
        )
        assert contents(host.replica) == contents(leader)


def test_a_relay_hands_on_what_it_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Byte for byte, and for each follower that was named."""
    monkeypatch.setattr(relays, "SLACK_MS", 20_000)

    async def scenario() -> None:
        async with stretched(tmp_path) as (leader, near, behind):
            before = near.replication.relaying.relayed_bytes
            for number in range(50):
                await write(leader, [bytes([number]) * 10_000] * 10, acks=-1)
            assert near.replication.relaying.relayed_bytes - before > 5_000_000
            assert behind.replication.relaying.relayed_bytes == 0
            await all_have(leader, near, behind)

    asyncio.run(scenario())


def test_what_leaves_first_on_a_new_connection_is_not_judged_by_the_rate_of_before() -> None:
    """It begins slowly, and who has just come back was gone round, and got all of it twice."""
    now_ms = 20
    stream = FollowerStream(ReplicationSettings())
    shared = Mock()
    shared.clock.monotonic_ms = lambda: now_ms
    shared.contacts.rtt_ms = lambda _: 10
    relay = BROKERS[1]
    ways = relays.Relays(Mock(), shared, {relay: stream}, lambda _: None, lambda _: None)

    def is_stuck_after(wait_ms: int) -> bool:
        nonlocal now_ms
        stream.on_sent(Index(now_ms), MB, now_ms)
        now_ms += wait_ms
        is_stuck = ways.is_stuck(relay)
        stream.on_acknowledged(Index(now_ms), now_ms)
        return is_stuck

    assert not is_stuck_after(20)
    assert is_stuck_after(500)
    stream.reset()
    assert not is_stuck_after(500)
    assert is_stuck_after(1_500)


def test_what_a_relay_cannot_hand_on_is_sent_directly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so, and its leader does not use it for some time."""
    monkeypatch.setattr(relays, "SLACK_MS", 20_000)

    async def scenario() -> None:
        async with stretched(tmp_path) as (leader, near, behind):
            monkeypatch.setattr(relays, "DETOUR_FIRST_MS", 60_000)
            near.network.remove_peer(behind.broker)
            before = near.replication.relaying.relayed_bytes
            for number in range(10):
                await write(leader, [bytes([number]) * 10_000] * 10, acks=-1)
            await all_have(leader, near, behind)
            assert near.replication.relaying.relayed_bytes == before
            assert leader.leadership is not None
            assert leader.leadership.sender.relays.relay_of(behind.broker) < 0

    asyncio.run(scenario())


def test_who_was_served_from_the_log_is_in_step_once_a_relay_serves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a voter that was away does not vote again while there is always something under way."""
    monkeypatch.setattr(relays, "SLACK_MS", 20_000)

    async def scenario() -> None:
        async with stretched(tmp_path) as (leader, near, behind):
            leadership = leader.leadership
            assert leadership is not None
            for one in (leader.host, near.replication):
                one.network.remove_peer(behind.broker)
            for number in range(10):
                await write(leader, [bytes([number]) * 10_000] * 10, acks=-1)
            for one in (leader.host, near.replication):
                one.set_peer(behind.broker, "127.0.0.1", behind.network.port)
            await all_have(leader, near, behind)
            before = near.replication.relaying.relayed_bytes
            async with asyncio.timeout(DEADLINE_S):
                while near.replication.relaying.relayed_bytes == before:
                    await write(leader, [b"after"], acks=-1)
            await all_have(leader, near, behind)
            monkeypatch.setattr(behind.replication.relaying, "on_relayed", lambda *_: None)
            await write(leader, [b"under way"], acks=-1)
            assert leader.raft.progress[behind.broker].match_flushed < leader.raft.commit
            assert leadership.followers.is_in_step(behind.broker)

    asyncio.run(scenario())


def test_what_comes_too_early_waits_for_what_comes_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once; for ever it does not wait: its leader has to hear what is lacking."""
    monkeypatch.setattr(forwarding, "HOLD_MS", 10_000)
    monkeypatch.setattr(relays, "SLACK_MS", 20_000)

    async def scenario() -> None:
        async with stretched(tmp_path) as (leader, near, behind):
            taken: list[tuple[AppendHead, bytes]] = []
            target = behind.replication.relaying
            take = target.on_relayed

            def keep(relay: BrokerId, head: AppendHead, payload: memoryview) -> None:
                taken.append((head, bytes(payload)))

            monkeypatch.setattr(target, "on_relayed", keep)
            for value in (b"first", b"second"):
                await write(leader, [value], acks=-1)
            await until(lambda: len(taken) >= 2, "both were handed on")
            monkeypatch.setattr(target, "on_relayed", take)
            end = behind.replica.log.last_index
            (first, second), relay = taken[:2], near.broker
            assert second[0].request.prev_index > end
            target.on_relayed(relay, second[0], memoryview(second[1]))
            assert behind.replica.log.last_index == end
            target.on_relayed(relay, first[0], memoryview(first[1]))
            assert behind.replica.log.last_index >= second[0].request.runs[-1].last_index
            await all_have(leader, near, behind)

    asyncio.run(scenario())
