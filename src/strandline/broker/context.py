"""One request in hand, and what a handler works with.

Why:    a request in flight is one small object: no task, no future. It is its place in the
        connection's queue of answers (answers leave in the order of the requests, whenever each
        becomes ready), the handler's view of the client, and the way to answer.
How:    OPEN --respond, respond_nothing--> ANSWERED;  OPEN --the client goes--> ABANDONED (answers
        are dropped, and `on_abandoned` runs, so that a parked fetch leaves the purgatory).
Owns:   the frame, until it is answered; the answer, until it is written.
Source: design section 5 (a client connection is never a queue of one); kafka-protocol reference
        8.4."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import ParamSpec, Protocol, TypeVar

import msgspec

from strandline.base.clock import Clock
from strandline.base.errors import ApiError
from strandline.broker.access.authorisation import Authorisation
from strandline.broker.authentication.logins import Logins
from strandline.broker.coordinators.controller_host import ControllerHost
from strandline.broker.coordinators.coordinator_host import CoordinatorHost
from strandline.broker.coordinators.producer_ids import ProducerIds
from strandline.broker.coordinators.topic_configs import TopicConfigs
from strandline.broker.fetch.nearest_replica import SentOn
from strandline.broker.fetch.remote_log import RemoteLog
from strandline.broker.fetch.sessions import FetchSessions
from strandline.broker.leadership.failback import Failback
from strandline.broker.leadership.leader_ranks import LeaderRanks
from strandline.broker.leadership.new_topics import NewTopics
from strandline.broker.leadership.writers import Writers
from strandline.broker.operations.balancing import Balancing
from strandline.broker.operations.certificate_watch import CertificateWatch
from strandline.broker.operations.copy_budget import CopyBudget
from strandline.broker.operations.digesting import Digesting
from strandline.broker.operations.isolation import Isolation
from strandline.broker.quotas.client_quotas import ClientLimits, ClientQuotas
from strandline.broker.read_replicas.hosting import ReadReplicas
from strandline.broker.server.batch_validation import BatchValidation
from strandline.broker.server.purgatory import Deadlines
from strandline.broker.tier_exports.exporting import Exporting
from strandline.broker.tiering.tiering import Tiering
from strandline.config.broker import BrokerConfig
from strandline.controller.commands import AllocateProducerIds, Answer, Command
from strandline.controller.commands import ProducerIds as ProducerIdBlock
from strandline.model.access import CLUSTER_NAME, Kind, Operation
from strandline.model.cluster import Cluster
from strandline.model.ids import BrokerId
from strandline.protocol.apis import API_KEYS, Api
from strandline.protocol.errors import Error
from strandline.protocol.headers import frame_response
from strandline.protocol.primitives import Part
from strandline.replication.host.replication import Replication
from strandline.security.acls.authoriser import ALLOWED, Verdict
from strandline.security.audit.audit_log import AuditLog
from strandline.security.audit.event import AuditEvent, EventKind, groups_detail
from strandline.security.sasl.mechanism import Mechanism
from strandline.security.session import Session
from strandline.tiered.objects.buckets import Buckets

API_VERSIONS_KEY = API_KEYS["ApiVersions"]

A = TypeVar("A", bound=Answer)
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(slots=True)
class Services:
    """What handlers may use; one per broker."""

    broker_id: BrokerId
    config: BrokerConfig
    clock: Clock
    rng: random.Random
    replication: Replication
    controller: ControllerHost
    coordinator: CoordinatorHost
    # {API key: (lowest, highest version advertised)}; set by the router.
    offered_apis: dict[int, tuple[int, int]] = field(default_factory=dict)
    # Handles a request whose handler failed; set by the router, called by `fail`.
    on_failure: Callable[[RequestContext], None] | None = None
    # Counts full answers: the partition that a fetch begins with.
    fetch_turn: int = 0
    # Bytes of records in the answers to fetches so far.
    fetched_bytes: int = 0
    topic_configs: TopicConfigs = field(default_factory=TopicConfigs)
    leader_ranks: LeaderRanks = field(default_factory=LeaderRanks)
    writers: Writers = field(default_factory=Writers)
    sent_on: SentOn = field(default_factory=SentOn)
    validation: BatchValidation = field(default_factory=BatchValidation)
    # Brokers, topics and partitions: the committed state as replayed here. Read only, and always
    # the same object.
    cluster: Cluster = field(init=False)
    deadlines: Deadlines = field(init=False)
    new_topics: NewTopics = field(init=False)
    fetch_sessions: FetchSessions = field(init=False)
    producer_ids: ProducerIds = field(init=False)
    digesting: Digesting = field(init=False)
    # Set by the broker.
    buckets: Buckets = field(init=False)
    read_replicas: ReadReplicas = field(init=False)
    exporting: Exporting = field(init=False)
    balancing: Balancing = field(init=False)
    copy_budget: CopyBudget = field(init=False)
    failback: Failback = field(init=False)
    isolation: Isolation = field(init=False)
    access: Authorisation = field(init=False)
    quotas: ClientQuotas = field(init=False)
    logins: Logins = field(init=False)
    # Records that are in buckets only; None without `[tiered] buckets`.
    remote_log: RemoteLog | None = None
    # None but in a real process.
    certificates: CertificateWatch | None = None
    # None without `[access] audit_file`.
    audit: AuditLog | None = None
    # None if the broker has no buckets.
    tiering: Tiering | None = None

    def __post_init__(self) -> None:
        self.cluster = self.controller.cluster
        self.deadlines = Deadlines(self.clock)
        self.logins = Logins(self.config, self.cluster, wall_ms=self.clock.wall_ms)
        self.access = Authorisation(self.config.access, self.cluster, broker_id=self.broker_id)
        self.quotas = ClientQuotas(self.cluster, self.clock)
        self.new_topics = NewTopics(self.clock)
        self.fetch_sessions = FetchSessions(
            self.clock, self.rng, count_max=self.config.limits.fetch_session_count_max
        )
        self.digesting = Digesting(requests_max=self.config.storage.digest_requests_max)
        self.producer_ids = ProducerIds(self._allocate_producer_ids)
        self.isolation = Isolation(self.clock, is_enabled=self.config.drills.enable)

    async def obtain(self, command: Command, wanted: type[A]) -> A:
        """Have the controller carry out a command; its answer, of type `wanted`. Raises ApiError
        as `submit` does, and if the command is refused."""
        answer = await self.controller.submit(command)
        if not isinstance(answer, wanted):
            code = answer.error_code or Error.UNKNOWN_SERVER_ERROR
            raise ApiError(code, getattr(answer, "message", ""))
        return answer

    async def _allocate_producer_ids(self) -> tuple[int, int]:
        command = AllocateProducerIds(self.broker_id)
        answer = await self.obtain(command, ProducerIdBlock)
        return answer.first, answer.count


class AnswerSink(Protocol):
    """Where answers go: a connection, or a test."""

    client_host: str
    session: Session
    """The client's session; each authentication replaces it."""
    number: int
    """The number of the connection within the process: later connections have larger ones."""

    exchange: Mechanism | None
    """The login under way."""
    is_logging_in: bool
    """Whether a step of a login is in work, or has failed: the next one is refused."""

    def authenticate(self, session: Session) -> None:
        """The client has authenticated: the connection has this session from now on."""

    def on_answered(self, context: RequestContext) -> None:
        """`context` has its answer, which is written once all earlier ones are."""

    def on_unblocked(self) -> None:
        """A request holds up those behind it no longer."""

    def mute(self, duration_ms: int) -> None:
        """Take no further request for so long: the client is over a quota."""

    def close(self, reason: str) -> None:
        """End the connection; `reason` is one line for the log."""


