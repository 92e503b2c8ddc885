"""A connection takes one step of a login at a time, whether it has logged in before or not.

Why:    steps side by side would try many passwords at the cost of one failure.
Source: KIP-368; decision 0069."""

import asyncio
from typing import cast

import pytest
from tests.broker.broker_world import BrokerWorld, Sink

from strandline.broker.authentication.logins import Logins
from strandline.protocol.errors import Error
from strandline.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from strandline.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from strandline.security.sasl.mechanism import Mechanism
from strandline.security.session import Session


class SlowLogins:
    """Steps that never end."""

    def __init__(self) -> None:
        self.tried: list[bytes] = []

    def mechanisms(self, session: Session) -> tuple[str, ...]:
        return ("PLAIN",)

    def begin(self, mechanism: str) -> Mechanism:
        return cast("Mechanism", object())

    async def step(self, exchange: Mechanism, token: bytes, session: Session) -> bytes:
        self.tried.append(token)
        answer: bytes = await asyncio.get_running_loop().create_future()
        return answer


@pytest.fixture
def world() -> BrokerWorld:
    return BrokerWorld()


def test_a_login_beside_a_login_is_refused(world: BrokerWorld) -> None:
    logins = SlowLogins()
    world.services.logins = cast("Logins", logins)
    sink = Sink()

    def shake_hands() -> int:
        pending = world.send(SaslHandshakeRequest("PLAIN"), 1, sink=sink)
        world.advance(0)
        return pending.answer(SaslHandshakeResponse).error_code

    assert shake_hands() == Error.NONE
    world.send(SaslAuthenticateRequest(b"first"), 1, sink=sink)
    world.advance(0)
    assert shake_hands() == Error.ILLEGAL_SASL_STATE
    second = world.send(SaslAuthenticateRequest(b"second"), 1, sink=sink)
    world.advance(0)
    assert second.answer(SaslAuthenticateResponse).error_code == Error.ILLEGAL_SASL_STATE
    assert logins.tried == [b"first"]
