"""The entry point of a broker's process under a supervisor, and its end of the link.

How:    the process reads its order, derives its configuration, and then is an ordinary broker that
        also answers the supervisor. The end of the link ends it, as SIGTERM does: if the supervisor
        is killed, no broker is left behind.
Owns:   the socket, the tasks that answer.
Source: decision 0071."""

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from strandline.admin.endpoint import MetricsEndpoint
from strandline.admin.http_server import Asker
from strandline.base.errors import UnregisteredError
from strandline.cli.machine.directory import with_disk_sharers
from strandline.cli.machine.wire import (
    ENDED,
    MESSAGE_BYTES_MAX,
    Ask,
    Judge,
    Order,
    Question,
    Ready,
    Scrape,
    Told,
    encode,
    read_message,
    receive,
)
from strandline.cli.output import print_error
from strandline.cli.server.failures import tell_failure
from strandline.cli.server.file_rights import take_rights_from_others
from strandline.cli.server.logs import configure_logging
from strandline.cli.server.serve import run_in_loop
from strandline.config.cores import derive_brokers
from strandline.config.load import load_broker_config
from strandline.model.cluster import Labels
from strandline.placement.topology.labels import MergedLabels


class SupervisorLink:
    """See the module."""

    def __init__(self, sock: socket.socket, *, is_restart: bool = False) -> None:
        self.is_restart = is_restart
        self.is_unregistered = False
        """Whether the broker ends because the cluster has forgotten it."""
        self._sock = sock
        self._listening: asyncio.Task[None] | None = None
        self._answering: set[asyncio.Task[None]] = set()

    def start(self, endpoint: MetricsEndpoint, end: Callable[[], None]) -> None:
        """Answer for the broker of this endpoint; call `end` once the supervisor is gone or says
        so."""
        loop = asyncio.get_running_loop()
        self._listening = loop.create_task(self._listen(endpoint, end))

    def stop(self) -> None:
        """Answer no more."""
        for task in (self._listening, *self._answering):
            if task is not None:
                task.cancel()

    def tell_end(self, reason: str) -> None:
        """Why the broker ends; called when its loop has ended."""
        with suppress(OSError):
            self._sock.setblocking(True)
            told = Told(number=ENDED, body=reason.encode(), is_unregistered=self.is_unregistered)
            self._sock.sendall(encode(told))

    async def _listen(self, endpoint: MetricsEndpoint, end: Callable[[], None]) -> None:
        # A copy: the loop closes its own, and the last words come after that.
        reader, writer = await asyncio.open_unix_connection(sock=self._sock.dup())
        while (ask := await read_message(reader, Ask)) is not None:
            task = asyncio.get_running_loop().create_task(self._answer(endpoint, ask, writer))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
        end()

    async def _answer(
        self, endpoint: MetricsEndpoint, ask: Ask, writer: asyncio.StreamWriter
    ) -> None:
        told = await answer(endpoint, ask.number, ask.question)
        with suppress(OSError):
            writer.write(encode(told))
            await writer.drain()


async def answer(endpoint: MetricsEndpoint, number: int, question: Question) -> Told:
    """What a broker says to a question."""
    match question:
        case Ready():
            return Told(number=number, is_ready=endpoint.is_ready)
        case Scrape():
            body = b"".join(await endpoint.scrape())
            # Without a body: the supervisor says that these metrics are missing.
            body = body if len(body) < MESSAGE_BYTES_MAX else b""
            return Told(number=number, is_ready=endpoint.is_ready, body=body)
        case Judge(host, authorization, path):
            asker = Asker(host=host, has_certificate=False, authorization=authorization)
            refused = await endpoint.refuse(asker, path)
            if refused is None:
                return Told(number=number, is_allowed=True)
            return Told(
                number=number,
                body=b"".join(refused.body),
                status=refused.status.value,
                headers=tuple(refused.headers),
            )


def run_ordered(order: Order, sock: socket.socket) -> int:
    """Be the broker of an order until it ends; returns the exit code."""
    link = SupervisorLink(sock, is_restart=order.is_restart)

    def fail(reason: str) -> None:
        print_error(reason)
        link.tell_end(reason)

    with tell_failure(fail) as result:
        whole = load_broker_config(order.text, file=order.file, environment=os.environ)
        machine = derive_brokers(whole, order.cores)
        config = with_disk_sharers(machine[order.index], machine)
        with suppress(OSError):  # What `top` and `ps -o comm` show.
            Path("/proc/self/comm").write_text(f"strandline-{config.broker_id}")
        configure_logging(config)
        if order.cpu is not None:
            os.sched_setaffinity(0, {order.cpu})
        try:
            run_in_loop(config, MergedLabels(Labels.of(order.labels), order.origin), link)
        except UnregisteredError:
            link.is_unregistered = True
            raise
    return result.code


def main(arguments: Sequence[str]) -> int:
    """`arguments`: the number of the inherited socket."""
    with socket.socket(fileno=int(arguments[0])) as sock:
        sock.set_inheritable(False)
        try:
            order = receive(sock, Order)
        except EOFError:
            return 0  # The supervisor has gone before it said anything.
        take_rights_from_others()
        return run_ordered(order, sock)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