class Blocker(Protocol):
    """A component that has accepted a request and cannot process it yet."""

    @property
    def is_holding(self) -> bool:
        """Whether further requests would have to wait as well."""


class RequestContext(msgspec.Struct, eq=False):
    """See the module. Cold handlers need `services`, `api_version`, `client_id`, `client_host`.

    A Struct, because one is made for every request and it is fast to make."""

    api: Api
    api_version: int
    correlation_id: int
    client_id: str | None
    services: Services
    sink: AnswerSink
    # The whole frame, writable, this request's own: batches in it may be stamped and kept.
    frame: memoryview | None
    # Where the request's body begins in `frame`.
    position: int
    # How long the frame was.
    size_bytes: int
    # The answer, length and header included; empty when there is none (produce, acks=0).
    parts: Sequence[Part] = ()
    is_answered: bool = False
    is_abandoned: bool = False
    # While this holds the request, and it is not answered, its connection reads nothing more.
    blocked_by: Blocker | None = None
    # The groups of the user by whose rules parts of the request were allowed.
    groups: frozenset[str] = frozenset()
    # The client's quotas; None if it has none.
    limits: ClientLimits | None = None
    # How long the answer throttles its client.
    throttle_ms: int = 0
    # Whether a fetch comes from another region; known only if a quota asks for it.
    is_remote: bool = False
    # Called once if the client goes before the answer: stop waiting.
    on_abandoned: Callable[[], None] | None = None

    @property
    def client_host(self) -> str:
        """The client's address, as Kafka's descriptions show it ("/127.0.0.1")."""
        return self.sink.client_host

    @property
    def session(self) -> Session:
        """The client's present session."""
        return self.sink.session

    def may(self, operation: Operation, kind: Kind, name: str) -> bool:
        """Whether the client may do the operation with the resource; the audit log has refusals."""
        access = self.services.access
        if not access.is_enforced:
            return True
        verdict = access.judge(self.sink.session, operation, kind, name)
        if verdict is ALLOWED or self._note(verdict):
            return True
        if self.services.audit is not None:
            self.audit(
                EventKind.REFUSAL,
                is_allowed=False,
                operation=operation.name,
                resource_type=kind.name,
                resource_name=name,
                groups=verdict.groups,
            )
        return False

    def sees(self, operation: Operation, kind: Kind, name: str) -> bool:
        """The same for a resource that the client has not asked for: one of a list, or one of two
        rights that will do. The audit log has no line of it."""
        access = self.services.access
        return not access.is_enforced or self._note(
            access.judge(self.sink.session, operation, kind, name)
        )

    def _note(self, verdict: Verdict) -> bool:
        """Keep the groups by whose rules something is allowed; whether it is."""
        if verdict.groups and verdict.is_allowed:
            self.groups = self.groups.union(verdict.groups)
        return verdict.is_allowed

    def may_describe(self, topic: str) -> bool:
        """Whether the client may see the topic's replicas: by a right to the topic, or to the
        cluster."""
        return self.sees(Operation.DESCRIBE, Kind.CLUSTER, CLUSTER_NAME) or self.sees(
            Operation.DESCRIBE, Kind.TOPIC, topic
        )

    def audit(
        self,
        kind: EventKind,
        *,
        is_allowed: bool,
        principal: str = "",
        mechanism: str = "",
        operation: str = "",
        resource_type: str = "",
        resource_name: str = "",
        error: str = "",
        details: tuple[tuple[str, str], ...] = (),
        groups: Collection[str] = (),
    ) -> None:
        """Add an event of this request to the audit log, if there is one. `principal`: another one
        than the session's; `groups`: those whose rules decided."""
        log, session = self.services.audit, self.session
        if log is not None:
            log.add(
                AuditEvent(
                    kind=kind,
                    is_allowed=is_allowed,
                    principal=principal or str(session.principal),
                    listener=session.listener,
                    address=session.host,
                    client_id=self.client_id or "",
                    mechanism=mechanism,
                    api=self.api.name,
                    operation=operation,
                    resource_type=resource_type,
                    resource_name=resource_name,
                    error=error,
                    details=(*details, *groups_detail(groups)),
                )
            )

    def timed(self, work: Callable[P, R]) -> Callable[P, R]:
        """`work` whose time on the loop counts for the client's quota, if it has one."""
        limits = self.limits
        if limits is None:
            return work

        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            begin_ns = limits.now_ns()
            try:
                return work(*args, **kwargs)
            finally:
                limits.note_time(begin_ns)

        return run

    def respond(self, body: Sequence[Part]) -> None:
        """Answer with the parts of an encoded response. Once; ignored when the client is gone."""
        if self.is_abandoned:
            return
        assert not self.is_answered, self.api.name
        self.parts = frame_response(
            self.api.key, self.api_version, correlation_id=self.correlation_id, parts=body
        )
        self._finish()

    def respond_nothing(self) -> None:
        """Finish a request that has no answer (produce with acks=0)."""
        if not self.is_abandoned:
            self._finish()

    def abandon(self) -> None:
        """The client is gone: drop the request."""
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

    def fail(self) -> None:
        """Call this in an `except` clause: log the handler's error and answer as well as
        possible."""
        assert self.services.on_failure is not None
        self.services.on_failure(self)
        self.is_abandoned = True  # Work that is still under way for this request answers nothing.

    def _finish(self) -> None:
        self.is_answered = True
        self.frame = None
        self.on_abandoned = None
        self.sink.on_answered(self)
