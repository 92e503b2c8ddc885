"""A small HTTP server on the broker's loop: a few pages, by GET.

Why:    a monitor requests one page now and then. A web framework would be more code inside a broker
        than the broker's own network; the standard library's server takes a thread for each
        connection, bounds neither their number nor their time, and its threads would read state
        that the loop changes meanwhile.
How:    h11 parses requests and formats responses; this file moves the bytes, asks the gate whether
        the client may see the page, finds it and sets limits. One request a connection:
        head --page--> answer, closed. A head of at most 16 KiB, 30 s from the first byte to the
        last, 32 connections; beyond that the server closes the oldest one of those that the gate
        has not let in, of the new one's address if that has eight of them. With TLS a handshake
        comes first, within the same time; it uses the certificates as they are at that moment.
Owns:   the listening socket, the connections.
Source: RFC 9112; decision 0023."""

import asyncio
import logging
import socket
import ssl
import zlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus

import h11
from prometheus_client.exposition import gzip_accepted

from strandline.admin.pace import Pace
from strandline.model.networks import canonical_host
from strandline.network.handshakes import why_refused
from strandline.security.tls import ServerTls, why_not_resumed

HEAD_BYTES_MAX = 16 * 1024
CONNECTION_COUNT_MAX = 32
WAITING_PER_ADDRESS_MAX = 8
"""Connections of one address that the gate has not let in, while the server has as many as it
takes."""
TIMEOUT_S = 30.0
SHUTDOWN_S = 5.0
LISTEN_BACKLOG = 128
ACCEPT_PAUSE_S = 0.5
"""Out of descriptors or memory, clients wait so long in the kernel."""
PLAIN = "text/plain; charset=utf-8"
METHODS = (b"GET", b"HEAD")
_READ_BYTES = 4096
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
    headers: Sequence[tuple[str, str]] = ()
    """Beside those that every answer has."""


Page = Callable[[], Awaitable[Answer | None]]
"""None: there is no such page."""
Folder = Callable[[str], Awaitable[Answer | None]]
"""A page for each last part of a path."""


@dataclass(frozen=True, slots=True)
class Asker:
    """The client of a request. `authorization`: the fields of this name, as they came."""

    host: str
    has_certificate: bool
    authorization: tuple[str, ...]


Gate = Callable[[Asker, str], Awaitable[Answer | None]]
"""The refusal for a client that may not see a path; None if it may."""


