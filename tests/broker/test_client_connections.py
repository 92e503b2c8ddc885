"""Connections keep order, bounds and memory, whatever clients do.

Source: design section 5 (a connection is never a queue of one); reliability reference 4."""

import asyncio
import logging
import os
import struct
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvloop

from strandline.base.errors import OperatorError, ProtocolError
from strandline.broker.context import AnswerSink, RequestContext
from strandline.broker.server.limits import MIB, SENDFILE_BYTES_MIN, ServerLimits
from strandline.broker.server.response_chunks import FilePart
from strandline.broker.server.server import Server
from strandline.network.loop_clock import LoopClock
from strandline.protocol.apis import APIS
from strandline.replication.memory_budget import MemoryBudget

DEADLINE_S = 20
FETCH_HELD, HELD, FILE, ECHO, SILENT, BROKEN, BUG = 1, 2, 3, 8, 18, 99, 98
PRODUCE = 0


class DiskFile:
    """A real file, with or without a descriptor to send from."""

    def __init__(self, path: Path, *, has_descriptor: bool) -> None:
        self.path = str(path)
        self._fd = os.open(path, os.O_RDONLY)
        self._has_descriptor = has_descriptor

    def pread(self, length: int, position: int) -> bytes:
        return os.pread(self._fd, length, position)

    def fileno(self) -> int:
        return self._fd if self._has_descriptor else -1

    def close(self) -> None:
        os.close(self._fd)


class Desk:
    """A router whose answers the test controls. The API key says what becomes of a request."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.held: list[RequestContext] = []
        # Who holds the requests that come now.
        self.holder: Held | None = None
        self.answers: dict[bytes, list[object]] = {}
        self.arrived = asyncio.Event()

    def open(self, frame: memoryview, sink: AnswerSink) -> RequestContext:
        key, version, correlation = struct.unpack_from(">hhi", frame)
        if key == BROKEN:
            raise ProtocolError("no such API")
        if key == BUG:
            raise RuntimeError("nobody thought of this")
        return RequestContext(
            api=APIS[key],
            api_version=version,
            correlation_id=correlation,
            client_id=None,
            services=None,  # type: ignore[arg-type]
            sink=sink,
            frame=frame,
            position=8,
            size_bytes=len(frame),
        )

    def run(self, context: RequestContext) -> None:
        assert context.frame is not None
        body = bytes(context.frame[8:])
        self.seen.append(body)
        self.arrived.set()
        if context.api.key in (HELD, FETCH_HELD, PRODUCE):
            self.held.append(context)
            context.held_by = self.holder
        elif context.api.key == FILE:
            context.respond(self.answers[body])  # type: ignore[arg-type]
        elif context.api.key == SILENT:
            context.respond_nothing()
        else:
            context.respond((body,))

    async def wait_seen(self, count: int) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while len(self.seen) < count:
                self.arrived.clear()
                await self.arrived.wait()


class Client:
    """A raw Kafka connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, key: int, correlation: int, body: bytes = b"") -> None:
        frame = struct.pack(">hhi", key, 0, correlation) + body
        self.writer.write(struct.pack(">i", len(frame)) + frame)

    async def receive(self) -> tuple[int, bytes]:
        async with asyncio.timeout(DEADLINE_S):
            (size,) = struct.unpack(">i", await self.reader.readexactly(4))
            frame = await self.reader.readexactly(size)
        return struct.unpack_from(">i", frame)[0], frame[4:]

    async def is_closed(self) -> bool:
        async with asyncio.timeout(DEADLINE_S):
            try:
                return await self.reader.read(1) == b""
            except ConnectionResetError:
                return True

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except ConnectionError:
            pass


class WatchedServer(Server):
    """A server that remembers how many bytes were in work at the most."""

    inflight_bytes_peak = 0

    def count_inflight(self, change_bytes: int) -> None:
        super().count_inflight(change_bytes)
        self.inflight_bytes_peak = max(self.inflight_bytes_peak, self.inflight_bytes)


class World:
    """A server with its desk, and clients."""

    def __init__(self, limits: ServerLimits, memory_bytes: int) -> None:
        self.desk = Desk()
        self.memory = MemoryBudget(memory_bytes)
        self.server = WatchedServer(
            router=self.desk,
            clock=LoopClock(asyncio.get_running_loop()),
            limits=limits,
            memory=self.memory,
        )
        self._clients: list[Client] = []

    async def connect(self) -> Client:
        client = Client(*await asyncio.open_connection("127.0.0.1", self.server.port))
        self._clients.append(client)
        return client

    async def settle(self) -> None:
        """Let everything that is on its way arrive: an echo on a connection of its own."""
        for _ in range(3):
            probe = await self.connect()
            probe.send(ECHO, 0)
            await probe.receive()
            await probe.close()

    async def stop(self) -> None:
        for client in self._clients:
            await client.close()
        self.server.stop()


