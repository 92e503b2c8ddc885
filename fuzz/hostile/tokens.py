"""Attacks on a listener that takes tokens: wrong ones, those of another user, sessions that outlive
their token."""

import socket
import time
from contextlib import ExitStack
from random import Random

from fuzz.hostile.cluster import ADMIN, NOBODY
from fuzz.hostile.logins import expect_failures, frame_of
from fuzz.hostile.wire import LATE_S, FindingError, answer, drained, framed, secured, send
from fuzz.hostile.world import World
from fuzz.mutations import damaged
from strandline.protocol.apis import API_KEYS, APIS
from strandline.protocol.codec import decode
from strandline.protocol.headers import decode_response_header
from strandline.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from strandline.protocol.messages.sasl_handshake import SaslHandshakeRequest

MECHANISM = "OAUTHBEARER"
LIFETIME_S = 1
AUTHENTICATE_VERSION = 2


def a_wrong_token(world: World, random: Random) -> None:
    """Signed by another key, for another service, expired, damaged; then a request. It must not be
    answered."""
    provider = world.broker.provider
    if random.random() < 0.7:
        message = _message(provider.wrong_token(random, ADMIN), random.choice(("", ADMIN)))
    elif random.random() < 0.5:
        message = _message(provider.token(NOBODY), ADMIN)
    else:
        whole = _message(provider.token(ADMIN), "")
        message = damaged(whole, random)
        if whole == message or _holds(whole, message):
            return
    messages = [message] if random.random() < 0.6 else [message, b"\x01", message]
    frames = [frame_of(SaslHandshakeRequest(MECHANISM))]
    frames += [frame_of(SaslAuthenticateRequest(one)) for one in messages]
    asked = world.aimed(random, APIS[API_KEYS["Fetch"]])
    try:
        with secured(world.ports.tokens, random, world.tls) as sock:
            send(sock, b"".join(framed(one) for one in frames) + framed(asked))
            got = drained(sock, pause_s=LATE_S)
    except OSError:
        return
    world.expect_no_secret(b"".join(frames) + asked, got)
    expect_failures(got, len(frames))


def a_token_of_another_user(world: World, random: Random) -> None:
    """A user who has logged in may show its next token, but not the administrator's."""
    provider = world.broker.provider
    with ExitStack() as stack:
        try:
            sock = stack.enter_context(secured(world.ports.tokens, random, world.tls))
        except OSError as error:
            raise FindingError(f"no handshake at the listener for tokens: {error}") from error
        is_again = random.random() < 0.3
        _expect_login(_log_in(sock, provider.token(NOBODY)), is_right=True)
        second = provider.token(NOBODY if is_again else ADMIN)
        _expect_login(_log_in(sock, second), is_right=is_again)
        frame = world.aimed(random, APIS[API_KEYS["Fetch"]])
        if send(sock, framed(frame)):
            world.expect_no_secret(frame, answer(sock) or b"")


def a_session_that_outlives_its_token(world: World, random: Random) -> None:
    """Of the administrator: what is asked after its end is not answered."""
    if random.random() < 0.8:
        return  # A second each time: seldom.
    provider = world.broker.provider
    try:
        with secured(world.ports.tokens, random, world.tls) as sock:
            code = _log_in(sock, provider.token(ADMIN, seconds=LIFETIME_S))
            _expect_login(code, is_right=True)
            time.sleep(LIFETIME_S + 0.2)
            frame = world.aimed(random, APIS[API_KEYS["Metadata"]])
            send(sock, framed(frame))
            got = answer(sock)
    except OSError:
        return
    if got is not None:
        raise FindingError(f"an answer after the end of a token: {got[:64].hex()}")


def _message(token: str, user: str) -> bytes:
    name = f"a={user}" if user else ""
    return f"n,{name},\x01auth=Bearer {token}\x01\x01".encode()


def _holds(whole: bytes, message: bytes) -> bool:
    """Whether the damage is beside the token, which holds."""
    token = whole.partition(b"Bearer ")[2].partition(b"\x01")[0]
    return token.rpartition(b".")[0] in message


def _log_in(sock: socket.socket, token: str) -> int | None:
    """The error code of a login on a connection; None if the broker ends it."""
    code: int | None = None
    for message in (SaslHandshakeRequest(MECHANISM), SaslAuthenticateRequest(_message(token, ""))):
        if not send(sock, framed(frame_of(message))):
            return None
        got = answer(sock)
        if got is None:
            return None
        if isinstance(message, SaslAuthenticateRequest):
            version = AUTHENTICATE_VERSION
            _, position = decode_response_header(got, message.API_KEY, version)
            told, _ = decode(SaslAuthenticateResponse, got, position, version)
            code = told.error_code
    return code


def _expect_login(code: int | None, *, is_right: bool) -> None:
    if (code == 0) != is_right:
        raise FindingError(f"a token that {'holds' if is_right else 'does not'} gave {code}")


TOKENS = (
    (a_wrong_token,) * 6 + (a_token_of_another_user,) * 2 + (a_session_that_outlives_its_token,)
)
