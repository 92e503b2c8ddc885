"""Logins: conversations, each on a connection of its own, whose answers count.

How:    an answer becomes a line: its error, whether it has bytes for the client, and the like. Both
        brokers know `USER` by PLAIN and by SCRAM-SHA-256.
Source: KIP-43, KIP-152, KIP-368, RFC 4616, RFC 5802."""

from collections.abc import Callable, Iterator
from typing import Protocol

from differential.access.subjects import ADMIN
from differential.access.summary import summarise
from differential.access.user_script import upsertion
from differential.access.walk import Target
from strandline.protocol.errors import name_of
from strandline.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
)
from strandline.protocol.messages.api_versions import ApiVersionsRequest
from strandline.protocol.messages.metadata import MetadataRequest
from strandline.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from strandline.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from strandline.protocol.table import Message

USER = "u0"
"""Its password is its name."""
SCRAM, OTHER_SCRAM = "SCRAM-SHA-256", "SCRAM-SHA-512"
HANGS_UP = "hangs up"
PAUSES = 20


class Line(Protocol):
    """A connection that has not logged in."""

    def ask(self, request: Message, version: int) -> Message | None:
        """The answer; None if the broker hangs up."""


class LoginTarget(Target, Protocol):
    """A broker that clients log in to."""

    def connect(self) -> Line:
        """A new connection."""


Conversation = Callable[[Line], Iterator[Message | None]]


def _handshake(line: Line, mechanism: str) -> Message | None:
    return line.ask(SaslHandshakeRequest(mechanism), 1)


def _authenticate(line: Line, token: bytes) -> Message | None:
    return line.ask(SaslAuthenticateRequest(token), 2)


def _versions(line: Line) -> Message | None:
    return line.ask(ApiVersionsRequest("oracle", "1"), 3)


def _metadata(line: Line) -> Message | None:
    return line.ask(MetadataRequest(topics=[]), 12)


def by_plain(token: bytes) -> Conversation:
    """A login by PLAIN with these bytes, and a request behind it."""

    def conversation(line: Line) -> Iterator[Message | None]:
        yield _handshake(line, "PLAIN")
        yield _authenticate(line, token)
        yield _metadata(line)

    return conversation


def by_scram(user: str, password: str, mechanism: str = SCRAM) -> Conversation:
    """A login by SCRAM."""

    def conversation(line: Line) -> Iterator[Message | None]:
        from scramp import ScramClient

        client = ScramClient([mechanism], user, password)
        yield _handshake(line, mechanism)
        first = _authenticate(line, client.get_client_first().encode())
        yield first
        if isinstance(first, SaslAuthenticateResponse) and not first.error_code:
            client.set_server_first(first.auth_bytes.decode())
            yield _authenticate(line, client.get_client_final().encode())
        yield _metadata(line)

    return conversation


def by_bytes(mechanism: str, *tokens: bytes) -> Conversation:
    """A login by these messages."""

    def conversation(line: Line) -> Iterator[Message | None]:
        yield _handshake(line, mechanism)
        for token in tokens:
            yield _authenticate(line, token)

    return conversation


def _handshake_of(mechanism: str) -> Conversation:
    def conversation(line: Line) -> Iterator[Message | None]:
        yield _handshake(line, mechanism)
        yield _handshake(line, SCRAM)

    return conversation


def _versions_first(line: Line) -> Iterator[Message | None]:
    yield _versions(line)
    yield _versions(line)
    yield _handshake(line, "PLAIN")
    yield _versions(line)


def _no_login(line: Line) -> Iterator[Message | None]:
    yield _metadata(line)


def _no_handshake(line: Line) -> Iterator[Message | None]:
    yield _authenticate(line, f"\0{USER}\0{USER}".encode())


def _again(line: Line) -> Iterator[Message | None]:
    yield from by_plain(f"\0{USER}\0{USER}".encode())(line)
    yield _handshake(line, "PLAIN")
    yield _authenticate(line, f"\0{USER}\0{USER}".encode())
    yield _metadata(line)


def _token(*parts: str) -> bytes:
    return "\0".join(parts).encode()


CONVERSATIONS: dict[str, Conversation] = {
    "PLAIN": by_plain(_token("", USER, USER)),
    "PLAIN, as oneself": by_plain(_token(USER, USER, USER)),
    "PLAIN, as another user": by_plain(_token(ADMIN, USER, USER)),
    "PLAIN, wrong password": by_plain(_token("", USER, "wrong")),
    "PLAIN, unknown user": by_plain(_token("", "nobody", "nobody")),
    "PLAIN, empty password": by_plain(_token("", USER, "")),
    "PLAIN, no user": by_plain(_token("", "", "")),
    "PLAIN, two parts": by_plain(_token(USER, USER)),
    "PLAIN, four parts": by_plain(_token("", USER, USER, "")),
    "PLAIN, nothing": by_plain(b""),
    "PLAIN, no text": by_plain(b"\0\xff\xfe\0\xff"),
    SCRAM: by_scram(USER, USER),
    "SCRAM, wrong password": by_scram(USER, "wrong"),
    "SCRAM, unknown user": by_scram("nobody", "nobody"),
    "SCRAM, a mechanism that the user lacks": by_scram(USER, USER, OTHER_SCRAM),
    "SCRAM, nothing": by_bytes(SCRAM, b""),
    "SCRAM, no message of it": by_bytes(SCRAM, b"hello"),
    "SCRAM, as another user": by_bytes(SCRAM, f"n,a={ADMIN},n={USER},r=abc".encode()),
    "SCRAM, channel binding": by_bytes(SCRAM, f"p=tls-unique,,n={USER},r=abc".encode()),
    "SCRAM, another nonce": by_bytes(SCRAM, f"n,,n={USER},r=abc".encode(), b"c=biws,r=abc,p=AA=="),
    "a mechanism that is none": _handshake_of("NONE"),
    "a mechanism without a name": _handshake_of(""),
    "a mechanism that is not on": _handshake_of("OAUTHBEARER"),
    "a handshake twice": _handshake_of("PLAIN"),
    "versions before": _versions_first,
    "no login": _no_login,
    "no handshake": _no_handshake,
    "a login again": _again,
}
"""{what is special of a login: the conversation}"""


def play_logins(target: LoginTarget) -> dict[str, list[str]]:
    """The answers of all conversations."""
    set_password = AlterUserScramCredentialsRequest([], [upsertion(USER)])
    target.ask(ADMIN, set_password, 0)
    answers: dict[str, list[str]] = {}
    for label, conversation in CONVERSATIONS.items():
        for _ in range(PAUSES):
            target.pause()
        lines = answers[label] = []
        for answer in conversation(target.connect()):
            lines.append(_line(answer))
            if answer is None:
                break
            for _ in range(PAUSES if "FAILED" in lines[-1] else 0):
                target.pause()
    return answers


def _line(answer: Message | None) -> str:
    if isinstance(answer, SaslHandshakeResponse):
        return f"{name_of(answer.error_code)} {','.join(sorted(answer.mechanisms))}".strip()
    if isinstance(answer, SaslAuthenticateResponse):
        words = [name_of(answer.error_code)]
        words += ["message"] if answer.error_message else []
        words += ["bytes"] if answer.auth_bytes else []
        words += ["ends"] if answer.session_lifetime_ms else []
        return " ".join(words)
    return HANGS_UP if answer is None else f"answers {summarise(answer, {})}"
