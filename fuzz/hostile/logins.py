"""Attacks that log in, or seem to: messages of mechanisms that are damaged, and another user on a
connection that has logged in."""

from contextlib import ExitStack
from random import Random

from scramp import ScramClient

from fuzz.access_targets import ACCESS_TARGETS, BETWEEN
from fuzz.hostile.cluster import ADMIN, MECHANISM, NOBODY, PASSWORDS
from fuzz.hostile.wire import LATE_S, FindingError, connected, drained, framed, secured, send
from fuzz.hostile.world import World
from fuzz.mutations import damaged
from strandline.base.errors import StrandlineError
from strandline.protocol.apis import API_KEYS, APIS
from strandline.protocol.headers import encode_request
from strandline.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from strandline.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from strandline.protocol.table import Message

MECHANISMS = {"scram": MECHANISM, "plain": "PLAIN", "token": "OAUTHBEARER"}
TIMEOUT_MS = 10_000
_KEY = {
    SaslAuthenticateRequest: (API_KEYS["SaslAuthenticate"], 2),
    SaslHandshakeRequest: (API_KEYS["SaslHandshake"], 1),
}


def a_damaged_login(world: World, random: Random) -> None:
    """Messages of a mechanism, damaged; then a request. It must not be answered."""
    kind = random.choice(sorted(MECHANISMS))
    whole = ACCESS_TARGETS[kind][1](random)
    messages = (damaged(whole, random) if random.random() < 0.7 else whole).split(BETWEEN)[:3]
    frames = [
        frame_of(SaslHandshakeRequest(random.choice((MECHANISMS[kind], MECHANISM, "x" * 300))))
    ]
    frames += [frame_of(SaslAuthenticateRequest(one)) for one in messages]
    asked = world.aimed(random, APIS[API_KEYS["Fetch"]])
    with ExitStack() as stack:
        try:
            sock = (
                stack.enter_context(connected(world.ports.open, random))
                if random.random() < 0.5
                else stack.enter_context(secured(world.ports.login, random, world.tls))
            )
        except OSError:
            return
        send(sock, b"".join(framed(one) for one in frames) + framed(asked))
        got = drained(sock, pause_s=LATE_S)
    world.expect_no_secret(b"".join(frames) + asked, got)
    expect_failures(got, len(frames))


def another_user_on_a_connection(world: World, random: Random) -> None:
    """A user who has logged in may log in again, but not as the administrator."""
    try:
        connection = world.broker.connect(NOBODY)
    except StrandlineError as error:
        raise FindingError(f"a login that is right failed: {error}") from error

    def step(message: bytes) -> SaslAuthenticateResponse:
        request = SaslAuthenticateRequest(message)
        return connection.call(request, SaslAuthenticateResponse, TIMEOUT_MS)

    with ExitStack() as stack:
        stack.callback(connection.close)
        is_again = random.random() < 0.3
        user = NOBODY if is_again else ADMIN
        connection.call(SaslHandshakeRequest(MECHANISM), SaslHandshakeResponse, TIMEOUT_MS)
        client = ScramClient([MECHANISM], user, PASSWORDS[user])
        client.set_server_first(step(client.get_client_first().encode()).auth_bytes.decode())
        last = step(client.get_client_final().encode())
        if is_again != (last.error_code == 0):
            raise FindingError(f"a second login as {user} gave the error {last.error_code}")
        frame = world.aimed(random, APIS[API_KEYS["Fetch"]])
        try:
            connection.stream.send((framed(frame),), TIMEOUT_MS)
            size = int.from_bytes(connection.stream.receive(4, TIMEOUT_MS), "big")
            got = bytes(connection.stream.receive(size, TIMEOUT_MS))
        except OSError:
            return
        world.expect_no_secret(frame, got)


def frame_of(message: Message) -> bytes:
    """A request of a login, without its size."""
    _, version = _KEY[type(message)]
    return bytes(encode_request(message, version, correlation_id=1, client_id="fuzz"))


def expect_failures(got: bytes, count: int) -> None:
    """The first answer is the handshake's; no later one ends a login, nor follows one."""
    answers = []
    while len(got) >= 4:
        size = int.from_bytes(got[:4], "big")
        answers.append(got[4 : 4 + size])
        got = got[4 + size :]
    if len(answers) > count:
        raise FindingError(f"{len(answers)} answers to {count} requests of a login that is wrong")


LOGINS = (a_damaged_login, another_user_on_a_connection)
