"""One address cannot take up all slow steps of logins, nor fill the log; passwords are the newest.

Source: decision 0069."""

import asyncio
import logging
import threading

import pytest

from strandline.base.errors import ApiError
from strandline.broker.authentication import failure_delays
from strandline.broker.authentication.logins import SLOW_STEPS_OF_ADDRESS_MAX, Logins
from strandline.config.broker import BrokerConfig, BrokerSection, ClusterSection
from strandline.controller.state import ControllerState
from strandline.model.cluster import Cluster
from strandline.security.sasl.mechanism import SaslError
from strandline.security.sasl.secrets import secret_from_password
from strandline.security.session import Principal, Session


class SlowStep:
    """A step that ends once it may."""

    is_slow = True
    principal: Principal | None = None
    groups: frozenset[str] = frozenset()
    lifetime_ms: int | None = None

    def __init__(self, may_end: threading.Event) -> None:
        self._may_end = may_end

    def step(self, token: bytes) -> bytes:
        self._may_end.wait(20)
        return token


class Refusing(SlowStep):
    """A step that fails at once, and says much of it."""

    is_slow = False

    def step(self, token: bytes) -> bytes:
        raise SaslError(f"user {token.decode()!r}: unknown")


@pytest.fixture(autouse=True)
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failure_delays, "DELAY_FIRST_MS", 0)


def logins(cluster: Cluster | None = None) -> Logins:
    return Logins(
        BrokerConfig(
            broker=BrokerSection(id=1, data_directory="/data"),
            cluster=ClusterSection(seeds=("1@127.0.0.1:33001",)),
        ),
        cluster or Cluster(cluster_id="cluster-1"),
        wall_ms=lambda: 0,
    )


def test_other_addresses_log_in_while_one_has_too_many() -> None:
    async def main() -> None:
        may_end = threading.Event()
        tried = logins()
        greedy, other = Session(host="10.0.0.1"), Session(host="10.0.0.2")
        steps = [
            asyncio.create_task(tried.step(SlowStep(may_end), b"ok", greedy))
            for _ in range(SLOW_STEPS_OF_ADDRESS_MAX)
        ]
        await asyncio.sleep(0)
        with pytest.raises(ApiError):
            await tried.step(SlowStep(may_end), b"ok", greedy)
        last = asyncio.create_task(tried.step(SlowStep(may_end), b"ok", other))
        await asyncio.sleep(0)
        may_end.set()
        assert await asyncio.gather(*steps, last) == [b"ok"] * (len(steps) + 1)
        assert await tried.step(SlowStep(may_end), b"again", greedy) == b"again"
        tried.stop()

    asyncio.run(main())


def test_passwords_are_those_of_a_state_that_came_as_a_whole() -> None:
    """A broker that lagged takes a snapshot: then the cluster's access is another object."""
    state = ControllerState()
    tried = logins(state.cluster)
    other = ControllerState()
    secret = secret_from_password("alice", "SCRAM-SHA-256", "new password", iterations=4_096)
    other.cluster.access.secrets["alice", secret.mechanism] = secret
    other.cluster.access.version = 5
    state.adopt(other)
    exchange = tried.begin("PLAIN")
    asyncio.run(tried.step(exchange, b"\0alice\0new password", Session()))
    assert exchange.principal == Principal.user("alice")
    tried.stop()


def test_a_long_name_makes_no_long_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    with pytest.raises(ApiError):
        asyncio.run(logins().step(Refusing(threading.Event()), b"x" * 60_000, Session()))
    (line,) = caplog.messages
    assert len(line) < 400 and line.startswith("a login from 127.0.0.1 failed: user 'xxx")
