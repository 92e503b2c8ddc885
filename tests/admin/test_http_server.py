"""The small HTTP server over real sockets: what it answers, and whom it gives up.

Source: RFC 9112; decision 0023."""

import asyncio
import gzip
import socket
from collections.abc import Awaitable, Callable, Coroutine
from http import HTTPStatus
from http.client import HTTPResponse
from io import BytesIO

import pytest
import uvloop

from strandline.admin.http_server import (
    CONNECTION_COUNT_MAX,
    HEAD_BYTES_MAX,
    Answer,
    Asker,
    HttpServer,
)

TEXT = [b"one 1\n", b"two 2\n" * 1_000]
WAIT_S = 60


_loop_factory: list[Callable[[], asyncio.AbstractEventLoop]] = [asyncio.new_event_loop]


@pytest.fixture(autouse=True, params=[asyncio.new_event_loop, uvloop.new_event_loop])
def each_loop(request: pytest.FixtureRequest) -> None:
    """Everything here on asyncio's own loop, and on the one that brokers use where they can."""
    _loop_factory[0] = request.param


class FakeSocket(BytesIO):
    """Bytes that came in, for the standard library to read as a response."""

    def makefile(self, *_: object) -> BytesIO:
        return self


def read(data: bytes, *, method: str = "GET") -> HTTPResponse:
    response = HTTPResponse(FakeSocket(data), method=method)  # type: ignore[arg-type]
    response.begin()
    return response


async def page() -> Answer:
    return Answer(TEXT)


async def one_of(name: str) -> Answer | None:
    return Answer([name.encode()]) if name.startswith("a") else None


async def noted() -> Answer:
    return Answer(TEXT, headers=(("Refresh", "10"),))


async def broken() -> Answer:
    raise RuntimeError("no such luck")


Ask = Callable[[bytes], Awaitable[bytes]]


def served(
    talk: Callable[[Ask, int, HttpServer], Coroutine[None, None, None]],
    *,
    timeout_s: float = WAIT_S,
) -> None:
    """Have a server, and talk to it."""

    async def run() -> None:
        pages = {"/page": page, "/broken": broken, "/many": page, "/noted": noted}
        server = HttpServer(pages, {"/many": one_of}, timeout_s=timeout_s)
        claimed = socket.create_server(("127.0.0.1", 0))
        claimed.setblocking(False)
        port = claimed.getsockname()[1]
        await server.start(claimed)

        async def ask(request: bytes) -> bytes:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request)
            try:
                return await asyncio.wait_for(reader.read(), WAIT_S)
            finally:
                writer.close()

        try:
            await talk(ask, port, server)
        finally:
            server.stop()

    with asyncio.Runner(loop_factory=_loop_factory[0]) as runner:
        runner.run(run())


def get(path: str, *headers: str, method: str = "GET") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: here", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def test_a_page_is_answered_and_the_connection_closed() -> None:
    async def talk(ask: Ask, port: int, server: HttpServer) -> None:
        for request in (get("/page"), get("/page?name=x"), get("/page", "Accept-Encoding: br")):
            response = read(await ask(request))
            assert (response.status, response.read()) == (200, b"".join(TEXT))
            assert response.getheader("Connection") == "close"
            assert response.getheader("Content-Encoding") is None

    served(talk)


def test_a_folder_has_a_page_for_each_name() -> None:
    async def talk(ask: Ask, port: int, server: HttpServer) -> None:
        for path, status, body in (
            ("/many", 200, b"".join(TEXT)),
            ("/many/a.b-c", 200, b"a.b-c"),
            ("/many/a?x=1", 200, b"a"),
            ("/many/b", 404, b"Not Found\n"),
            ("/many/", 404, b"Not Found\n"),
            ("/many/a/a", 404, b"Not Found\n"),
        ):
            response = read(await ask(get(path)))
            assert (response.status, response.read()) == (status, body), path
        assert read(await ask(get("/many/a", method="POST"))).status == 405

    served(talk)


def test_who_takes_gzip_gets_it() -> None:
    async def talk(ask: Ask, port: int, server: HttpServer) -> None:
        response = read(await ask(get("/page", "Accept-Encoding: deflate, gzip;q=0.5")))
        body = response.read()
        assert response.getheader("Content-Encoding") == "gzip"
        assert int(response.getheader("Content-Length", "0")) == len(body) < sum(map(len, TEXT)) / 5
        assert gzip.decompress(body) == b"".join(TEXT)

    served(talk)


def test_head_has_no_body() -> None:
    async def talk(ask: Ask, port: int, server: HttpServer) -> None:
        data = await ask(get("/page", method="HEAD"))
        assert data.endswith(b"\r\n\r\n")
        length = read(data, method="HEAD").getheader("Content-Length")
        assert length == str(sum(map(len, TEXT)))

    served(talk)


