"""Who is asked to fence a group, and cannot make that durable. Source: decision 0020."""

import asyncio
from types import SimpleNamespace

import pytest

from strandline.model.ids import BrokerId, Epoch, GroupId, Index, first_epoch
from strandline.raft.messages import Fenced
from strandline.replication import fencing
from strandline.replication.fencing import FencedGroup, Fencing

GROUP = GroupId(7)


class Replica:
    """Its disk is full: nothing is durable before `room`."""

    def __init__(self) -> None:
        self.group, self.failed, self.room = GROUP, None, False
        self.fencing: Fencing

    def on_message(self, sender: BrokerId, message: object) -> None:
        if self.room:
            epoch = first_epoch(1)
            self.fencing.on_fenced(GROUP, Fenced(epoch, Epoch(3), Index(9), amnesiac=False))


def made(replica: Replica) -> Fencing:
    host = SimpleNamespace(
        self_id=BrokerId(1),
        replicas={GROUP: replica},
        calls=SimpleNamespace(register=lambda name, handler: None),
        clock=SimpleNamespace(monotonic_ms=lambda: 5),
        liveness=SimpleNamespace(promised_ms=lambda replica: 0),
    )
    replica.fencing = Fencing(host)  # type: ignore[arg-type]
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
        answer = FencedGroup(GROUP, first_epoch(1), Epoch(3), Index(9), False, 0)
        assert await room.fence(BrokerId(1), [(GROUP, 1)]) == (answer,)

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
        room.on_fenced(GROUP, Fenced(first_epoch(1), Epoch(3), Index(9), amnesiac=False))
        assert len(await second) == 1

    asyncio.run(scenario())
