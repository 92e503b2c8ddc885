"""Health and metrics of a machine over HTTP, if its file names a port.

How:    /healthz     200 while the supervisor runs; a line for each broker
        /readyz      200 while all brokers serve Kafka clients; the same lines
        /metrics     the metrics of all brokers, each series with the label `broker`
        /v1/machine  the processes, as JSON
        A broker's own pages are on its own port.
Owns:   the socket, the server.
Source: decision 0071; docs/operating/cores.md."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus

import msgspec

from strandline.admin.http_server import Answer, HttpServer, Page
from strandline.admin.last_page import LastPage
from strandline.admin.machine_metrics import MergedMetrics, ProcessFigures
from strandline.base.clock import Clock
from strandline.base.json_value import Json
from strandline.broker.server.listening import claim_port
from strandline.cli.machine.broker_process import NoAnswerError
from strandline.cli.machine.gate import MachineGate
from strandline.cli.machine.supervisor import ProcessState, Supervised, Supervisor
from strandline.cli.machine.wire import Ready, Scrape
from strandline.config.addresses import format_address
from strandline.config.broker import BrokerConfig
from strandline.config.other_ports import MetricsSection
from strandline.model.cluster import Address
from strandline.security.http_tokens import HttpTokens
from strandline.security.tls import ServerTls

PORT_KEY = "[metrics] port"
SCRAPE_TIMEOUT_S = 10.0

_log = logging.getLogger("strandline.machine")


@dataclass(frozen=True, slots=True)
class Condition:
    """What a broker's process does now. `word`: serves, starts, does not answer, has ended, is
    unregistered."""

    one: Supervised
    word: str

    @property
    def serves(self) -> bool:
        """Whether Kafka clients are served."""
        return self.word == SERVES


SERVES, STARTS, SILENT, DOWN = "serves", "starts", "does not answer", "has ended"
FORGOTTEN = "is unregistered"


class MachineEndpoint:
    """See the module. All of it does nothing where no port is configured. `section`: of the
    machine's file; `brokers`: in the supervisor's order; `host`: the label."""

    def __init__(
        self,
        section: MetricsSection,
        brokers: Sequence[BrokerConfig],
        supervisor: Supervisor,
        *,
        clock: Clock,
        host: str,
    ) -> None:
        self._section = section
        self._brokers = brokers
        self._supervisor = supervisor
        self._clock = clock
        self._host = host
        self._last = LastPage(clock)
        self._server: HttpServer | None = None

    async def start(self, tls: ServerTls | None, tokens: HttpTokens | None) -> None:
        """Answer from now on. Raises OperatorError if the port is not available."""
        section = self._section
        if not section.port:
            return
        claimed = await claim_port(section.host, section.port, key=PORT_KEY)
        pages: dict[str, Page] = {
            "/healthz": self._health,
            "/readyz": self._readiness,
            "/metrics": self._metrics,
            "/v1/machine": self._machine,
        }
        gate = MachineGate(section, tokens, self._supervisor)
        self._server = HttpServer(pages, gate=gate.refuse)
        await self._server.start(claimed, tls=tls)
        address = format_address(Address(section.host, section.port))
        scheme = "http" if tls is None else "https"
        _log.info("metrics of the machine: %s://%s/metrics", scheme, address)

    def stop(self) -> None:
        """Stop answering."""
        if self._server is not None:
            self._server.stop()

    # ---- pages -----------------------------------------------------------------------------------

    async def _health(self) -> Answer:
        return Answer([self._text(await self._conditions())])

    async def _readiness(self) -> Answer:
        found = await self._conditions()
        is_ready = all(one.serves for one in found)
        status = HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE
        return Answer([self._text(found)], status)

    async def _metrics(self) -> Answer:
        return await self._last.fresh("metrics", self._scrape)

    async def _machine(self) -> Answer:
        now_ms = self._clock.monotonic_ms()
        brokers: list[Json] = []
        for found, config in zip(await self._conditions(), self._brokers, strict=True):
            one = found.one
            is_paused = one.state is ProcessState.PAUSED
            brokers.append(
                {
                    "id": one.broker,
                    "condition": found.word,
                    "pid": None if one.process is None else one.process.pid,
                    "starts": one.starts,
                    "last_end": one.last_end or None,
                    "next_start_ms": max(0, one.next_start_ms - now_ms) if is_paused else None,
                    "kafka": format_address(config.kafka_advertised),
                    "http_port": config.metrics.port,
                    "data_directory": config.broker.data_directory,
                }
            )
        told: Json = {"host": self._host, "brokers": brokers}
        return Answer([msgspec.json.encode(told), b"\n"], content_type="application/json")

    # ---- inside ----------------------------------------------------------------------------------

    def _text(self, found: list[Condition]) -> bytes:
        serving = sum(one.serves for one in found)
        lines = [f"{serving} of {len(found)} brokers serve"]
        lines += [f"broker {each.one.broker} {each.word}" for each in found]
        return ("\n".join(lines) + "\n").encode()

    async def _conditions(self) -> list[Condition]:
        return list(await asyncio.gather(*map(self._condition, self._supervisor.processes)))

    async def _condition(self, one: Supervised) -> Condition:
        process = one.process
        if process is None:
            is_forgotten = one.state is ProcessState.UNREGISTERED
            return Condition(one, FORGOTTEN if is_forgotten else DOWN)
        try:
            told = await process.ask(Ready())
        except NoAnswerError:
            if one.process is not process:
                return Condition(one, DOWN)
            return Condition(one, SILENT if process.has_answered else STARTS)
        return Condition(one, SERVES if told.is_ready else STARTS)

    async def _scrape(self) -> Answer:
        # Megabytes, only where they are used.
        from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

        merged = MergedMetrics()
        bodies = await asyncio.gather(*map(self._body, self._supervisor.processes))
        for one, body in zip(self._supervisor.processes, bodies, strict=True):
            await merged.add(one.broker, body)
            merged.add_process(one.broker, ProcessFigures(is_up=bool(body), starts=one.starts))
        return Answer(merged.blocks(), content_type=CONTENT_TYPE_PLAIN_0_0_4)

    async def _body(self, one: Supervised) -> bytes:
        """A broker's metrics; empty if it does not answer."""
        try:
            if one.process is not None:
                return (await one.process.ask(Scrape(), timeout_s=SCRAPE_TIMEOUT_S)).body
        except NoAnswerError:
            _log.warning("broker %d does not tell its metrics", one.broker)
        return b""
