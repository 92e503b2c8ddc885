"""A small HTTP server on the broker's loop: a few pages that are asked for with GET.

Why:    a monitor asks one page now and then. A web framework would be more code inside a broker
        than the broker's own network; the standard library's server takes a thread for each
        connection, bounds neither their number nor their time, and its threads would read state
        that the loop changes meanwhile.
How:    one request a connection: head --page--> answer, closed. A head of at most 16 KiB, 30 s from
        the first byte to the last, 32 connections; beyond that the one that has taken longest goes.
Owns:   the listening socket, the connections.
Source: RFC 9112; decision 0023."""

import asyncio
import http.client
import io
import logging
import socket
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from prometheus_client.exposition import gzip_accepted

from strandline.admin.pace import Pace

HEAD_BYTES_MAX = 16 * 1024
CONNECTION_COUNT_MAX = 32
TIMEOUT_S = 30.0
PLAIN = "text/plain; charset=utf-8"
METHODS = ("GET", "HEAD")
_GZIP = 16 + zlib.MAX_WBITS
_LEVEL = 1
"""Such text is a tenth already at the least effort."""

_log = logging.getLogger("strandline.admin")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a page says."""

    body: Sequence[bytes]
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = PLAIN


Page = Callable[[], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    path: str
    takes_gzip: bool


class HttpServer:
    """See the module. `pages`: {path: page}."""

    def __init__(self, pages: Mapping[str, Page], *, timeout_s: float = TIMEOUT_S) -> None:
        self._pages = pages
        self._timeout_s = timeout_s
        self._server: asyncio.Server | None = None
        # In the order in which they came: {task: None}.
        self._tasks: dict[asyncio.Task[None], None] = {}

    async def start(self, claimed: socket.socket) -> None:
        """Listen on a socket that has its address. Raises OSError."""
        self._server = await asyncio.start_server(
            self._on_connection, sock=claimed, limit=HEAD_BYTES_MAX
        )

    def stop(self) -> None:
        """Listen no more, and give up every answer that is under way."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in list(self._tasks):
            task.cancel()

    def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= CONNECTION_COUNT_MAX:
            oldest = next(iter(self._tasks))
            del self._tasks[oldest]
            oldest.cancel()
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks[task] = None

        def on_done(_: asyncio.Task[None]) -> None:
            self._tasks.pop(task, None)
            writer.transport.abort()  # Also of one that was given up before it began.

        task.add_done_callback(on_done)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                answer, request = await self._answer(reader)
                if answer is not None:
                    for part in await _encode(answer, request):
                        writer.write(part)
                        await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (TimeoutError, OSError):
            pass  # Who asks has gone, or takes too long.
        except Exception:  # A task boundary: one connection may fail, the broker may not.
            _log.exception("cannot answer an HTTP request")

    async def _answer(self, reader: asyncio.StreamReader) -> tuple[Answer | None, _Request | None]:
        try:
            request = _parse(await reader.readuntil(b"\r\n\r\n"))
        except asyncio.IncompleteReadError:
            return None, None
        except asyncio.LimitOverrunError:
            return _refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE), None
        except (ValueError, http.client.HTTPException):
            return _refusal(HTTPStatus.BAD_REQUEST), None
        page = self._pages.get(request.path)
        if page is None:
            return _refusal(HTTPStatus.NOT_FOUND), request
        if request.method not in METHODS:
            return _refusal(HTTPStatus.METHOD_NOT_ALLOWED), request
        try:
            return await page(), request
        except Exception:  # A task boundary: what one page cannot tell ends nothing else.
            _log.exception("cannot make the page %s", request.path)
            return _refusal(HTTPStatus.INTERNAL_SERVER_ERROR), request


def _parse(head: bytes) -> _Request:
    """Raises ValueError, HTTPException."""
    line, _, rest = head.partition(b"\r\n")
    method, target, version = line.decode("ascii").split(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError("another protocol")
    headers = http.client.parse_headers(io.BytesIO(rest))
    accepted = ",".join(headers.get_all("Accept-Encoding", []))
    return _Request(method, target.partition("?")[0], gzip_accepted(accepted))


def _refusal(status: HTTPStatus) -> Answer:
    return Answer([f"{status.phrase}\n".encode()], status)


async def _encode(answer: Answer, request: _Request | None) -> list[bytes]:
    """The answer as it goes out, in parts."""
    body = list(answer.body)
    headers = [
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}",
        f"Content-Type: {answer.content_type}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "Connection: close",
    ]
    if answer.status is HTTPStatus.METHOD_NOT_ALLOWED:
        headers.append(f"Allow: {', '.join(METHODS)}")
    if request is not None and request.takes_gzip and answer.status is HTTPStatus.OK:
        body = await _compressed(body)
        headers.append("Content-Encoding: gzip")
    headers.append(f"Content-Length: {sum(map(len, body))}")
    head = "\r\n".join(headers).encode() + b"\r\n\r\n"
    return [head] if request is not None and request.method == "HEAD" else [head, *body]


async def _compressed(body: Sequence[bytes]) -> list[bytes]:
    packer, pace = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP), Pace()
    parts: list[bytes] = []
    for part in body:
        await pace.rest()
        parts.append(packer.compress(part))
    return [*parts, packer.flush()]