def test_a_page_may_have_headers_of_its_own() -> None:
    async def talk(ask: Ask, port: int, server: HttpServer) -> None:
        for method in ("GET", "HEAD"):
            response = read(await ask(get("/noted", method=method)), method=method)
            assert response.getheader("Refresh") == "10"
            assert response.getheader("Cache-Control") == "no-store"
        assert read(await ask(get("/page"))).getheader("Refresh") is None

    served(talk)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (get("/"), 404),
        (get("/pages"), 404),
        (get("//page"), 404),
        (get("/page/../page"), 404),
        (get("/page", method="POST"), 405),
        (get("/page", method="get"), 405),
        (b"GET /page\r\n\r\n", 400),
        (b"GET /page HTTP/2\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"\xff\xfe /page HTTP/1.1\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),
        (get("/page", *(f"H{one}: {'x' * 100}" for one in range(200))), 431),
        (b"GET /page HTTP/1.1\r\n" + b"x" * (HEAD_BYTES_MAX + 1), 431),
    ],
)
def test_what_is_no_page_is_refused(request_: bytes, status: int) -> None:
    async def talk(ask: Ask, port: int, server: HttpServer) -> None:
        response = read(await ask(request_))
        assert response.status == status
        assert (response.getheader("Allow") == "GET, HEAD") == (status == 405)
        assert read(await ask(get("/page"))).status == 200

    served(talk)


def test_a_page_that_fails_is_logged_and_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def talk(ask: Ask, port: int, server: HttpServer) -> None:
        data = await ask(get("/broken"))
        assert read(data).status == 500 and b"luck" not in data
        assert read(await ask(get("/page"))).status == 200

    served(talk)
    (record,) = caplog.records
    assert record.getMessage() == "cannot render page /broken"


def test_who_says_nothing_more_is_given_up() -> None:
    async def talk(ask: Ask, port: int, server: HttpServer) -> None:
        assert await ask(b"GET /page HT") == b""

    served(talk, timeout_s=0.05)


def test_who_hangs_up_early_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    async def talk(ask: Ask, port: int, server: HttpServer) -> None:
        for request in (b"", b"GET /pa"):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request)
            writer.close()
            await writer.wait_closed()
        assert read(await ask(get("/page"))).status == 200

    served(talk)
    assert caplog.records == []


def test_with_too_many_connections_the_oldest_goes() -> None:
    async def talk(ask: Ask, port: int, server: HttpServer) -> None:
        held = [
            await asyncio.open_connection("127.0.0.1", port) for _ in range(CONNECTION_COUNT_MAX)
        ]
        assert read(await ask(get("/page"))).status == 200
        assert await asyncio.wait_for(held[0][0].read(), WAIT_S) == b""
        held[-1][1].write(get("/page"))
        assert read(await asyncio.wait_for(held[-1][0].read(), WAIT_S)).status == 200
        for _, writer in held:
            writer.close()

    served(talk)


def test_one_address_that_opens_many_connections_ends_no_others() -> None:
    async def talk(ask: Ask, port: int, server: HttpServer) -> None:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, local_addr=("127.0.0.2", 0)
        )
        held = [
            await asyncio.open_connection("127.0.0.1", port)
            for _ in range(2 * CONNECTION_COUNT_MAX)
        ]
        assert read(await ask(get("/page"))).status == 200
        writer.write(get("/page"))
        assert read(await asyncio.wait_for(reader.read(), WAIT_S)).status == 200
        for _, one in (*held, (reader, writer)):
            one.close()

    served(talk)


def test_a_client_that_was_let_in_is_answered_however_many_others_come() -> None:
    async def run() -> None:
        asked, may_end = asyncio.Event(), asyncio.Event()

        async def slow() -> Answer:
            asked.set()
            await may_end.wait()
            return Answer(TEXT)

        async def gate(asker: Asker, path: str) -> Answer | None:
            is_right = asker.authorization == ("Bearer x",)
            return None if is_right else Answer([b"no"], HTTPStatus.UNAUTHORIZED)

        server = HttpServer({"/slow": slow}, gate=gate)
        claimed = socket.create_server(("127.0.0.1", 0))
        claimed.setblocking(False)
        port = claimed.getsockname()[1]
        await server.start(claimed)
        opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        (reader, writer), (other, _) = opened
        writer.write(get("/slow", "Authorization: Bearer x"))
        await asyncio.wait_for(asked.wait(), WAIT_S)
        for _ in range(2 * CONNECTION_COUNT_MAX):
            opened.append(await asyncio.open_connection("127.0.0.1", port))
        assert await asyncio.wait_for(other.read(), WAIT_S) == b"", "it is the oldest that waits"
        may_end.set()
        assert read(await asyncio.wait_for(reader.read(), WAIT_S)).status == 200
        for _, one in opened:
            one.close()
        server.stop()

    with asyncio.Runner(loop_factory=_loop_factory[0]) as runner:
        runner.run(run())


def test_of_many_that_come_at_once_all_but_the_last_are_let_go() -> None:
    """Also those that are given up before a word was read of them."""

    async def talk(ask: Ask, port: int, server: HttpServer) -> None:
        loop = asyncio.get_running_loop()
        surplus = CONNECTION_COUNT_MAX
        come = [
            socket.create_connection(("127.0.0.1", port))
            for _ in range(surplus + CONNECTION_COUNT_MAX)
        ]
        try:
            for one in come:
                one.setblocking(False)
            for one in come[:surplus]:
                assert await asyncio.wait_for(loop.sock_recv(one, 1), WAIT_S) == b""
            await loop.sock_sendall(come[-1], get("/page"))
            assert await asyncio.wait_for(loop.sock_recv(come[-1], 4), WAIT_S) == b"HTTP"
        finally:
            for one in come:
                one.close()

    served(talk)


def test_when_it_is_stopped_nobody_is_answered() -> None:
    async def talk(ask: Ask, port: int, server: HttpServer) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert read(await ask(get("/page"))).status == 200
        server.stop()
        assert await asyncio.wait_for(reader.read(), WAIT_S) == b""
        writer.close()
        with pytest.raises(OSError):
            await ask(get("/page"))

    served(talk)
