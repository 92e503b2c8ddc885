"""One broker in virtual time that enforces rules: the other side of the recorded tables."""

from dataclasses import replace

from differential.access.subjects import ADMIN, ANONYMOUS, HERE, SUPER_USERS
from tests.broker.broker_world import Sink
from tests.broker.cluster_world import LIMIT_MS, ClusterWorld

from strandline.base.errors import ProtocolError
from strandline.config.access_section import AccessSection
from strandline.config.broker import BrokerConfig
from strandline.config.listener_section import SASL_PLAINTEXT, ListenerEntry
from strandline.model.cluster import ONLY_LISTENER
from strandline.protocol.apis import APIS
from strandline.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from strandline.protocol.table import Message
from strandline.security.session import Principal, Session
from strandline.simulation.world.scheduler import US_PER_MS

BROKER = 1
BROKER_CONFIGS, SET = 4, 0
PAUSE_MS = 50


class AccessWorld(ClusterWorld):
    """See the module."""

    def __init__(
        self,
        *,
        allow_without_rules: bool = False,
        creates_topics: bool = False,
        has_logins: bool = False,
    ) -> None:
        self.has_logins = has_logins
        super().__init__(
            (BROKER,),
            voters=(BROKER,),
            access=AccessSection(
                enforce_rules=True,
                super_users=tuple(f"User:{one}" for one in SUPER_USERS),
                allow_without_rules=allow_without_rules,
            ),
        )
        self.until_started()
        key = AlterableConfig("auto.create.topics.enable", SET, str(creates_topics).lower())
        whole = AlterConfigsResource(BROKER_CONFIGS, "", [key])
        answer = self.ask_as(session_of(ADMIN), IncrementalAlterConfigsRequest([whole]), 1)
        assert isinstance(answer, IncrementalAlterConfigsResponse)
        assert not answer.responses[0].error_code, answer

    def adjust(self, config: BrokerConfig) -> BrokerConfig:
        """See `ClusterWorld`."""
        if not self.has_logins:
            return config
        listener = ListenerEntry(
            name=ONLY_LISTENER,
            bind=f"{HERE}:9092",
            protocol=SASL_PLAINTEXT,
            sasl_mechanisms=("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
        )
        return replace(config, listener_entries=(listener,))

    def ask_as(self, session: Session, request: Message, version: int) -> Message | None:
        """The answer; None if the broker hangs up."""
        sink = Sink()
        sink.session = session
        return self.ask_on(sink, request, version)

    def ask_on(self, sink: Sink, request: Message, version: int) -> Message | None:
        """The same on a connection."""
        if sink.closed:
            return None
        try:
            pending = self.send(BROKER, request, version, sink=sink)
        except ProtocolError:
            sink.close("")
            return None
        limit_us = self.scheduler.now_us + LIMIT_MS * US_PER_MS
        assert self.scheduler.run_until_true(
            lambda: pending.is_answered or bool(pending.sink.closed), limit_us=limit_us
        ), "no answer"
        if not pending.is_answered:
            return None
        return pending.answer(APIS[request.API_KEY].response)


class AccessTarget:
    """The world, as `differential.access.walk` asks it."""

    def __init__(self, world: AccessWorld) -> None:
        self.world = world

    def ask(self, user: str, request: Message, version: int) -> Message | None:
        """See `Target`."""
        return self.world.ask_as(session_of(user), request, version)

    def pause(self) -> None:
        """See `Target`."""
        self.world.advance(PAUSE_MS)

    def connect(self) -> "AccessLine":
        """A connection that has not logged in."""
        return AccessLine(self.world)


class LoginSink(Sink):
    """A connection whose client logs in."""

    def __init__(self) -> None:
        super().__init__()
        self.session = Session(host=HERE, is_authenticated=False)

    def authenticate(self, session: Session) -> None:
        """See `AnswerSink`."""
        self.session = session


class AccessLine:
    """A connection, as `differential.access.login_script` asks it."""

    def __init__(self, world: AccessWorld) -> None:
        self._world = world
        self._sink = LoginSink()

    def ask(self, request: Message, version: int) -> Message | None:
        """See `Line`."""
        return self._world.ask_on(self._sink, request, version)


def session_of(user: str) -> Session:
    """The session of a client that has logged in."""
    session = Session(host=HERE, mechanism="PLAIN", principal=Principal.user(user))
    return replace(session, mechanism="") if user == ANONYMOUS else session
