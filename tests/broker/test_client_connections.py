"""Answers leave whole and in the order of the requests; bytes that are no request close the
connection.

Source: design section 5 (a connection is never a queue of one); reliability reference 4."""

import asyncio
import logging
import os
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.broker.connection_world import (
    BROKEN,
    BUG,
    ECHO,
    FILE,
    HELD,
    LOOPS,
    SILENT,
    DiskFile,
    World,
    run,
)

from strandline.base.errors import OperatorError
from strandline.broker.operations.log_budget import BURST_COUNT
from strandline.broker.server.limits import MIB, SENDFILE_BYTES_MIN, ServerLimits
from strandline.broker.server.outbox import FilePart


@LOOPS
def test_answers_leave_in_the_order_of_the_requests_whenever_they_become_ready(
    loop_factory: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        for number in range(6):
            client.send(HELD if number % 2 == 0 else ECHO, number, b"%d" % number)
        await world.desk.wait_seen(6)
        for context in reversed(world.desk.blocked):
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
        for context in world.desk.blocked:
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
        for context, body in zip(world.desk.blocked, bodies, strict=True):
            assert context.frame is not None and not context.frame.readonly
            assert bytes(context.frame[8:]) == body
            context.respond(())
        for number in range(len(bodies)):
            assert (await client.receive())[0] == number

    run(scenario)


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


def test_a_port_in_use_is_one_line_to_act_on() -> None:
    async def scenario(world: World) -> None:
        second = World(ServerLimits(), MIB)
        with pytest.raises(OperatorError, match=r"\[listener\] kafka_port: cannot listen on 127"):
            await second.server.start("127.0.0.1", world.server.port)

    run(scenario)


def test_clients_that_are_closed_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="strandline.broker")

    async def scenario(world: World) -> None:
        for number in range(BURST_COUNT + 100):
            client = await world.connect()
            client.send(BROKEN, number)
            assert await client.is_closed()

    run(scenario)
    told = [one for one in caplog.messages if one.startswith("closed the connection")]
    assert BURST_COUNT <= len(told) < BURST_COUNT + 100
