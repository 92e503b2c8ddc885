"""Connections keep the bounds of requests, bytes and memory, whatever clients do.

Source: design section 5; reliability reference 4 (length before memory)."""

import asyncio
import struct

import pytest
from tests.broker.connection_world import (
    DEADLINE_S,
    ECHO,
    FETCH_HELD,
    FILE,
    HELD,
    PRODUCE,
    FullPartition,
    World,
    run,
)

from strandline.broker.server.limits import MIB, UNKNOWN_BYTES_MAX, ServerLimits
from strandline.broker.server.listening import ListenerTerms
from strandline.security.session import Session


def test_a_connection_with_too_many_requests_in_work_is_not_read() -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        for number in range(20):
            client.send(HELD, number)
        await world.desk.wait_seen(4)
        await world.settle()
        assert sum(body == b"" for body in world.desk.seen) - 3 == 4
        for number in range(20):
            await world.desk.wait_seen(min(20, number + 4) + 3)
            world.desk.blocked[number].respond(())
            assert (await client.receive())[0] == number

    run(scenario, limits=ServerLimits(connection_requests_max=4))


def test_a_limit_of_one_request_serves_a_long_pipeline_of_ready_answers() -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        for number in range(5_000):
            client.send(ECHO, number)
        for number in range(5_000):
            assert (await client.receive())[0] == number

    run(scenario, limits=ServerLimits(connection_requests_max=1))


def test_the_broker_bounds_the_bytes_in_work_over_all_connections() -> None:
    async def scenario(world: World) -> None:
        clients = [await world.connect() for _ in range(10)]
        for client in clients:
            client.send(HELD, 1, bytes(100_000))
            client.send(HELD, 2, bytes(100_000))
        answered = 0
        while answered < 20:
            await world.desk.wait_seen(answered + 1)
            world.desk.blocked[answered].respond(())
            answered += 1
        for client in clients:
            assert (await client.receive())[0] == 1
            assert (await client.receive())[0] == 2
        assert 400_000 <= world.server.inflight_bytes_peak <= 500_000

    run(scenario, limits=ServerLimits(inflight_bytes_max=400_000))


def test_producers_are_not_read_while_replication_has_no_memory() -> None:
    async def scenario(world: World) -> None:
        producer, reader = await world.connect(), await world.connect()
        producer.send(PRODUCE, 1)
        await world.desk.wait_seen(1)
        world.memory.take(MIB)
        producer.send(PRODUCE, 2, b"second")
        await world.settle()
        reader.send(ECHO, 5, b"others are served")
        assert await reader.receive() == (5, b"others are served")
        assert b"second" not in world.desk.seen
        world.memory.give_back(MIB)
        await world.desk.wait_seen(6)
        assert b"second" in world.desk.seen
        for context in world.desk.blocked:
            context.respond(())
        assert [(await producer.receive())[0] for _ in range(2)] == [1, 2]

    run(scenario)


@pytest.mark.parametrize("is_answered", [True, False])
def test_a_client_whose_request_could_not_be_appended_is_not_read(*, is_answered: bool) -> None:
    """Redpanda RFC 20220119: "it prevents the first stage of replicate_stages from finishing, not
    allowing more requests to be processed"; writes to other partitions are served."""

    async def scenario(world: World) -> None:
        producer, other = await world.connect(), await world.connect()
        blocker = FullPartition()
        world.desk.blocker = blocker
        producer.send(PRODUCE, 1)
        await world.desk.wait_seen(1)
        world.desk.blocker = None
        producer.send(PRODUCE, 2, b"second")
        await world.settle()
        other.send(PRODUCE, 3, b"other")
        await world.desk.wait_seen(5)
        assert b"other" in world.desk.seen
        assert b"second" not in world.desk.seen
        # It is appended, and answered; or never, and the client is told that it took too long.
        blocker.is_holding = not is_answered
        world.desk.blocked[0].respond(())
        await world.desk.wait_seen(6)
        for context in world.desk.blocked[1:]:
            context.respond(())
        assert [(await producer.receive())[0] for _ in range(2)] == [1, 2]
        assert (await other.receive())[0] == 3

    run(scenario)


