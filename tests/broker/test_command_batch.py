"""The controller carries out commands about different groups together.

Source: decision 0032."""

import asyncio
import random
from collections.abc import Sequence

import pytest

from strandline.broker.coordinators.command_batch import COUNT_MAX, OF_ONE_GROUP, CommandBatch
from strandline.controller.commands import (
    Answer,
    BeginGrant,
    Command,
    Refused,
    VotersNoted,
)
from strandline.model.ids import GroupId
from strandline.protocol.errors import Error


def command(group: int, grant: int = 0) -> BeginGrant:
    return BeginGrant(GroupId(group), grant)


class Controller:
    """Carries out what it is given, one call at a time."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self.command_batch = CommandBatch(self.turn, self.carry_out)
        self.calls: list[list[Command]] = []
        self.fails_at = -1

    async def carry_out(self, commands: Sequence[Command]) -> list[Answer]:
        self.calls.append(list(commands))
        await asyncio.sleep(0)
        if len(self.calls) - 1 == self.fails_at:
            raise OSError("out of order")
        return [VotersNoted() for _ in commands]

    async def do_something_else(self) -> None:
        """What has a turn of its own."""
        async with self.turn:
            await asyncio.sleep(0)

    async def all(self, *commands: OF_ONE_GROUP) -> list[Answer | BaseException]:
        """Asked for at once, while something else has its turn."""
        await self.turn.acquire()
        tasks = [asyncio.create_task(self.command_batch.carry_out(one)) for one in commands]
        await asyncio.sleep(0)
        self.turn.release()
        return await asyncio.gather(*tasks, return_exceptions=True)


def test_those_of_different_groups_go_together() -> None:
    async def run() -> None:
        controller = Controller()
        commands = [command(group) for group in range(1, 21)]
        assert await controller.all(*commands) == [VotersNoted()] * 20
        assert controller.calls == [commands]

    asyncio.run(run())


def test_those_of_one_group_keep_their_order() -> None:
    async def run() -> None:
        controller = Controller()
        await controller.all(command(1), command(2), command(1, 1), command(1, 2), command(3))
        assert controller.calls == [
            [command(1), command(2), command(3)],
            [command(1, 1)],
            [command(1, 2)],
        ]

    asyncio.run(run())


def test_one_that_is_alone_goes_at_once() -> None:
    async def run() -> None:
        controller = Controller()
        assert await controller.command_batch.carry_out(command(1)) == VotersNoted()
        assert controller.calls == [[command(1)]]

    asyncio.run(run())


def test_no_more_than_so_many_are_one_step() -> None:
    async def run() -> None:
        controller = Controller()
        await controller.all(*map(command, range(COUNT_MAX + 1)))
        assert [len(call) for call in controller.calls] == [COUNT_MAX, 1]

    asyncio.run(run())


def test_where_it_fails_the_others_are_told_and_may_ask_again() -> None:
    async def run() -> None:
        controller = Controller()
        controller.fails_at = 0
        first, *others = await controller.all(*map(command, range(3)))
        assert isinstance(first, OSError)
        assert others == [Refused(Error.REQUEST_TIMED_OUT, "given up")] * 2
        assert await controller.all(command(1)) == [VotersNoted()]

    asyncio.run(run())


def test_who_waits_no_more_holds_nobody_up() -> None:
    async def run() -> None:
        controller = Controller()
        await controller.turn.acquire()
        tasks = [
            asyncio.create_task(controller.command_batch.carry_out(command(one))) for one in (1, 2)
        ]
        await asyncio.sleep(0)
        tasks[0].cancel()
        await asyncio.sleep(0)
        controller.turn.release()
        assert await tasks[1] == VotersNoted()
        assert controller.calls == [[command(2)]]

    asyncio.run(run())


@pytest.mark.parametrize("group", [1, 2])
def test_who_is_given_up_just_when_the_turn_comes_takes_no_other_s_place(group: int) -> None:
    """It is still in the row when the next one finds the turn free: of the same group, or of one
    too many."""

    async def run() -> None:
        controller = Controller()
        await controller.turn.acquire()
        count = 1 if group == 1 else COUNT_MAX
        firsts = [
            asyncio.create_task(controller.command_batch.carry_out(command(2 * one + 1)))
            for one in range(count)
        ]
        await asyncio.sleep(0)
        second = asyncio.create_task(controller.command_batch.carry_out(command(group, 1)))
        for first in firsts:
            first.cancel()
        controller.turn.release()
        for _ in range(20):
            await asyncio.sleep(0)
        assert second.done() and second.result() == VotersNoted()
        assert controller.calls[-1] == [command(group, 1)]

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(60))
def test_whoever_waits_is_answered_whatever_becomes_of_the_others(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strandline.broker.coordinators.command_batch.COUNT_MAX", 3)
    rng = random.Random(seed)

    async def run() -> None:
        controller = Controller()
        controller.fails_at = rng.randrange(20)
        tasks: list[asyncio.Task[Answer]] = []
        others: list[asyncio.Task[None]] = []
        for number in range(rng.randint(5, 60)):
            match rng.randrange(7):
                case 0 if tasks:
                    rng.choice(tasks).cancel()
                case 1:
                    await asyncio.sleep(0)
                case 2:
                    others.append(asyncio.create_task(controller.do_something_else()))
                case _:
                    one = command(rng.randint(1, 6), number)
                    tasks.append(asyncio.create_task(controller.command_batch.carry_out(one)))
        for _ in range(200):
            await asyncio.sleep(0)
        assert all(one.done() for one in (*tasks, *others))
        carried = [one for call in controller.calls for one in call]
        for group in range(1, 7):
            grants = [one.grant for one in carried if one.group == group]  # type: ignore[union-attr]
            assert grants == sorted(set(grants))
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(run())
