"""One request in hand, and what a handler works with.

Why:    a request in flight is one small object: no task, no future. It is the place in its connection's queue of
        answers (answers leave in the order of the requests, whenever each becomes ready), the handler's view of
        the caller, and the way to answer.
How:    OPEN --respond, respond_nothing--> ANSWERED;  OPEN --the client goes--> ABANDONED (answers are dropped, and
        `on_abandoned` runs, so that a parked fetch leaves the purgatory).
Owns:   the frame, until it is answered; the answer, until it is written.
Source: design section 5 (a client connection is never a queue of one); kafka-protocol reference 8.4."""

from __future__ import annotations

import random
import struct
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import msgspec

from strandline.base.clock import Clock
from strandline.base.disk import Buffer
from strandline.model.cluster import Cluster
from strandline.model.ids import BrokerId
from strandline.protocol.apis import Api

if TYPE_CHECKING:
    from strandline.broker.controller_host import ControllerHost
    from strandline.broker.coordinator_host import CoordinatorHost
    from strandline.config.broker import BrokerConfig
    from strandline.replication.host import Replication
    from strandline.storage.slices import FileRange

Part = "Buffer | FileRange"
"""A piece of an answer: bytes, or a range of a segment file that goes to the socket by itself."""

API_VERSIONS_KEY = 18

_HEAD = struct.Struct(">ii")
_HEAD_FLEXIBLE = struct.Struct(">iiB")


@dataclass(slots=True)
class Services:
    """What every handler may use; one per broker.

    `cluster` is the committed state as this broker has replayed it: read only."""

    broker_id: BrokerId
    config: BrokerConfig
    clock: Clock
    rng: random.Random
    replication: Replication
    controller: ControllerHost
    coordinator: CoordinatorHost

    @property
    def cluster(self) -> Cluster:
        """Brokers, topics and partitions."""
        return self.controller.cluster


class AnswerSink(Protocol):
    """Where answers go: a connection, or a test."""

    client_host: str

    def on_answered(self, context: RequestContext) -> None:
        """`context` has its answer; it is written when all earlier ones are."""

    def close(self, reason: str) -> None:
        """End the connection; `reason` is one line for the log."""


class RequestContext:
    """See the module. Handlers of cold APIs need only `services`, `api_version`, `client_id`, `client_host`."""

    __slots__ = (
        "api",
        "api_version",
        "client_id",
        "correlation_id",
        "frame",
        "is_abandoned",
        "is_answered",
        "on_abandoned",
        "parts",
        "position",
        "services",
        "sink",
        "size_bytes",
    )

    def __init__(
        self,
        *,
        api: Api,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        services: Services,
        sink: AnswerSink,
        frame: memoryview,
        position: int,
    ) -> None:
        self.api = api
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.services = services
        self.sink = sink
        # The whole frame, writable, this request's own: batches in it may be stamped and kept.
        self.frame: memoryview | None = frame
        # Where the request's body begins in `frame`.
        self.position = position
        self.size_bytes = len(frame)
        # The answer, length prefix and header included; empty when there is none (produce with acks=0).
        self.parts: Sequence[Buffer | FileRange] = ()
        self.is_answered = False
        self.is_abandoned = False
        # Called once when the client is gone before the answer: give up whatever waits for this request.
        self.on_abandoned: Callable[[], None] | None = None

    @property
    def client_host(self) -> str:
        """The client's address, as Kafka's descriptions show it ("/127.0.0.1")."""
        return self.sink.client_host

    @property
    def is_flexible(self) -> bool:
        """Whether this version has tagged fields."""
        return self.api_version >= self.api.flexible_from

    def respond(self, body: Sequence[Buffer | FileRange], body_bytes: int) -> None:
        """Answer with these bytes, the response's body, `body_bytes` long in total. Once; ignored when abandoned."""
        if self.is_abandoned:
            return
        assert not self.is_answered, self.api.name
        if self.is_flexible and self.api.key != API_VERSIONS_KEY:
            head = _HEAD_FLEXIBLE.pack(body_bytes + 5, self.correlation_id, 0)
        else:
            head = _HEAD.pack(body_bytes + 4, self.correlation_id)
        self.parts = (head, *body)
        self._finish()

    def respond_nothing(self) -> None:
        """This request has no answer (produce with acks=0)."""
        if not self.is_abandoned:
            self._finish()

    def abandon(self) -> None:
        """The client is gone."""
        if self.is_answered or self.is_abandoned:
            return
        self.is_abandoned = True
        self.frame = None
        if self.on_abandoned is not None:
            self.on_abandoned()
            self.on_abandoned = None

    def close(self, reason: str) -> None:
        """End the client's connection."""
        self.sink.close(reason)

    def _finish(self) -> None:
        self.is_answered = True
        self.frame = None
        self.on_abandoned = None
        self.sink.on_answered(self)


@dataclass(frozen=True, slots=True)
class Cold:
    """A handler that runs as a task: `async def handle(request: XRequest, context: RequestContext) -> XResponse`.

    An ApiError that it raises becomes the response's `error_code`, where the response has one."""

    handle: Callable[..., Awaitable[msgspec.Struct]]


@dataclass(frozen=True, slots=True)
class Hot:
    """A handler without a task: decodes `context.frame` by itself and answers through `context.respond`, now or later."""

    start: Callable[[RequestContext], None]


Handler = Cold | Hot
