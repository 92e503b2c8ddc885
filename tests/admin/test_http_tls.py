"""The HTTP port with TLS (decision 0069)."""

import asyncio
import errno
import logging
import socket
import ssl
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import uvloop

from strandline.admin.http_server import CONNECTION_COUNT_MAX, Answer, Asker, Gate, HttpServer
from strandline.broker.server.listening import claim_port
from strandline.security import tls as tls_module
from strandline.security.authority import Authority, Files
from strandline.security.tls import Pair, ServerTls, TlsSettings

REQUEST = b"GET /page HTTP/1.1\r\nHost: here\r\n\r\n"
LARGE = b"x" * 3_000_000
Ask = Callable[[ssl.SSLContext | None], Awaitable[bytes]]


async def page() -> Answer:
    return Answer([b"hello ", LARGE])


def tls_of(files: Files, client_certificates: str = "none") -> ServerTls:
    return ServerTls(
        TlsSettings(
            place="[metrics]",
            pairs=(Pair(files.certificate, files.key),),
            trust=files.trust,
            client_certificates=client_certificates,
        )
    )


def served(
    tls: ServerTls,
    talk: Callable[[Ask, int], Awaitable[None]],
    factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
    gate: Gate | None = None,
) -> None:
    async def main() -> None:
        server = HttpServer({"/page": page}, gate=gate)
        claimed = await claim_port("127.0.0.1", 0)
        port = claimed.getsockname()[1]
        await server.start(claimed, tls=tls)

        async def ask(context: ssl.SSLContext | None) -> bytes:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            try:
                writer.write(REQUEST)
                async with asyncio.timeout(20):
                    return await reader.read()
            finally:
                writer.transport.abort()

        try:
            await talk(ask, port)
        finally:
            server.stop()

    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main())


def client(trust: Path, own: Files | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(trust))
    context.check_hostname = False
    if own is not None:
        context.load_cert_chain(own.certificate, own.key)
    return context


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_pages_are_answered_through_tls_with_the_certificates_of_now(
    tmp_path: Path, factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    authority, other = Authority(tmp_path), Authority(tmp_path / "other")
    files, renewed = authority.issue("a"), other.issue("b")
    tls = tls_of(files)

    async def talk(ask: Ask, _: int) -> None:
        answer = await ask(client(authority.trust))
        assert answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(LARGE)
        files.certificate.write_bytes(renewed.certificate.read_bytes())
        files.key.write_bytes(renewed.key.read_bytes())
        assert tls.reload_if_changed()
        assert (await ask(client(other.trust))).endswith(LARGE)
        with pytest.raises(ssl.SSLCertVerificationError):
            await ask(client(authority.trust))

    served(tls, talk, factory)


def test_a_client_without_a_certificate_or_without_tls_gets_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority(tmp_path)
    caplog.set_level(logging.INFO, "strandline.admin")
    app = authority.issue("app")

    async def talk(ask: Ask, _: int) -> None:
        assert (await ask(client(authority.trust, app))).endswith(LARGE)
        for context in (client(authority.trust), None):
            try:
                assert b"HTTP/1.1" not in await ask(context)
            except OSError:
                pass

    served(tls_of(authority.issue("a"), "required"), talk)
    start = "closed the connection from 127.0.0.1 at the HTTP port: "
    assert [one.getMessage() for one in caplog.records] == [
        f"{start}the client showed no certificate, and must",
        f"{start}a client without TLS came to a port with TLS",
    ]


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_certificate_that_is_only_requested_is_told_to_the_gate(
    tmp_path: Path, factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    authority, other = Authority(tmp_path), Authority(tmp_path / "other")
    app, stranger = authority.issue("app"), other.issue("app")
    askers: list[Asker] = []

    async def gate(asker: Asker, path: str) -> Answer | None:
        askers.append(asker)
        return None

    async def talk(ask: Ask, _: int) -> None:
        assert (await ask(client(authority.trust, app))).endswith(LARGE)
        assert (await ask(client(authority.trust))).endswith(LARGE)
        try:
            assert b"HTTP/1.1" not in await ask(client(authority.trust, stranger))
        except OSError:
            pass

    served(tls_of(authority.issue("a"), "requested"), talk, factory, gate)
    assert [one.has_certificate for one in askers] == [True, False]
    assert {one.host for one in askers} == {"127.0.0.1"}


def test_clients_that_never_shake_hands_do_not_keep_others_out(tmp_path: Path) -> None:
    authority = Authority(tmp_path)

    async def talk(ask: Ask, port: int) -> None:
        silent = [
            await asyncio.open_connection("127.0.0.1", port)
            for _ in range(CONNECTION_COUNT_MAX + 1)
        ]
        assert (await ask(client(authority.trust))).endswith(LARGE)
        for _, writer in silent:
            writer.transport.abort()

    served(tls_of(authority.issue("a")), talk)


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_session_is_not_resumed_by_a_certificate_that_has_ended(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    factory: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    authority = Authority(tmp_path)
    context = client(authority.trust, authority.issue("app", days=30))

    def get(port: int, session: ssl.SSLSession | None) -> tuple[ssl.SSLSession | None, bytes]:
        plain = socket.create_connection(("127.0.0.1", port), 20)
        with context.wrap_socket(plain, session=session) as sock:
            assert sock.session_reused == (session is not None)
            try:
                sock.sendall(REQUEST)
                answer = sock.recv(100)
            except OSError:
                answer = b""
            return sock.session, answer

    async def talk(_: Ask, port: int) -> None:
        session, answer = await asyncio.to_thread(get, port, None)
        again, second = await asyncio.to_thread(get, port, session)
        assert answer.startswith(b"HTTP/1.1 200 ") and second.startswith(b"HTTP/1.1 200 ")
        in_60_days = SimpleNamespace(time=lambda: time.time() + 60 * 86_400)
        monkeypatch.setattr(tls_module, "time", in_60_days)
        assert (await asyncio.to_thread(get, port, again))[1] == b""

    served(tls_of(authority.issue("a"), "required"), talk, factory)


class FullProcess(socket.socket):
    """A listening socket of a process that is out of descriptors, for a while."""

    refused_count = 0
    accepts = False

    def accept(self) -> tuple[socket.socket, object]:
        if self.accepts:
            return super().accept()
        type(self).refused_count += 1
        raise OSError(errno.EMFILE, "Too many open files")


def test_a_broker_without_descriptors_looks_for_clients_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strandline.admin.http_server.ACCEPT_PAUSE_S", 0.02)
    authority = Authority(tmp_path)

    async def main() -> None:
        server = HttpServer({"/page": page})
        full = FullProcess(fileno=(await claim_port("127.0.0.1", 0)).detach())
        await server.start(full, tls=tls_of(authority.issue("a")))
        opening = asyncio.open_connection(
            "127.0.0.1", full.getsockname()[1], ssl=client(authority.trust)
        )
        connecting = asyncio.ensure_future(opening)
        while not full.refused_count:
            await asyncio.sleep(0)
        for _ in range(1_000):
            await asyncio.sleep(0)
        assert full.refused_count < 500
        FullProcess.accepts = True
        reader, writer = await connecting
        writer.write(REQUEST)
        assert (await reader.read()).endswith(LARGE)
        writer.transport.abort()
        server.stop()

    asyncio.run(main())
