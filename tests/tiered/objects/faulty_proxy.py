"""A proxy before a real S3 server that makes it fail as stores do (reference 2.6).

How:    each request is matched with the first fault that waits for its method and path; the fault
        is used up. A request without a fault passes.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

THROTTLED = (
    b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Reduce your rate</Message></Error>"
)


@dataclass(frozen=True)
class Fault:
    """What happens to one request. `applied`: the server gets it all the same; `status`: the answer
    instead of the server's, 0 for none: the connection drops."""

    method: str
    part: str = ""
    """Of the path and query."""
    status: int = 0
    applied: bool = False
    body: bytes = THROTTLED
    keep_bytes: int | None = None
    """Of the server's own body: so many, then the connection drops."""
    flips: bool = False
    """The server's body, with one bit wrong."""
    hangs: bool = False
    """No answer, until the proxy ends."""

    def __str__(self) -> str:
        applied, kept = "applied" * self.applied, self.keep_bytes is not None
        kind = "hangs" * self.hangs + "flips" * self.flips + "half" * kept
        return "-".join(filter(None, (self.method, self.part, str(self.status), applied, kind)))


EXPIRED = Fault(
    "",
    status=400,
    body=b"<Error><Code>ExpiredToken</Code><Message>The token has expired</Message></Error>",
)


@dataclass
class FaultyProxy:
    """See the module. `seen`: (method, path) of all requests; `heads`: their headers."""

    target: int
    port: int = 0
    faults: list[Fault] = field(default_factory=list)
    seen: list[tuple[str, str]] = field(default_factory=list)
    heads: list[bytes] = field(default_factory=list)
    refused: bytes = b""
    """Requests with this in their headers are refused, as with expired credentials."""

    def count(self, method: str) -> int:
        return sum(one == method for one, _ in self.seen)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._one(reader, writer):
                    pass
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Pass one request on; whether the connection stays."""
        head = await reader.readuntil(b"\r\n\r\n")
        body = await _body(reader, head)
        method, path = head.split(b" ", 2)[:2]
        self.seen.append((method.decode(), path.decode()))
        self.heads.append(head)
        fault = self._fault(method.decode(), path.decode())
        if self.refused and self.refused in head:
            fault = EXPIRED
        if fault is None:
            writer.write(await self._forward(head, body))
            await writer.drain()
            return True
        answer = b""
        if fault.applied or fault.keep_bytes is not None or fault.flips:
            answer = await self._forward(head, body)
        if fault.hangs:
            await asyncio.Event().wait()
        if fault.status:
            writer.write(
                b"HTTP/1.1 %d Fault\r\nContent-Length: %d\r\nRetry-After: 1\r\n\r\n"
                % (fault.status, len(fault.body))
                + fault.body
            )
            await writer.drain()
            return True
        start = answer.find(b"\r\n\r\n") + 4
        if fault.flips:
            writer.write(answer[:start] + bytes([answer[start] ^ 1]) + answer[start + 1 :])
            await writer.drain()
            return True
        if fault.keep_bytes is not None:
            writer.write(answer[: start + fault.keep_bytes])
            await writer.drain()
        return False

    def _fault(self, method: str, path: str) -> Fault | None:
        for fault in self.faults:
            if fault.method == method and fault.part in path:
                self.faults.remove(fault)
                return fault
        return None

    async def _forward(self, head: bytes, body: bytes) -> bytes:
        """The server's whole answer, with its body as one piece."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.target)
        try:
            writer.write(head + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HEAD ") and b" 204 " not in answer.split(b"\r\n")[0]:
                answer += await _body(reader, answer)
        finally:
            writer.close()
        await writer.wait_closed()
        return answer


async def _body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    """The raw body after these headers."""
    lines = (line.partition(b":") for line in head.split(b"\r\n")[1:] if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in lines}
    if b"content-length" in headers:
        return await reader.readexactly(int(headers[b"content-length"]))
    if headers.get(b"transfer-encoding") != b"chunked":
        return b""
    raw = b""
    while True:
        line = await reader.readline()
        piece = await reader.readexactly(int(line.split(b";")[0], 16) + 2)
        raw += line + piece
        if piece == b"\r\n":
            return raw


@asynccontextmanager
async def faulty_proxy(
    target: int, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[FaultyProxy]:
    """A proxy before the server at this port; clients speak TLS with it if there is a context."""
    proxy = FaultyProxy(target)
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(proxy.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
