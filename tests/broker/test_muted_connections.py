"""A muted connection is not read, loses nothing, and ends when its client goes.

Source: KIP-219."""

import asyncio
from collections.abc import Callable

import pytest
from tests.broker.connection_world import DEADLINE_S, ECHO, HELD, LOOPS, World, run

from strandline.broker.server.connection import Connection
from strandline.broker.server.limits import ServerLimits

LONG_MS = 60_000
LoopFactory = Callable[[], asyncio.AbstractEventLoop]


async def muted(world: World, duration_ms: int) -> Connection:
    """The connection of a client that has a request in work and is muted."""
    client = await world.connect()
    client.send(HELD, 1, b"held")
    await world.desk.wait_seen(1)
    (context,) = world.desk.blocked
    connection = context.sink
    assert isinstance(connection, Connection)
    connection.mute(duration_ms)
    return connection


@LOOPS
def test_it_takes_no_request_and_answers_those_in_work(loop_factory: LoopFactory) -> None:
    async def scenario(world: World) -> None:
        await muted(world, LONG_MS)
        client = world._clients[0]
        client.send(ECHO, 2, b"later")
        await world.settle()
        assert world.desk.seen[0] == b"held"
        assert b"later" not in world.desk.seen
        world.desk.blocked[0].respond((b"answer",))
        assert await client.receive() == (1, b"answer")
        await world.settle()
        assert b"later" not in world.desk.seen

    run(scenario, loop_factory=loop_factory)


@LOOPS
def test_it_takes_all_that_has_come_once_its_time_is_over(loop_factory: LoopFactory) -> None:
    async def scenario(world: World) -> None:
        await muted(world, 20)
        client = world._clients[0]
        for number in range(2, 50):
            client.send(ECHO, number, b"x" * number)
        world.desk.blocked[0].respond((b"answer",))
        assert await client.receive() == (1, b"answer")
        for number in range(2, 50):
            assert await client.receive() == (number, b"x" * number)

    run(scenario, loop_factory=loop_factory)


def test_requests_that_have_come_with_the_one_that_mutes_wait_too() -> None:
    async def scenario(world: World) -> None:
        plain = world.desk._run

        def mute_at_first(context: object) -> None:
            plain(context)  # type: ignore[arg-type]
            if world.desk.seen == [b"first"]:
                context.sink.mute(LONG_MS)  # type: ignore[attr-defined]

        world.desk._run = mute_at_first  # type: ignore[method-assign,assignment]
        client = await world.connect()
        client.send(ECHO, 1, b"first")
        client.send(ECHO, 2, b"second")
        assert await client.receive() == (1, b"first")
        await world.settle()
        assert b"second" not in world.desk.seen
        (one,) = (each for each in world.server._connections if each.is_muted)
        one.mute(1)  # A shorter time changes nothing.
        assert world.server._muted._muted[one][0] > world.server.now_ms() + LONG_MS // 2
        world.server._muted._unmute(one)
        assert await client.receive() == (2, b"second")

    run(scenario)


def test_room_does_not_make_it_read() -> None:
    async def scenario(world: World) -> None:
        connection = await muted(world, LONG_MS)
        world._clients[0].send(ECHO, 2, b"later")
        await world.settle()
        assert connection.is_paused
        # Else each answer of the broker would look at each muted connection.
        assert connection not in world.server._paused
        world.server._resume_paused()
        connection.resume()
        connection.on_unblocked()
        await world.settle()
        assert b"later" not in world.desk.seen
        assert world.server.muted_count == 1
        world.server._muted._unmute(connection)
        assert not connection.is_paused

    run(scenario)


def test_a_paused_connection_that_is_muted_waits_for_both() -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        client.send(HELD, 1, b"held")
        client.send(ECHO, 2, b"later")
        await world.desk.wait_seen(1)
        await world.settle()
        connection = world.desk.blocked[0].sink
        assert isinstance(connection, Connection)
        assert connection in world.server._paused
        connection.mute(LONG_MS)
        assert connection not in world.server._paused
        world.server._muted._unmute(connection)
        assert connection in world.server._paused
        world.desk.blocked[0].respond((b"answer",))
        assert await client.receive() == (1, b"answer")
        assert await client.receive() == (2, b"later")

    run(scenario, limits=ServerLimits(connection_requests_max=1))


def test_it_is_closed_when_its_client_goes() -> None:
    async def scenario(world: World) -> None:
        connection = await muted(world, LONG_MS)
        client = world._clients[0]
        client.send(ECHO, 2, b"later")
        await world.settle()
        await client.close()
        async with asyncio.timeout(DEADLINE_S):
            while not connection.is_closed:
                world.server._sweep()
                await asyncio.sleep(0)
        assert world.server.muted_count == 0

    run(scenario)


def test_it_is_not_idle_meanwhile() -> None:
    async def scenario(world: World) -> None:
        connection = await muted(world, LONG_MS)
        world.desk.blocked[0].respond((b"answer",))
        await world.settle()
        connection.last_active_ms = max(connection.last_active_ms, world.server.now_ms() - LONG_MS)
        world.server._sweep()
        assert not connection.is_closed
        world.server._muted._unmute(connection)

    run(scenario, limits=ServerLimits(connection_idle_ms=1))


@pytest.mark.parametrize("is_paused", [False, True])
def test_closing_it_ends_the_muting(is_paused: bool) -> None:
    async def scenario(world: World) -> None:
        connection = await muted(world, LONG_MS)
        if is_paused:
            world._clients[0].send(ECHO, 2, b"later")
            await world.settle()
        assert connection.is_paused is is_paused
        connection.close()
        assert world.server.muted_count == 0
        connection.mute(LONG_MS)
        assert world.server.muted_count == 0

    run(scenario)
