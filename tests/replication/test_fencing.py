"""Who is asked to fence a group, and cannot make that durable. Source: decision 0020."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from tests.replication.hosts import led, until

from strandline.model.ids import NO_BROKER, BrokerId, Epoch, GroupId, Index, first_epoch
from strandline.raft.group.configuration import Configuration
from strandline.raft.messages import NO_HINT, AppendResponse, Fenced
from strandline.replication.liveness import fencing
from strandline.replication.liveness.fencing import FencedGroup, Fencing, LedGroups, UnableGroups

GROUP = GroupId(7)


class Replica:
    """Its disk is full: nothing is durable before `room`."""

    def __init__(self) -> None:
        self.group, self.failed, self.room = GROUP, None, False
        self.configuration = Configuration((BrokerId(1), BrokerId(2), BrokerId(3)))
        self.is_leader, self.raft = False, SimpleNamespace(has_lost_state=False)
        self.fencing: Fencing

    def on_message(self, sender: BrokerId, message: object) -> None:
        if self.room:
            epoch = first_epoch(1)
            self.fencing.on_fenced(GROUP, Fenced(epoch, Epoch(3), Index(9), lost_state=False))


def silent_of(peers: Iterable[BrokerId]) -> tuple[BrokerId, ...]:
    """Of all others broker 3 alone is heard."""
    return tuple(one for one in peers if one != 3)


def made(replica: Replica) -> Fencing:
    made: Any = Fencing
    replica.fencing = made(
        {GROUP: replica},
        SimpleNamespace(all=[]),
        [BrokerId(2), BrokerId(3), BrokerId(4)],
        SimpleNamespace(register=lambda name, handler: None),
        SimpleNamespace(
            self_id=BrokerId(1),
            clock=SimpleNamespace(monotonic_ms=lambda: 5),
            contacts=SimpleNamespace(silent=silent_of),
            bound_votes=SimpleNamespace(promised_ms=lambda replica: 0),
        ),
    )
    return replica.fencing


def test_what_is_not_durable_in_time_is_answered_by_nobody_and_kept_by_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        monkeypatch.setattr(fencing, "DURABLE_TIMEOUT_MS", 0)
        replica = Replica()
        room = made(replica)
        for _ in range(3):
            assert await room.fence(BrokerId(1), [(GROUP, 1)]) == ()
        assert room._waiting == {}
        replica.room = True
        answer = FencedGroup(
            GROUP, first_epoch(1), Epoch(3), Index(9), False, 0, silent=(BrokerId(2),)
        )
        assert await room.fence(BrokerId(1), [(GROUP, 1)]) == (answer,)

    asyncio.run(scenario())


def test_what_a_leader_was_answered_until_the_fence_was_durable_is_promised() -> None:
    """A replica that is busy takes the fence up later, and its broker answers heartbeats."""

    async def scenario() -> None:
        room = made(Replica())
        promised = [0, 700]
        room._bound_votes.promised_ms = lambda replica: promised.pop(0)  # type: ignore[method-assign]
        fenced = asyncio.ensure_future(room.fence(BrokerId(1), [(GROUP, 1)]))
        await until(lambda: GROUP in room._waiting, "the fence is taken up")
        room.on_fenced(GROUP, Fenced(first_epoch(1), Epoch(3), Index(9), lost_state=False))
        assert [one.promised_ms for one in await fenced] == [700]

    asyncio.run(scenario())


def test_with_each_answer_goes_who_is_not_heard() -> None:
    """Of all brokers; of the group's members where it is fenced."""

    async def scenario() -> None:
        room = made(Replica())
        room._bound_votes.is_leader_alive = lambda replica: True  # type: ignore[method-assign]
        silent = BrokerId(2), BrokerId(4)
        told = await room.led(BrokerId(1), [GROUP, GroupId(8)])
        assert told == LedGroups((GROUP,), silent)
        assert await room.unable(BrokerId(1)) == UnableGroups((), silent)

    asyncio.run(scenario())


def test_releases_that_do_not_tell_whom_they_hear_are_understood_and_understand() -> None:
    before = msgspec.msgpack.encode(LedBefore((GROUP,)))
    assert msgspec.msgpack.decode(before, type=LedGroups) == LedGroups((GROUP,))
    now = msgspec.msgpack.encode(LedGroups((GROUP,), (BrokerId(2),)))
    assert msgspec.msgpack.decode(now, type=LedBefore) == LedBefore((GROUP,))
    assert msgspec.msgpack.decode(before, type=UnableGroups) == UnableGroups((GROUP,))
    stalled = UnableGroups((GROUP,), (), ((GroupId(8), (BrokerId(2),)),))
    told = msgspec.msgpack.encode(stalled)
    assert msgspec.msgpack.decode(told, type=UnableGroups) == stalled
    assert msgspec.msgpack.decode(told, type=LedBefore) == LedBefore((GROUP,))
    fenced = msgspec.msgpack.encode([[GROUP, 1, 0, 0, False, 0, 0]])
    (one,) = msgspec.msgpack.decode(fenced, type=tuple[FencedGroup, ...])
    assert one.silent == ()


class LedBefore(msgspec.Struct, frozen=True, array_like=True):
    """As releases before have it."""

    groups: tuple[GroupId, ...]


def test_a_leader_counts_on_who_has_left_its_epoch_at_the_word_of_another(tmp_path: Path) -> None:
    """Somebody who was fenced refuses, in the grant's epoch: a fence that comes then must not be
    answered as if nothing had been promised (outage seed 15403431)."""

    async def scenario() -> None:
        async with led(tmp_path) as (hosts, leader):
            follower, other = (host for host in hosts if host.broker != leader.self_id)
            bound_votes, replica = follower.replication.bound_votes, follower.replica
            timeout_ms = follower.replication.settings.election_timeout_ms
            await until(lambda: bound_votes.is_leader_alive(replica), "the leader is heard")
            await until(lambda: leader.lease.is_held, "it has a lease")
            refusal = AppendResponse(first_epoch(1), False, hint=NO_HINT)
            replica.on_message(other.broker, refusal)
            assert replica.epoch == first_epoch(1)
            assert replica.leader_id == NO_BROKER
            assert 0 < bound_votes.promised_ms(replica) <= timeout_ms
            replica.on_message(other.broker, msgspec.structs.replace(refusal, epoch=first_epoch(2)))
            assert 0 < bound_votes.promised_ms(replica) <= timeout_ms
            for host in hosts:
                host.network.stop()
            await until(lambda: bound_votes.promised_ms(replica) == 0, "the promise is over")

    asyncio.run(scenario())


def test_who_still_waits_hears_of_it_when_another_has_given_up() -> None:
    async def scenario() -> None:
        replica = Replica()
        room = made(replica)
        first = asyncio.ensure_future(room.fence(BrokerId(1), [(GROUP, 1)]))
        second = asyncio.ensure_future(room.fence(BrokerId(1), [(GROUP, 1)]))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait([first])
        room.on_fenced(GROUP, Fenced(first_epoch(1), Epoch(3), Index(9), lost_state=False))
        assert len(await second) == 1

    asyncio.run(scenario())
