"""A login that ends: what a client may still do, and as whom it may log in again (KIP-368)."""

from dataclasses import replace

import pytest
from tests.broker.broker_world import BrokerWorld, Sink

from strandline.base.errors import ProtocolError
from strandline.protocol.errors import Error
from strandline.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from strandline.protocol.messages.metadata import MetadataRequest, MetadataResponse
from strandline.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from strandline.protocol.messages.sasl_handshake import SaslHandshakeRequest
from strandline.security.session import Principal, Session

ALICE = Session(principal=Principal.user("alice"), groups=frozenset({"a"}), mechanism="OAUTHBEARER")
LIFETIME_MS = 1_000


class Authenticating(Sink):
    """A connection that takes other sessions."""

    def authenticate(self, session: Session) -> None:
        self.session = session


class Exchange:
    """A mechanism whose first message logs a user in."""

    name = "OAUTHBEARER"
    known_user = ""
    is_refused = is_slow = False
    lifetime_ms: int | None = LIFETIME_MS

    def __init__(self, user: str, groups: frozenset[str]) -> None:
        self.principal: Principal | None = None
        self._user, self.groups = Principal.user(user), groups

    def step(self, token: bytes) -> bytes:
        self.principal = self._user
        return b""


def log_in(
    world: BrokerWorld, sink: Authenticating, user: str, *groups: str
) -> SaslAuthenticateResponse:
    sink.exchange = Exchange(user, frozenset(groups))
    pending = world.send(SaslAuthenticateRequest(b"x"), 2, sink=sink)
    world.advance(200)
    return pending.answer(SaslAuthenticateResponse)


@pytest.fixture
def sink(world: BrokerWorld) -> Authenticating:
    made = Authenticating()
    ends_at_ms = world.services.clock.monotonic_ms() + LIFETIME_MS
    made.session = replace(ALICE, ends_at_ms=ends_at_ms)
    return made


def test_after_its_end_only_the_requests_of_a_login_are_taken(
    world: BrokerWorld, sink: Authenticating
) -> None:
    metadata = MetadataRequest(topics=[])
    pending = world.send(metadata, 12, sink=sink)
    world.advance(LIFETIME_MS)
    assert pending.answer(MetadataResponse).brokers
    with pytest.raises(ProtocolError, match="Metadata of User:alice came after the end of its lo"):
        world.send(metadata, 12, sink=sink)
    versions = world.send(ApiVersionsRequest("tester", "1"), 3, sink=sink)
    assert versions.answer(ApiVersionsResponse).error_code == 0
    world.send(SaslHandshakeRequest("OAUTHBEARER"), 1, sink=sink)
    assert log_in(world, sink, "alice").session_lifetime_ms == LIFETIME_MS
    world.send(metadata, 12, sink=sink)
    world.advance(0)
    assert sink.answered[-1].is_answered and not sink.closed


def test_another_login_of_the_user_has_its_own_groups_at_once(
    world: BrokerWorld, sink: Authenticating
) -> None:
    before = sink.session.caller
    assert log_in(world, sink, "alice", "b").error_code == 0
    assert sink.session.groups == {"b"} and sink.session.caller != before
    assert sink.session.caller.principals == {"User:alice", "User:*", "Group:b"}
    assert log_in(world, sink, "alice").error_code == 0
    assert sink.session.caller.principals == {"User:alice", "User:*"}


def test_another_user_needs_another_connection(world: BrokerWorld, sink: Authenticating) -> None:
    answer = log_in(world, sink, "admin", "operators")
    assert answer.error_code == Error.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == (
        "This connection is of User:alice; another user needs another one."
    )
    assert sink.session.principal == ALICE.principal and sink.session.groups == ALICE.groups
    assert sink.closed == ["its login failed"]