class HttpServer:
    """See the module. `pages`: {path: page}; `folders`: {path without its last part: folder};
    `gate`: None if every client may see every page."""

    def __init__(
        self,
        pages: Mapping[str, Page],
        folders: Mapping[str, Folder] | None = None,
        *,
        gate: Gate | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._gate = gate
        self._pages = pages
        self._folders = folders or {}
        self._timeout_s = timeout_s
        self._server: asyncio.Server | _TlsPort | None = None
        # In the order in which they came: {task: the client's address}.
        self._tasks: dict[asyncio.Task[None], str] = {}
        # Those of them that the gate has let in.
        self._admitted: set[asyncio.Task[None]] = set()

    async def start(self, claimed: socket.socket, *, tls: ServerTls | None = None) -> None:
        """Listen on a socket that has its address. Raises OSError."""
        if tls is None:
            self._server = await asyncio.start_server(self._on_connection, sock=claimed)
        else:
            self._server = _TlsPort(claimed, on_accepted=partial(self._on_accepted, tls))

    def stop(self) -> None:
        """Stop listening, and drop all responses in progress."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in list(self._tasks):
            task.cancel()

    def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Also ends one that was given up before it began.
        self._begin(self._serve(reader, writer), writer.transport.abort, _host_of(writer))

    def _on_accepted(self, tls: ServerTls, sock: socket.socket, host: str) -> None:
        self._begin(self._secure(tls, sock, host), sock.close, host)

    def _begin(self, work: Coroutine[None, None, None], end: Callable[[], None], host: str) -> None:
        """Do the work of one connection; `end` closes it."""
        if len(self._tasks) >= CONNECTION_COUNT_MAX:
            given_up = self._least_wanted(host)
            self._forget(given_up)
            given_up.cancel()
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = host

        def on_done(_: asyncio.Task[None]) -> None:
            self._forget(task)
            end()

        task.add_done_callback(on_done)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        self._admitted.discard(task)

    def _least_wanted(self, host: str) -> asyncio.Task[None]:
        """The connection that gives way to a new one from this address."""
        waiting = [one for one in self._tasks if one not in self._admitted]
        own = [one for one in waiting if self._tasks[one] == host]
        if len(own) >= WAITING_PER_ADDRESS_MAX:
            return own[0]
        return next(iter(waiting or self._tasks))

    async def _secure(self, tls: ServerTls, sock: socket.socket, host: str) -> None:
        """Shake hands, then serve."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        try:
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol,
                sock,
                ssl=tls.context,
                ssl_handshake_timeout=self._timeout_s,
                ssl_shutdown_timeout=SHUTDOWN_S,
            )
        except (OSError, TimeoutError) as error:
            reason = why_refused(error) if isinstance(error, ssl.SSLError) else str(error)
            _log.info("closed the connection from %s at the HTTP port: %s", host, reason)
            return
        try:
            refusal = why_not_resumed(transport.get_extra_info("ssl_object"))
            if refusal is not None:
                _log.info("closed the connection from %s at the HTTP port: %s", host, refusal)
                return
            await self._serve(reader, asyncio.StreamWriter(transport, protocol, reader, loop))
        finally:
            transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                peer = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)
                for part in await self._talk(peer, reader, writer):
                    writer.write(part)
                    await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (TimeoutError, OSError):
            pass  # The client has gone, or takes too long.
        except Exception:  # A task boundary: one connection may fail, the broker may not.
            _log.exception("cannot answer an HTTP request")

    async def _talk(
        self, peer: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> list[bytes]:
        """The response to the first request, in parts; none if the client disconnects before the
        request is complete."""
        try:
            request = await _request(peer, reader)
        except h11.RemoteProtocolError as error:
            return await _encode(peer, _refusal(HTTPStatus(error.error_status_hint)), None)
        if request is None:
            return []
        return await _encode(peer, await self._answer(request, writer), request)

    async def _answer(self, request: h11.Request, writer: asyncio.StreamWriter) -> Answer:
        path = request.target.partition(b"?")[0].decode("ascii")
        if self._gate is not None:
            refused = await self._gate(_asker(request, writer), path)
            if refused is not None:
                return refused
            task = asyncio.current_task()
            if task in self._tasks:
                self._admitted.add(task)
        page = self._page(path)
        if page is None:
            return _refusal(HTTPStatus.NOT_FOUND)
        if request.method not in METHODS:
            return _refusal(HTTPStatus.METHOD_NOT_ALLOWED)
        try:
            return await page() or _refusal(HTTPStatus.NOT_FOUND)
        except Exception:  # A task boundary: what one page cannot tell ends nothing else.
            _log.exception("cannot render page %s", path)
            return _refusal(HTTPStatus.INTERNAL_SERVER_ERROR)

    def _page(self, path: str) -> Page | None:
        parent, _, name = path.rpartition("/")
        folder = self._folders.get(parent)
        return self._pages.get(path) or (partial(folder, name) if folder else None)


class _TlsPort:
    """A listening socket whose connections get TLS one by one. `on_accepted` gets each socket and
    the client's address."""

    def __init__(
        self, sock: socket.socket, on_accepted: Callable[[socket.socket, str], None]
    ) -> None:
        self._socket = sock
        self._on_accepted = on_accepted
        self._loop = asyncio.get_running_loop()
        sock.listen(LISTEN_BACKLOG)
        self._loop.add_reader(sock.fileno(), self._on_acceptable)

    def close(self) -> None:
        """Accept nothing more."""
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()

    def _on_acceptable(self) -> None:
        try:
            sock, address = self._socket.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            _log.warning("cannot accept an HTTP client: %s", error.strerror)
            self._loop.remove_reader(self._socket.fileno())
            self._loop.call_later(ACCEPT_PAUSE_S, self._accept_again)
            return
        sock.setblocking(False)
        self._on_accepted(sock, canonical_host(address[0]))

    def _accept_again(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.add_reader(self._socket.fileno(), self._on_acceptable)


async def _request(peer: h11.Connection, reader: asyncio.StreamReader) -> h11.Request | None:
    """The head of the request; None where the connection ends before. Raises
    RemoteProtocolError."""
    while (event := peer.next_event()) is h11.NEED_DATA:
        peer.receive_data(await reader.read(_READ_BYTES))
    return event if isinstance(event, h11.Request) else None


def _asker(request: h11.Request, writer: asyncio.StreamWriter) -> Asker:
    sent = [value for name, value in request.headers if name == b"authorization"]
    return Asker(
        host=_host_of(writer),
        # TLS has verified it: another one ends the handshake.
        has_certificate=bool(writer.get_extra_info("peercert")),
        authorization=tuple(one.decode("latin-1") for one in sent),
    )


def _host_of(writer: asyncio.StreamWriter) -> str:
    name = writer.get_extra_info("peername")
    return canonical_host(str(name[0])) if name else ""


def _refusal(status: HTTPStatus) -> Answer:
    return Answer([f"{status.phrase}\n".encode()], status)


async def _encode(peer: h11.Connection, answer: Answer, request: h11.Request | None) -> list[bytes]:
    """The answer as it goes out, in parts."""
    body = list(answer.body)
    headers = [
        ("Content-Type", answer.content_type),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
        ("Connection", "close"),
        *answer.headers,
    ]
    if answer.status is HTTPStatus.METHOD_NOT_ALLOWED:
        headers.append(("Allow", b", ".join(METHODS).decode()))
    if request is not None and _takes_gzip(request) and answer.status is HTTPStatus.OK:
        body = await _compressed(body)
        headers.append(("Content-Encoding", "gzip"))
    headers.append(("Content-Length", str(sum(map(len, body)))))
    status = answer.status
    head = h11.Response(status_code=status.value, headers=headers, reason=status.phrase.encode())
    events: list[h11.Event] = [head]
    if request is None or request.method != b"HEAD":
        events += [h11.Data(data=part) for part in body]
    return [peer.send(event) or b"" for event in (*events, h11.EndOfMessage())]


def _takes_gzip(request: h11.Request) -> bool:
    accepted = [value for name, value in request.headers if name == b"accept-encoding"]
    return bool(gzip_accepted(b",".join(accepted).decode("latin-1")))


async def _compressed(body: Sequence[bytes]) -> list[bytes]:
    packer, pace = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP), Pace()
    parts: list[bytes] = []
    for part in body:
        await pace.rest()
        parts.append(packer.compress(part))
    return [*parts, packer.flush()]
