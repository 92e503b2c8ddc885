"""The HTTP endpoint of one broker: metrics, health and console, if its configuration names a port.

How:    /          the console: outages and brokers; /topics, /topics/NAME (`console`)
        /metrics   the scrape
        /healthz   200 while the broker's loop runs
        /readyz    200 while Kafka clients are served, 503 before that and at the end
        /v1/...    the same as JSON (`api`)
        The endpoint claims its port before the broker joins, and serves once there is a broker.
        `http_access` decides which client may see what.
Owns:   the socket, the server.
Source: decision 0023; docs/operating/monitoring.md."""

import logging
import socket
from collections.abc import Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING

from strandline.broker.broker import Broker
from strandline.broker.server.listening import claim_port
from strandline.config.addresses import format_address
from strandline.config.other_ports import MetricsSection
from strandline.model.cluster import Address
from strandline.security.http_tokens import HttpTokens
from strandline.security.tls import ServerTls

if TYPE_CHECKING:
    from strandline.admin.exposition import Exposition
    from strandline.admin.http_access import HttpAccess
    from strandline.admin.http_server import Answer, Asker, Folder, HttpServer, Page

PORT_KEY = "[metrics] port"

_log = logging.getLogger("strandline.admin")


class MetricsEndpoint:
    """See the module. All of it does nothing where no port is configured. `tokens`: those of
    `tokens_file`; None without."""

    def __init__(
        self,
        config: MetricsSection,
        tls: ServerTls | None = None,
        tokens: HttpTokens | None = None,
    ) -> None:
        self._config = config
        self._tls = tls
        self._tokens = tokens
        self._claimed: socket.socket | None = None
        self.is_ready = False
        """Whether Kafka clients are served."""
        self._exposition: Exposition | None = None
        self._access: HttpAccess | None = None
        self._server: HttpServer | None = None

    async def claim(self) -> None:
        """Have the address. Raises OperatorError."""
        config = self._config
        if config.port:
            self._claimed = await claim_port(config.host, config.port, key=PORT_KEY)

    async def serve(self, broker: Broker) -> None:
        """Answer for this broker, which need not have started. Raises OSError."""
        if self._claimed is None:
            return
        # Six megabytes, only where they are used.
        from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

        from strandline.admin.api import Api
        from strandline.admin.console.pages import Console
        from strandline.admin.exposition import Exposition
        from strandline.admin.http_access import HttpAccess
        from strandline.admin.http_server import Answer, HttpServer
        from strandline.admin.last_page import LastPage

        exposition = self._exposition = Exposition(broker)

        async def metrics() -> Answer:
            return Answer(await exposition.blocks(), content_type=CONTENT_TYPE_PLAIN_0_0_4)

        async def health() -> Answer:
            return Answer([b"ok\n"])

        async def readiness() -> Answer:
            if exposition.is_ready:
                return Answer([b"ready\n"])
            return Answer([b"not ready\n"], HTTPStatus.SERVICE_UNAVAILABLE)

        last = LastPage(broker.services.clock)
        api = Api(broker, last, is_ready=lambda: exposition.is_ready)
        console = Console(broker, last, is_ready=lambda: exposition.is_ready)
        pages: dict[str, Page] = {
            "/": console.index,
            "/topics": console.topics,
            "/metrics": metrics,
            "/healthz": health,
            "/readyz": readiness,
            "/v1/brokers": api.brokers,
            "/v1/topics": api.topics,
            "/v1/outages": api.outages,
        }
        access = self._access = HttpAccess(
            self._config, self._tokens, broker, is_ready=lambda: exposition.is_ready
        )
        folders: dict[str, Folder] = {"/v1/topics": api.topic, "/topics": console.topic}
        self._server = HttpServer(pages, folders, gate=access.refuse)
        claimed, self._claimed = self._claimed, None
        await self._server.start(claimed, tls=self._tls)
        address = format_address(Address(self._config.host, self._config.port))
        scheme = "http" if self._tls is None else "https"
        _log.info("metrics: %s://%s/metrics; console: /", scheme, address)

    async def scrape(self) -> Sequence[bytes]:
        """The text of `/metrics` in parts, for the supervisor of this process; empty if no port is
        configured, or not yet there."""
        return () if self._exposition is None else await self._exposition.blocks()

    async def refuse(self, asker: "Asker", path: str) -> "Answer | None":
        """The answer to a client of the supervisor's port that may not see a path; None if it
        may."""
        from strandline.admin.http_server import Answer

        if self._access is None:
            return Answer([b"not ready\n"], HTTPStatus.SERVICE_UNAVAILABLE)
        return await self._access.refuse(asker, path)

    def set_ready(self, *, is_ready: bool) -> None:
        """Whether Kafka clients are served."""
        self.is_ready = is_ready
        if self._exposition is not None:
            self._exposition.is_ready = is_ready

    def stop(self) -> None:
        """Stop answering."""
        if self._server is not None:
            self._server.stop()
        if self._claimed is not None:
            self._claimed.close()
