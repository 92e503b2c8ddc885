"""One user has no more connections than it may, whatever addresses it comes from.

Source: decision 0069; `[limits] connection_count_per_user_max`."""

import asyncio
import logging
from pathlib import Path

import pytest
from tests.broker.connection_world import DEADLINE_S, ECHO, HELD, Client, World, run
from tests.broker.test_handshakes import client_tls, terms_of

from strandline.broker.server.limits import ServerLimits
from strandline.broker.server.listening import ListenerTerms
from strandline.security.authority import Authority
from strandline.security.session import Principal, Session

LIMITS = ServerLimits(connection_count_per_user_max=2)
LOGINS = ListenerTerms(has_logins=True)


async def log_in(world: World, name: str) -> Client:
    """A client whose login the desk accepts."""
    client = await world.connect()
    client.send(HELD, 1)
    count = len(world.desk.blocked) + 1
    async with asyncio.timeout(DEADLINE_S):
        while len(world.desk.blocked) < count:
            await asyncio.sleep(0)
    context = world.desk.blocked[-1]
    context.sink.authenticate(Session(principal=Principal.user(name)))
    context.respond(())
    return client


async def is_served(client: Client) -> bool:
    client.send(ECHO, 7)
    try:
        while (await client.receive())[0] != 7:
            pass
    except (asyncio.IncompleteReadError, ConnectionResetError):
        return False
    return True


def refusals(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if "refuses" in one.getMessage()]


def test_a_user_has_no_more_connections_than_it_may(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "strandline.broker")

    async def scenario(world: World) -> None:
        mine = [await log_in(world, "mia") for _ in range(4)]
        assert [await is_served(one) for one in mine] == [True, True, False, False]
        assert await is_served(await log_in(world, "noah"))
        refused = world.server.refused_connections
        assert refused == {"broker": 0, "address": 0, "address-rate": 0, "user": 2}
        await mine[0].close()
        async with asyncio.timeout(DEADLINE_S):
            while world.server.connection_count > 2:
                await asyncio.sleep(0)
        assert await is_served(await log_in(world, "mia"))

    run(scenario, limits=LIMITS, terms=LOGINS)
    assert refusals(caplog) == [
        "refuses connections of User:mia: 2 are open, the limit of [limits] "
        "connection_count_per_user_max"
    ]


def test_a_user_who_logs_in_again_on_a_connection_counts_once() -> None:
    async def scenario(world: World) -> None:
        first = await log_in(world, "mia")
        for _ in range(3):
            first.send(HELD, 1)
            await world.desk.wait_seen(len(world.desk.seen) + 1)
            world.desk.blocked[-1].sink.authenticate(Session(principal=Principal.user("mia")))
            world.desk.blocked[-1].respond(())
        assert await is_served(first)
        assert await is_served(await log_in(world, "mia"))
        assert not await is_served(await log_in(world, "mia"))

    run(scenario, limits=LIMITS, terms=LOGINS)


def test_clients_without_a_user_have_no_such_limit() -> None:
    async def scenario(world: World) -> None:
        clients = [await world.connect() for _ in range(4)]
        assert all([await is_served(one) for one in clients])

    run(scenario, limits=LIMITS)


def test_a_certificate_is_a_user(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "strandline.broker")
    authority = Authority(tmp_path)

    async def scenario(world: World) -> None:
        clients = [await world.connect() for _ in range(3)]
        assert [await is_served(one) for one in clients] == [True, True, False]

    run(
        scenario,
        limits=LIMITS,
        terms=terms_of(authority.issue("server"), "required"),
        tls=client_tls(authority.trust, authority.issue("mia")),
    )
    assert len(refusals(caplog)) == 1
