"""Clients come to a listener with TLS. Source: docs/decisions/0069-access.md."""

import asyncio
import contextlib
import logging
import os
import random
import socket
import ssl
import struct
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.broker.connection_world import (
    ECHO,
    FILE,
    HELD,
    LOOPS,
    Client,
    DiskFile,
    World,
    run,
)

from strandline.broker.context import RequestContext
from strandline.broker.server.limits import KIB, MIB, ServerLimits
from strandline.broker.server.listening import ListenerTerms
from strandline.broker.server.outbox import FilePart
from strandline.config.principal_rules import PrincipalRules
from strandline.security import tls as tls_module
from strandline.security.authority import Authority, Files
from strandline.security.session import ANONYMOUS, Principal
from strandline.security.tls import Pair, ServerTls, TlsSettings


def terms_of(
    files: Files, client_certificates: str = "none", rules: str = "DEFAULT"
) -> ListenerTerms:
    settings = TlsSettings(
        place="[[listener]] SECURE",
        pairs=(Pair(files.certificate, files.key),),
        trust=files.trust,
        client_certificates=client_certificates,
    )
    return ListenerTerms(name="SECURE", tls=ServerTls(settings), rules=PrincipalRules(rules))


def client_tls(trust: Path, own: Files | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(trust))
    context.check_hostname = False
    if own is not None:
        context.load_cert_chain(own.certificate, own.key)
    return context


async def plain_client(world: World) -> Client:
    return Client(*await asyncio.open_connection("127.0.0.1", world.server.port))


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.name == "strandline.broker"]


@LOOPS
def test_requests_and_answers_of_every_size_pass_through_tls(
    tmp_path: Path, loop_factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    authority = Authority(tmp_path)
    content = os.urandom(3 * MIB)
    (tmp_path / "log").write_bytes(content)

    async def scenario(world: World) -> None:
        client = await world.connect()
        bodies = [os.urandom(size) for size in (1, 100, 16 * KIB, 70 * KIB, 5 * MIB, 0, 300_000)]
        file = DiskFile(tmp_path / "log", has_descriptor=True)
        world.desk.answers[b"f"] = [b"<", FilePart(file, 0, len(content)), b">"]
        for number, body in enumerate(bodies):
            client.send(ECHO, number, body)
        client.send(FILE, 99, b"f")
        for number, body in enumerate(bodies):
            assert await client.receive() == (number, body)
        assert await client.receive() == (99, b"<" + content + b">")
        file.close()
        session = world.desk.sessions[0]
        assert (session.principal, session.listener) == (ANONYMOUS, "SECURE")
        assert session.is_encrypted and session.host == "127.0.0.1"

    run(
        scenario,
        loop_factory=loop_factory,
        terms=terms_of(authority.issue("server")),
        tls=client_tls(authority.trust),
    )


@LOOPS
def test_a_connection_with_tls_that_is_muted_again_and_again_loses_nothing(
    tmp_path: Path, loop_factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    authority = Authority(tmp_path)

    async def scenario(world: World) -> None:
        plain = world.desk._run

        def mute(context: RequestContext) -> None:
            plain(context)
            context.sink.mute(2)

        world.desk._run = mute  # type: ignore[method-assign]
        client = await world.connect()
        bodies = [os.urandom(size) for size in (1, 16 * KIB, 70 * KIB, 0, 300_000) * 6]
        for number, body in enumerate(bodies):
            client.send(ECHO, number, body)
        for number, body in enumerate(bodies):
            assert await client.receive() == (number, body)

    run(
        scenario,
        loop_factory=loop_factory,
        terms=terms_of(authority.issue("server")),
        tls=client_tls(authority.trust),
    )


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_session_is_not_resumed_by_a_certificate_that_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: ssl.TLSVersion
) -> None:
    """OpenSSL does not look at the certificate again."""
    authority = Authority(tmp_path)
    context = client_tls(authority.trust, authority.issue("app", days=30))
    context.maximum_version = version

    async def scenario(world: World) -> None:
        async def come(session: ssl.SSLSession | None) -> tuple[ssl.SSLSession | None, bytes]:
            return await asyncio.to_thread(one_echo, context, world.server.port, session)

        session, answer = await come(None)
        again, second = await come(session)
        assert (answer, second) == (b"x", b"x")
        in_60_days = SimpleNamespace(time=lambda: time.time() + 60 * 86_400)
        monkeypatch.setattr(tls_module, "time", in_60_days)
        assert (await come(again))[1] == b""
        assert len(world.desk.seen) == 2

    run(scenario, terms=terms_of(authority.issue("server"), "required"))


def one_echo(
    context: ssl.SSLContext, port: int, session: ssl.SSLSession | None
) -> tuple[ssl.SSLSession | None, bytes]:
    """The session after one request, which resumed the one before, and its answer; nothing if the
    server ends the connection."""
    plain = socket.create_connection(("127.0.0.1", port), 20)
    with context.wrap_socket(plain, session=session) as sock:
        assert sock.session_reused == (session is not None)
        frame = struct.pack(">hhi", ECHO, 0, 1) + b"x"
        try:
            sock.sendall(struct.pack(">i", len(frame)) + frame)
            answer = sock.recv(100)
        except OSError:
            answer = b""
        return sock.session, answer[8:]


@pytest.mark.parametrize(
    ("rules", "principal"),
    [("DEFAULT", "CN=app,OU=orders,O=us"), ("RULE:^CN=(.*?),.*$/$1/U", "APP")],
)
def test_a_clients_certificate_names_its_principal(
    tmp_path: Path, rules: str, principal: str
) -> None:
    authority = Authority(tmp_path)

    async def scenario(world: World) -> None:
        client = await world.connect()
        client.send(ECHO, 1)
        await client.receive()
        assert world.desk.sessions[0].principal == Principal.user(principal)

    run(
        scenario,
        terms=terms_of(authority.issue("server"), "required", rules),
        tls=client_tls(authority.trust, authority.issue("a", subject="CN=app,OU=orders,O=us")),
    )


@pytest.mark.parametrize(
    ("own", "rules", "reason"),
    [
        ("none", "DEFAULT", "the client showed no certificate, and must"),
        (
            "stranger",
            "DEFAULT",
            "the client's certificate is not accepted: unable to get local issuer certificate",
        ),
        (
            "expired",
            "DEFAULT",
            "the client's certificate is not accepted: certificate has expired",
        ),
        (
            "app",
            "RULE:^OU=.*$/x/",
            "no principal_mapping_rules match its certificate's name, 'CN=app'",
        ),
    ],
)
def test_a_client_that_may_not_come_in_is_told_apart_in_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, own: str, rules: str, reason: str
) -> None:
    authority = Authority(tmp_path)
    certificates = {
        "none": None,
        "app": authority.issue("app"),
        "expired": authority.issue("expired", days=-1),
        "stranger": Authority(tmp_path / "other").issue("app"),
    }
    caplog.set_level(logging.INFO, "strandline.broker")

    async def scenario(world: World) -> None:
        try:
            client = await world.connect()
            assert await client.is_closed()
        except (ssl.SSLError, ConnectionError):
            pass

    run(
        scenario,
        terms=terms_of(authority.issue("server"), "required", rules),
        tls=client_tls(authority.trust, certificates[own]),
    )
    assert lines(caplog) == [f"closed the connection from 127.0.0.1 at listener SECURE: {reason}"]


