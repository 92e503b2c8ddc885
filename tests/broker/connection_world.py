"""A server on a real port, a router whose answers the test controls, and raw clients."""

import asyncio
import os
import ssl
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvloop

from strandline.base.errors import ProtocolError
from strandline.broker.context import AnswerSink, RequestContext
from strandline.broker.server.limits import MIB, ServerLimits
from strandline.broker.server.listening import ListenerTerms
from strandline.broker.server.server import Server
from strandline.network.loop_clock import LoopClock
from strandline.protocol.apis import APIS
from strandline.replication.memory_budget import MemoryBudget
from strandline.security.session import Session

DEADLINE_S = 60
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


class FullPartition:
    """A partition whose followers take nothing."""

    is_holding = True


class Desk:
    """A router whose answers the test controls. The API key says what becomes of a request."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.blocked: list[RequestContext] = []
        # Who holds the requests that come now.
        self.blocker: FullPartition | None = None
        self.answers: dict[bytes, list[object]] = {}
        # Who sent each request.
        self.sessions: list[Session] = []
        self.arrived = asyncio.Event()

    def route(self, frame: memoryview, sink: AnswerSink) -> RequestContext:
        context = self._open(frame, sink)
        self._run(context)
        return context

    def _open(self, frame: memoryview, sink: AnswerSink) -> RequestContext:
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

    def _run(self, context: RequestContext) -> None:
        assert context.frame is not None
        body = bytes(context.frame[8:])
        self.seen.append(body)
        self.sessions.append(context.session)
        self.arrived.set()
        if context.api.key in (HELD, FETCH_HELD, PRODUCE):
            self.blocked.append(context)
            context.blocked_by = self.blocker
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
        except (ConnectionError, ssl.SSLError):
            pass


class WatchedServer(Server):
    """A server that remembers how many bytes were in work at the most."""

    inflight_bytes_peak = 0

    def count_inflight(self, change_bytes: int) -> None:
        super().count_inflight(change_bytes)
        self.inflight_bytes_peak = max(self.inflight_bytes_peak, self.inflight_bytes)


class World:
    """A server with its desk, and clients."""

    def __init__(
        self, limits: ServerLimits, memory_bytes: int, tls: ssl.SSLContext | None = None
    ) -> None:
        self._tls = tls
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
        client = Client(
            *await asyncio.open_connection("127.0.0.1", self.server.port, ssl=self._tls)
        )
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
    terms: ListenerTerms | None = None,
    tls: ssl.SSLContext | None = None,
) -> None:
    """`terms`: of the server's listener; `tls`: of its clients."""

    async def main() -> None:
        world = World(limits or ServerLimits(), memory_bytes, tls)
        await world.server.start("127.0.0.1", 0, terms=terms)
        try:
            await scenario(world)
        finally:
            await world.stop()
        assert world.server.inflight_bytes == 0
        assert world.server.partial_bytes == 0
        assert world.server.muted_count == 0
        assert world.server.connection_count == 0

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())


LOOPS = pytest.mark.parametrize(
    "loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)