Scenario = Callable[[World], Awaitable[None]]


def run(
    scenario: Scenario,
    *,
    limits: ServerLimits | None = None,
    memory_bytes: int = MIB,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
) -> None:
    async def main() -> None:
        world = World(limits or ServerLimits(), memory_bytes)
        await world.server.start("127.0.0.1", 0)
        try:
            await scenario(world)
        finally:
            await world.stop()
        assert world.server.inflight_bytes == 0
        assert world.server.partial_bytes == 0
        assert world.server.connection_count == 0

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())


LOOPS = pytest.mark.parametrize(
    "loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)


@LOOPS
def test_answers_leave_in_the_order_of_the_requests_whenever_they_become_ready(
    loop_factory: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        for number in range(6):
            client.send(HELD if number % 2 == 0 else ECHO, number, b"%d" % number)
        await world.desk.wait_seen(6)
        for context in reversed(world.desk.held):
            context.respond((b"late",))
        got = [await client.receive() for _ in range(6)]
        assert [number for number, _ in got] == list(range(6))
        assert [body for _, body in got] == [b"late", b"1", b"late", b"3", b"late", b"5"]

    run(scenario, loop_factory=loop_factory)


def test_later_requests_are_taken_in_while_the_first_waits() -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        for number in range(100):
            client.send(HELD, number)
        await world.desk.wait_seen(100)
        for context in world.desk.held:
            context.respond(())
        assert [(await client.receive())[0] for _ in range(100)] == list(range(100))

    run(scenario)


def test_a_request_without_an_answer_leaves_no_gap() -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        for number, key in enumerate([ECHO, SILENT, SILENT, ECHO]):
            client.send(key, number)
        assert [(await client.receive())[0] for _ in range(2)] == [0, 3]

    run(scenario)


@LOOPS
@pytest.mark.parametrize("has_descriptor", [True, False], ids=["sendfile", "pread"])
def test_file_ranges_and_bytes_arrive_in_order(
    has_descriptor: bool, loop_factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def scenario(world: World) -> None:
        content = os.urandom(6 * MIB)
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "segment"
            path.write_bytes(content)
            file = DiskFile(path, has_descriptor=has_descriptor)
            sizes = [10, SENDFILE_BYTES_MIN, 5 * MIB, 0, 300]
            parts: list[object] = [b"head"]
            expected = b"head"
            for position, size in enumerate(sizes):
                parts += [FilePart(file, position, size), b"<%d>" % position]  # type: ignore[arg-type]
                expected += content[position : position + size] + b"<%d>" % position
            world.desk.answers[b"x"] = parts
            client = await world.connect()
            for number in range(3):
                client.send(FILE, number, b"x")
                client.send(ECHO, number + 10, b"after")
            for number in range(3):
                assert await client.receive() == (number, expected)
                assert await client.receive() == (number + 10, b"after")
            file.close()

    run(scenario, loop_factory=loop_factory)


def test_a_range_that_was_cut_closes_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "segment"
            path.write_bytes(bytes(100))
            file = DiskFile(path, has_descriptor=True)
            world.desk.answers[b"x"] = [FilePart(file, 0, MIB)]  # type: ignore[arg-type]
            client = await world.connect()
            client.send(FILE, 1, b"x")
            (size,) = struct.unpack(">i", await client.reader.readexactly(4))
            assert size == MIB + 4
            assert len(await client.reader.read()) == 104
            file.close()

    with caplog.at_level(logging.INFO):
        run(scenario)
    assert "the file was cut" in caplog.text


def test_large_requests_arrive_whole_and_are_the_requests_own_memory() -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        bodies = [os.urandom(size) for size in (MIB, 10, 3 * MIB, 70_000, MIB)]
        for number, body in enumerate(bodies):
            client.send(HELD, number, body)
        await world.desk.wait_seen(len(bodies))
        for context, body in zip(world.desk.held, bodies, strict=True):
            assert context.frame is not None and not context.frame.readonly
            assert bytes(context.frame[8:]) == body
            context.respond(())
        for number in range(len(bodies)):
            assert (await client.receive())[0] == number

    run(scenario)


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
            world.desk.held[number].respond(())
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
            world.desk.held[answered].respond(())
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
        for context in world.desk.held:
            context.respond(())
        assert [(await producer.receive())[0] for _ in range(2)] == [1, 2]

    run(scenario)


class Held:
    """A partition whose followers take nothing."""

    is_holding = True


@pytest.mark.parametrize("is_answered", [True, False])
def test_a_client_whose_request_could_not_be_appended_is_not_read(*, is_answered: bool) -> None:
    """Redpanda RFC 20220119: "it prevents the first stage of replicate_stages from finishing, not
    allowing more requests to be processed"; who writes elsewhere is served."""

    async def scenario(world: World) -> None:
        producer, other = await world.connect(), await world.connect()
        holder = Held()
        world.desk.holder = holder
        producer.send(PRODUCE, 1)
        await world.desk.wait_seen(1)
        world.desk.holder = None
        producer.send(PRODUCE, 2, b"second")
        await world.settle()
        other.send(PRODUCE, 3, b"other")
        await world.desk.wait_seen(5)
        assert b"other" in world.desk.seen
        assert b"second" not in world.desk.seen
        # It is appended, and answered; or never, and the client is told that it took too long.
        holder.is_holding = not is_answered
        world.desk.held[0].respond(())
        await world.desk.wait_seen(6)
        for context in world.desk.held[1:]:
            context.respond(())
        assert [(await producer.receive())[0] for _ in range(2)] == [1, 2]
        assert (await other.receive())[0] == 3

    run(scenario)


def test_memory_is_waited_for_even_when_another_bound_was_hit_first() -> None:
    async def scenario(world: World) -> None:
        producer = await world.connect()
        for number in range(3):
            producer.send(PRODUCE, number)
        await world.desk.wait_seen(1)
        await world.settle()
        world.memory.take(MIB)
        world.desk.held[0].respond(())
        assert (await producer.receive())[0] == 0
        await world.settle()
        assert len(world.desk.held) == 1
        world.memory.give_back(MIB)
        for number in (1, 2):
            await world.desk.wait_seen(6 + number + 1)
            world.desk.held[number].respond(())
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
        for context in world.desk.held:
            context.on_abandoned = lambda number=context.correlation_id: dropped.append(number)
        await client.close()
        await world.settle()
        assert dropped == [1, 2]
        for context in world.desk.held:
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
            while not all(context.is_abandoned for context in world.desk.held):
                await world.settle()
        assert len(world.desk.held) == 2

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
        for context in world.desk.held:
            context.respond((b"at last",))
        for consumer in consumers:
            assert await consumer.receive() == (1, b"at last")

    run(scenario, limits=ServerLimits(inflight_bytes_max=1_000))


def test_an_unknown_api_closes_after_what_was_answered() -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        client.send(ECHO, 1, b"served")
        client.send(BROKEN, 2)
        client.send(ECHO, 3)
        assert await client.receive() == (1, b"served")
        assert await client.is_closed()

    run(scenario)


def test_a_mistake_in_the_broker_ends_one_connection_and_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(world: World) -> None:
        client, other = await world.connect(), await world.connect()
        client.send(BUG, 1)
        assert await client.is_closed()
        other.send(ECHO, 2, b"served")
        assert await other.receive() == (2, b"served")

    run(scenario)
    assert "nobody thought of this" in caplog.text


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("oversized", struct.pack(">i", 100 * MIB + 1) + bytes(100)),
        ("negative", struct.pack(">i", -5)),
        ("too short to be a request", struct.pack(">i", 4) + bytes(4)),
        ("http", b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n"),
        ("tls", bytes.fromhex("16030100c8010000c40303")),
    ],
)
def test_what_is_no_frame_closes_at_once_and_the_broker_lives_on(
    name: str, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        client.writer.write(data)
        assert await client.is_closed()
        await world.settle()

    with caplog.at_level(logging.INFO):
        run(scenario)
    assert len([one for one in caplog.records if "closed the connection" in one.message]) == 1


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
        world.desk.held[0].respond(())
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
        world.desk.held[0].respond((b"still here",))
        assert await busy.receive() == (1, b"still here")

    run(scenario, limits=ServerLimits(connection_idle_ms=100))


def test_a_port_in_use_is_one_line_to_act_on() -> None:
    async def scenario(world: World) -> None:
        second = World(ServerLimits(), MIB)
        with pytest.raises(OperatorError, match=r"\[listener\] kafka_port: cannot listen on 127"):
            await second.server.start("127.0.0.1", world.server.port)

    run(scenario)