def test_a_client_without_tls_is_closed_at_once_in_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority(tmp_path)
    caplog.set_level(logging.INFO, "strandline.broker")

    async def scenario(world: World) -> None:
        client = await plain_client(world)
        client.send(ECHO, 1)
        assert await client.is_closed()
        await client.close()

    run(scenario, terms=terms_of(authority.issue("server")))
    assert lines(caplog) == [
        "closed the connection from 127.0.0.1 at listener SECURE: a client without TLS came to a "
        "port with TLS"
    ]


def test_a_client_with_tls_at_a_plain_port_is_closed_at_once_in_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority(tmp_path)
    caplog.set_level(logging.INFO, "strandline.broker")

    async def scenario(world: World) -> None:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await world.connect()

    run(scenario, tls=client_tls(authority.trust))
    assert lines(caplog) == [
        "closed the connection from 127.0.0.1: a TLS greeting came to the plaintext Kafka port"
    ]


def test_a_client_that_never_finishes_its_handshake_is_closed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority(tmp_path)
    caplog.set_level(logging.INFO, "strandline.broker")

    async def scenario(world: World) -> None:
        silent, halfway = await plain_client(world), await plain_client(world)
        halfway.writer.write(b"\x16\x03\x01\x01\x00\x01")
        assert await silent.is_closed()
        assert await halfway.is_closed()
        await silent.close()
        await halfway.close()

    run(
        scenario,
        limits=ServerLimits(handshake_ms=100),
        terms=terms_of(authority.issue("server")),
    )
    reason = "no TLS handshake within 100 ms"
    line = f"closed the connection from 127.0.0.1 at listener SECURE: {reason}"
    assert lines(caplog) == [line, line]


