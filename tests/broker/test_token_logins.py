"""Keys that change while clients log in by tokens, and a provider that is away (decision 0069).

How:    the logins of a broker, and a key set in a file, which is read on a thread as one of a URL
        is; the loop's time is moved, so that nothing waits."""

import asyncio
import json
import os
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest
from joserfc import jwk, jwt

from strandline.base.errors import ApiError, OperatorError
from strandline.broker.authentication import failure_delays
from strandline.broker.authentication.key_set_refresh import READ_INTERVAL_MIN_MS
from strandline.broker.authentication.logins import Logins
from strandline.config.load import load_broker_config
from strandline.model.cluster import Cluster
from strandline.network.loop_clock import LoopClock
from strandline.protocol.errors import Error
from strandline.security.sasl.mechanism import FAILED
from strandline.security.sasl.oauth_bearer import CHALLENGE
from strandline.security.session import Principal, Session

SESSION = Session(listener="A", is_authenticated=False)
EXP_S = 4_000_000_000
FIRST, SECOND = (jwk.ECKey.generate_key("P-256", {"kid": one}) for one in ("first", "second"))


class World:
    """The logins of a broker whose keys are in a file."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "keys.json"
        self.moved_s = 0.0

    def put(self, *keys: jwk.Key) -> None:
        self.path.write_text(json.dumps({"keys": [one.as_dict(private=False) for one in keys]}))

    def open(self) -> Logins:
        loop = asyncio.get_running_loop()
        text = (
            '[broker]\nid = 1\ndata_directory = "/d"\n[cluster]\nseeds = ["1@127.0.0.1:33145"]\n'
            '[[listener]]\nname = "A"\nbind = "127.0.0.1:9093"\nprotocol = "SASL_PLAINTEXT"\n'
            'sasl_mechanisms = ["OAUTHBEARER"]\n[oauthbearer]\nexpected_issuer = "i"\n'
            f'expected_audience = ["a"]\njwks_endpoint_url = "file://{self.path}"\n'
        )
        real = loop.time
        loop.time = lambda: real() + self.moved_s  # type: ignore[method-assign]
        config = load_broker_config(text, file="f", environment={})
        return Logins(config, Cluster(), wall_ms=LoopClock(loop).wall_ms)

    def move(self, ms: int) -> None:
        self.moved_s += ms / 1000


def message(key: jwk.Key) -> bytes:
    claims = {"iss": "i", "aud": "a", "sub": "alice", "exp": EXP_S}
    token = jwt.encode({"alg": "ES256", "kid": key.kid}, claims, key)
    return f"n,,\x01auth=Bearer {token}\x01\x01".encode()


async def log_in(logins: Logins, key: jwk.Key) -> bool:
    """Whether a client gets in; one that is refused answers the challenge, and is told no more."""
    exchange = logins.begin("OAUTHBEARER")
    answer = await logins.step(exchange, message(key), SESSION)
    if exchange.principal is not None:
        assert (answer, exchange.principal) == (b"", Principal.user("alice"))
        return True
    assert answer == CHALLENGE
    count = logins.delays.failure_count
    with pytest.raises(ApiError) as raised:
        await logins.step(exchange, b"\x01", SESSION)
    assert (raised.value.code, raised.value.message) == (Error.SASL_AUTHENTICATION_FAILED, FAILED)
    assert logins.delays.failure_count == count, "a failure counts once"
    return False


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(failure_delays, "DELAY_FIRST_MS", 0)
    return World(tmp_path)


def run(course: Callable[[], Coroutine[object, object, None]]) -> None:
    asyncio.run(course())  # type: ignore[arg-type]


def test_a_new_key_is_taken_at_its_first_use_and_an_old_one_goes(world: World) -> None:
    async def course() -> None:
        world.put(FIRST)
        logins = world.open()
        assert await log_in(logins, FIRST)
        assert not await log_in(logins, SECOND)
        world.put(SECOND)
        assert await log_in(logins, FIRST), "no token has asked for other keys yet"
        assert not await log_in(logins, SECOND), "the keys were read within 10 s"
        world.move(READ_INTERVAL_MIN_MS)
        assert await log_in(logins, SECOND)
        assert not await log_in(logins, FIRST)
        assert logins.delays.failure_count == 3

    run(course)


def test_unknown_keys_are_looked_up_once_per_10_s_whatever_clients_send(world: World) -> None:
    async def course() -> None:
        world.put(FIRST)
        logins = world.open()
        assert logins.tokens is not None
        source = logins.tokens._keys
        readings = 0
        read = source._read

        def count() -> object:
            nonlocal readings
            readings += 1
            return read()

        source._read = count  # type: ignore[method-assign, assignment]
        await asyncio.gather(*(log_in(logins, SECOND) for _ in range(20)))
        assert readings == 1
        world.move(READ_INTERVAL_MIN_MS)
        await asyncio.gather(*(log_in(logins, SECOND) for _ in range(20)))
        assert readings == 2

    run(course)


def test_the_last_good_keys_stay_while_there_are_none(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async def course() -> None:
        world.put(FIRST)
        logins = world.open()
        for document in (None, "{", '{"keys": []}', "x" * 600_000):
            if document is None:
                os.remove(world.path)
            else:
                world.path.write_text(document)
            assert not await log_in(logins, SECOND)
            world.move(READ_INTERVAL_MIN_MS)
        assert await log_in(logins, FIRST)
        world.put(SECOND)
        world.move(READ_INTERVAL_MIN_MS)
        assert await log_in(logins, SECOND)

    run(course)
    assert caplog.text.count("the keys read last stay in use") == 4


def test_keys_are_read_again_without_a_login(world: World) -> None:
    async def course() -> None:
        world.put(FIRST)
        logins = world.open()
        assert logins.tokens is not None
        source = logins.tokens._keys
        world.put(FIRST, SECOND)
        logins.start()
        while len(source.keys) != 2:
            await asyncio.sleep(0)
        logins.stop()

    run(course)


def test_a_key_that_is_of_no_use_is_told_at_the_start(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async def course() -> None:
        keys = [FIRST.as_dict(private=False), SECOND.as_dict(private=True)]
        world.path.write_text(json.dumps({"keys": keys}))
        logins = world.open()
        assert caplog.text.count("key 2: it is a private key") == 1
        assert not await log_in(logins, SECOND)
        assert caplog.text.count("key 2: it is a private key") == 1

    run(course)


def test_a_broker_without_its_keys_does_not_start(world: World) -> None:
    async def course() -> None:
        with pytest.raises(OperatorError, match=r"jwks_endpoint_url: .*cannot read: No such file"):
            world.open()
        world.path.write_text("{}")
        with pytest.raises(OperatorError, match=r"jwks_endpoint_url: .*no set of"):
            world.open()

    run(course)