def test_a_client_is_read_again_when_its_request_holds_up_nothing_more() -> None:
    """Of a large batch: once it is validated, and long before it is answered."""

    async def scenario(world: World) -> None:
        producer = await world.connect()
        blocker = world.desk.blocker = FullPartition()
        producer.send(PRODUCE, 1)
        await world.desk.wait_seen(1)
        world.desk.blocker = None
        producer.send(PRODUCE, 2, b"second")
        await world.settle()
        assert len(world.desk.blocked) == 1
        blocker.is_holding = False
        world.desk.blocked[0].sink.on_unblocked()
        await world.desk.wait_seen(len(world.desk.seen) + 1)
        for context in world.desk.blocked:
            context.respond(())
        assert [(await producer.receive())[0] for _ in range(2)] == [1, 2]

    run(scenario)


def test_memory_is_waited_for_even_when_another_bound_was_hit_first() -> None:
    async def scenario(world: World) -> None:
        producer = await world.connect()
        for number in range(3):
            producer.send(PRODUCE, number)
        await world.desk.wait_seen(1)
        await world.settle()
        world.memory.take(MIB)
        world.desk.blocked[0].respond(())
        assert (await producer.receive())[0] == 0
        await world.settle()
        assert len(world.desk.blocked) == 1
        world.memory.give_back(MIB)
        for number in (1, 2):
            await world.desk.wait_seen(6 + number + 1)
            world.desk.blocked[number].respond(())
            assert (await producer.receive())[0] == number

    run(scenario, limits=ServerLimits(connection_requests_max=1))


def test_a_client_that_takes_no_answers_is_not_read_further() -> None:
    answers_count = 200

    async def scenario(world: World) -> None:
        slow = await world.connect()
        slow.writer.transport.pause_reading()  # type: ignore[attr-defined]
        answer = bytes(MIB)
        world.desk.answers[b"x"] = [answer]
        for number in range(answers_count):
            slow.send(FILE, number, b"x")
        await world.desk.wait_seen(2)
        await world.settle()
        taken = sum(body == b"x" for body in world.desk.seen)
        # What the kernel holds for a client that does not read grows with its mood.
        assert taken < answers_count * 3 // 4
        slow.writer.transport.resume_reading()  # type: ignore[attr-defined]
        for number in range(answers_count):
            assert await slow.receive() == (number, answer)

    run(scenario, limits=ServerLimits(connection_backlog_bytes_max=2 * MIB))


def test_requests_of_a_client_that_went_away_are_abandoned() -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        client.send(HELD, 1)
        client.send(HELD, 2)
        await world.desk.wait_seen(2)
        dropped: list[int] = []
        for context in world.desk.blocked:
            context.on_abandoned = lambda number=context.correlation_id: dropped.append(number)
        await client.close()
        await world.settle()
        assert dropped == [1, 2]
        for context in world.desk.blocked:
            context.respond((b"nobody reads this",))

    run(scenario)


def test_a_client_that_left_is_noticed_even_while_its_connection_is_not_read() -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        for number in range(5):
            client.send(HELD, number)
        await world.desk.wait_seen(2)
        await client.close()
        async with asyncio.timeout(DEADLINE_S):
            while not all(context.is_abandoned for context in world.desk.blocked):
                await world.settle()
        assert len(world.desk.blocked) == 2

    run(scenario, limits=ServerLimits(connection_requests_max=2))


def test_a_parked_fetch_holds_up_nobody() -> None:
    async def scenario(world: World) -> None:
        consumers = [await world.connect() for _ in range(3)]
        for consumer in consumers:
            consumer.send(FETCH_HELD, 1, bytes(500))
        await world.desk.wait_seen(3)
        other = await world.connect()
        other.send(ECHO, 1, bytes(900))
        assert await other.receive() == (1, bytes(900))
        for context in world.desk.blocked:
            context.respond((b"at last",))
        for consumer in consumers:
            assert await consumer.receive() == (1, b"at last")

    run(scenario, limits=ServerLimits(inflight_bytes_max=1_000))


def test_fifty_clients_that_announce_much_and_send_little_cost_little() -> None:
    async def scenario(world: World) -> None:
        clients = [await world.connect() for _ in range(50)]
        for client in clients:
            client.writer.write(struct.pack(">i", 90 * MIB) + bytes(1024))
        await world.settle()
        assert world.server.partial_bytes <= 50 * MIB // 4

    run(scenario)