def test_above_the_bound_the_handshake_that_waits_longest_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority(tmp_path)
    caplog.set_level(logging.INFO, "strandline.broker")

    async def scenario(world: World) -> None:
        silent = [await plain_client(world) for _ in range(3)]
        client = await world.connect()
        client.send(ECHO, 1)
        assert (await client.receive())[0] == 1
        assert await silent[0].is_closed()
        for one in silent:
            await one.close()

    run(
        scenario,
        limits=ServerLimits(handshake_count_max=3),
        terms=terms_of(authority.issue("server")),
        tls=client_tls(authority.trust),
    )
    assert lines(caplog) == [
        "closed the connection from 127.0.0.1 at listener SECURE: more than 3 TLS handshakes are "
        "in progress"
    ]


def test_many_clients_at_once_all_get_their_turn(tmp_path: Path) -> None:
    authority = Authority(tmp_path)

    async def scenario(world: World) -> None:
        async def ask(number: int) -> int:
            client = await world.connect()
            client.send(ECHO, number)
            return (await client.receive())[0]

        assert await asyncio.gather(*(ask(number) for number in range(40))) == list(range(40))

    run(
        scenario,
        terms=terms_of(authority.issue("server"), "required"),
        tls=client_tls(authority.trust, authority.issue("app")),
    )


def test_a_handshake_that_fails_unforeseen_holds_up_no_other(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    context = client_tls(authority.trust)

    async def scenario(world: World) -> None:
        handshakes = world.server._admission._handshakes
        plain, failures = handshakes.on_done, ["no such name"]

        def on_done(sock: ssl.SSLSocket, host: str, terms: ListenerTerms) -> None:
            if failures:
                raise RuntimeError(failures.pop())
            plain(sock, host, terms)

        handshakes.on_done = on_done
        assert (await asyncio.to_thread(one_echo, context, world.server.port, None))[1] == b""
        assert (await asyncio.to_thread(one_echo, context, world.server.port, None))[1] == b"x"
        assert handshakes.count == 0

    terms = terms_of(authority.issue("server"))
    run(scenario, limits=ServerLimits(handshake_ms=60_000), terms=terms)


def test_a_connection_lives_on_while_certificates_change(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    files = authority.issue("server")
    terms = terms_of(files)

    async def scenario(world: World) -> None:
        client = await world.connect()
        renewed = authority.issue("renewed")
        files.certificate.write_bytes(renewed.certificate.read_bytes())
        files.key.write_bytes(renewed.key.read_bytes())
        assert terms.tls is not None and terms.tls.reload_if_changed()
        client.send(ECHO, 1)
        assert (await client.receive())[0] == 1
        await world.connect()

    run(scenario, terms=terms, tls=client_tls(authority.trust))


def test_a_connection_that_pauses_for_room_loses_nothing_of_what_tls_holds(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    sizes = [5, 3_000, 90_000, 20] * 25

    async def scenario(world: World) -> None:
        client = await world.connect()
        for number, size in enumerate(sizes):
            client.send(HELD if number % 10 == 0 else ECHO, number, bytes([number]) * size)
        for number, size in enumerate(sizes):
            if number % 10 == 0:
                await world.desk.wait_seen(number + 1)
                world.desk.blocked.pop(0).respond((b"held",))
            answer = b"held" if number % 10 == 0 else bytes([number]) * size
            assert await client.receive() == (number, answer)

    run(
        scenario,
        limits=ServerLimits(connection_requests_max=1),
        terms=terms_of(authority.issue("server")),
        tls=client_tls(authority.trust),
    )


def test_clients_that_send_garbage_harm_nobody(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    rng = random.Random(7)

    async def scenario(world: World) -> None:
        good = await world.connect()
        for number in range(60):
            client = await plain_client(world)
            garbage = rng.randbytes(rng.randrange(1, 400))
            match number % 3:
                case 0:  # A record of a handshake.
                    garbage = b"\x16\x03\x01" + len(garbage).to_bytes(2, "big") + garbage
                case 1:  # A greeting that promises more than a record can have.
                    garbage = b"\x16\x03\x03\xff\xff\x01\xff\xff\xff" + garbage
            client.writer.write(garbage)
            client.writer.write_eof()
            with contextlib.suppress(ConnectionResetError):
                while await client.reader.read(1_000):  # An alert, perhaps.
                    continue
            await client.close()
        good.send(ECHO, 1)
        assert (await good.receive())[0] == 1

    run(
        scenario,
        terms=terms_of(authority.issue("server")),
        tls=client_tls(authority.trust),
    )
