"""One address has no more connections, handshakes among them, than it may.

Source: Kafka's `max.connections.per.ip`; decision 0069."""

import asyncio
import logging
from pathlib import Path

import pytest
from tests.broker.connection_world import DEADLINE_S, ECHO, World, run
from tests.broker.test_handshakes import client_tls, terms_of

from strandline.broker.server.limits import MIB, ServerLimits
from strandline.security.authority import Authority


@pytest.mark.parametrize("is_secure", [False, True])
def test_one_address_has_no_more_connections_than_it_may(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, is_secure: bool
) -> None:
    caplog.set_level(logging.WARNING, "strandline.broker")
    authority = Authority(tmp_path)

    async def scenario(world: World) -> None:
        clients = [await world.connect() for _ in range(2)]
        for number, client in enumerate(clients):
            client.send(ECHO, number)
            assert (await client.receive())[0] == number
        for _ in range(3):
            reader, writer = await asyncio.open_connection("127.0.0.1", world.server.port)
            assert await reader.read() == b""
            writer.close()
        await clients[0].close()
        async with asyncio.timeout(DEADLINE_S):
            while world.server.connection_count == 2:
                await asyncio.sleep(0)
        client = await world.connect()
        client.send(ECHO, 9)
        assert (await client.receive())[0] == 9

    run(
        scenario,
        limits=ServerLimits(connection_count_per_address_max=2),
        terms=terms_of(authority.issue("server")) if is_secure else None,
        tls=client_tls(authority.trust) if is_secure else None,
    )
    (line,) = [one.getMessage() for one in caplog.records if "refuses" in one.getMessage()]
    assert line.startswith("refuses connections from 127.0.0.1: 2 are open")


def test_handshakes_in_progress_count(tmp_path: Path) -> None:
    authority = Authority(tmp_path)

    async def scenario(world: World) -> None:
        silent = [await asyncio.open_connection("127.0.0.1", world.server.port) for _ in range(2)]
        reader, writer = await asyncio.open_connection("127.0.0.1", world.server.port)
        assert await reader.read() == b""
        for _, one in [*silent, (reader, writer)]:
            one.close()

    run(
        scenario,
        limits=ServerLimits(connection_count_per_address_max=2),
        terms=terms_of(authority.issue("server")),
    )


def test_an_address_is_the_same_one_by_way_of_ipv6() -> None:
    """A listener at [::] takes IPv4 clients, too: rules and bounds are about their address."""

    async def scenario() -> None:
        world = World(ServerLimits(connection_count_per_address_max=1), MIB)
        await world.server.start("::", 0)
        try:
            client = await world.connect()
            client.send(ECHO, 1)
            await client.receive()
            assert world.desk.sessions[0].host == "127.0.0.1"
            assert world.desk.sessions[0].caller.host == "127.0.0.1"
            assert await (await world.connect()).is_closed()
        finally:
            await world.stop()

    asyncio.run(scenario())