def test_over_the_bound_on_unfinished_requests_the_slowest_goes() -> None:
    async def scenario(world: World) -> None:
        first, second = await world.connect(), await world.connect()
        first.writer.write(struct.pack(">i", 90 * MIB) + bytes(2 * MIB))
        await world.settle()
        second.send(HELD, 1, bytes(3 * MIB))
        assert await first.is_closed()
        await world.desk.wait_seen(4)
        world.desk.blocked[0].respond(())
        assert (await second.receive())[0] == 1

    run(scenario, limits=ServerLimits(partial_bytes_max=4 * MIB))


def test_more_connections_than_the_bound_are_closed_and_others_served() -> None:
    async def scenario(world: World) -> None:
        kept = [await world.connect() for _ in range(3)]
        for number, client in enumerate(kept):
            client.send(ECHO, number)
            assert (await client.receive())[0] == number
        refused = await world.connect()
        assert await refused.is_closed()
        kept[0].send(ECHO, 7)
        assert (await kept[0].receive())[0] == 7

    run(scenario, limits=ServerLimits(connection_count_max=3))


def test_an_idle_connection_is_closed_and_one_with_work_is_not() -> None:
    async def scenario(world: World) -> None:
        idle, busy = await world.connect(), await world.connect()
        busy.send(HELD, 1)
        await world.desk.wait_seen(1)
        assert await idle.is_closed()
        world.desk.blocked[0].respond((b"still here",))
        assert await busy.receive() == (1, b"still here")

    run(scenario, limits=ServerLimits(connection_idle_ms=1_000))


LOGINS = ListenerTerms(has_logins=True)


def test_a_client_that_has_not_logged_in_has_one_request_in_work() -> None:
    """Or it would try many passwords at the cost of one failure."""

    async def scenario(world: World) -> None:
        client = await world.connect()
        for number in range(20):
            client.send(HELD, number)
        await world.desk.wait_seen(1)
        await world.settle()
        assert sum(body == b"" for body in world.desk.seen) - 3 == 1
        world.desk.blocked[0].sink.authenticate(Session())
        world.desk.blocked[0].respond(())
        await world.desk.wait_seen(20 + 3)

    run(scenario, terms=LOGINS)


def test_a_client_that_has_not_logged_in_takes_the_memory_of_one_request() -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        for number in range(2_000):
            client.send(HELD, number, bytes(500))
        await world.desk.wait_seen(1)
        await world.settle()
        assert 0 < world.server.partial_bytes <= UNKNOWN_BYTES_MAX
        world.desk.blocked[0].sink.authenticate(Session())
        for number in range(2_000):
            await world.desk.wait_seen(number + 4)
            world.desk.blocked[number].respond(())
            assert (await client.receive())[0] == number

    run(scenario, terms=LOGINS)


def test_clients_that_do_not_log_in_leave_room_for_others() -> None:
    async def scenario(world: World) -> None:
        idle = []
        for number in range(3):
            client = await world.connect()
            client.send(ECHO, number)
            await client.receive()
            idle.append(client)
        assert await idle[0].is_closed()
        client = await world.connect()
        client.send(HELD, 9)
        await world.desk.wait_seen(4)
        assert await idle[1].is_closed()
        world.desk.blocked[0].sink.authenticate(Session())
        world.desk.blocked[0].respond(())
        await client.receive()
        for number in range(2):  # The one that has logged in stays.
            last = await world.connect()
            last.send(ECHO, number)
            await last.receive()
        client.send(ECHO, 10)
        assert await client.receive() == (10, b"")

    run(scenario, limits=ServerLimits(login_count_max=2), terms=LOGINS)


def test_many_small_unfinished_requests_do_not_shield_large_ones() -> None:
    async def scenario(world: World) -> None:
        for _ in range(20):
            small = await world.connect()
            small.writer.write(struct.pack(">i", 60_000) + bytes(50_000))
        await world.settle()
        for _ in range(5):
            large = await world.connect()
            large.writer.write(struct.pack(">i", 10 * MIB) + bytes(900_000))
            await world.settle()
        async with asyncio.timeout(DEADLINE_S):
            while world.server.connection_count > 2:
                await asyncio.sleep(0)
        assert world.server.partial_bytes <= 2 * MIB

    run(scenario, limits=ServerLimits(partial_bytes_max=2 * MIB))
