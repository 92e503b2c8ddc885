"""Where a client's tokens come from: a file, or an identity provider.

Why:    a token ends within minutes or hours, and a command may run for longer.
How:    A file is read for each login: the program that writes it brings the next token. From a
        provider the client gets tokens for its own name and secret (OAuth's client credentials),
        within a deadline, over TLS; it keeps one for 80 % of its time, to its end if the provider
        is away, or until a broker refuses it.
Owns:   the token in use.
Source: RFC 6749, section 4.4; KIP-768; librdkafka's `sasl.oauthbearer.method=oidc`."""

import base64
import json
import re
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import urlencode

from strandline.client.wire.login import LoginError

TOKEN_BYTES_MAX = 64 * 1024
ANSWER_BYTES_MAX = 256 * 1024
FETCH_MS = 10_000
USED_SHARE = 0.8
"""The part of a token's time after which the next one is fetched."""
REASON_LENGTH_MAX = 200
RETRY_S = 1.0
"""Between two attempts to get the next token, while the last one holds."""
_TOKEN = re.compile(r"[-_.~+/A-Za-z0-9]+=*")


class TokenError(LoginError):
    """There is no token; the message says why. A login that holds goes on meanwhile."""


class TokenSource(Protocol):
    """Gives tokens. `place`: where they are from, for messages."""

    @property
    def place(self) -> str:
        """The file or the URL."""

    @property
    def subject(self) -> str:
        """The `sub` of the token in use, unverified; empty if it has none, or there is no token."""

    def token(self) -> str:
        """The token to log in with now. Raises TokenError."""

    def drop(self) -> None:
        """The broker has refused the token: the next one must be another."""


@dataclass(frozen=True, slots=True)
class TokenFile:
    """See the module."""

    path: Path

    @property
    def place(self) -> str:
        """See `TokenSource`."""
        return str(self.path)

    @property
    def subject(self) -> str:
        """See `TokenSource`."""
        try:
            return subject_of(self.token())
        except TokenError:
            return ""

    def token(self) -> str:
        """See `TokenSource`."""
        try:
            with self.path.open("rb") as file:
                text = file.read(TOKEN_BYTES_MAX + 1)
        except OSError as error:
            raise TokenError(f"{self.path}: cannot read the token: {error.strerror}") from error
        return _checked(text.decode("latin-1").strip(), self.place)

    def drop(self) -> None:
        """See `TokenSource`: the file is read for each login."""


class ClientCredentials:
    """See the module. `monotonic_s`: seconds since some fixed moment."""

    def __init__(
        self,
        url: str,
        client_id: str,
        client_secret: str,
        *,
        scope: str = "",
        context: ssl.SSLContext,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.place = url
        self._client_id, self._client_secret = client_id, client_secret
        self._scope = scope
        self._context = context
        self._now_s = monotonic_s
        self._token = ""
        # When the next one is fetched, and when this one ends.
        self._until_s = self._ends_s = 0.0
        # Commands look at many brokers at once: one of their threads fetches.
        self._lock = threading.Lock()

    @property
    def subject(self) -> str:
        """See `TokenSource`."""
        return subject_of(self._token)

    def token(self) -> str:
        """See `TokenSource`."""
        with self._lock:
            if not self._token or self._now_s() >= self._until_s:
                self._renew()
            return self._token

    def _renew(self) -> None:
        """Get the next token; while the last one holds, a provider that is away changes nothing."""
        now_s = self._now_s()
        try:
            answer = self._ask()
            token = _checked(str(answer.get("access_token", "")), self.place)
        except TokenError:
            if not self._token or now_s >= self._ends_s:
                raise
            self._until_s = now_s + RETRY_S
            return
        lifetime_s = _lifetime_s(answer, token)
        self._token, self._ends_s = token, now_s + lifetime_s
        self._until_s = now_s + USED_SHARE * lifetime_s

    def drop(self) -> None:
        """See `TokenSource`."""
        with self._lock:
            self._token = ""

    def _ask(self) -> dict[str, object]:
        from strandline.network.https_document import FetchError, Post, fetch

        asked = {"grant_type": "client_credentials"}
        if self._scope:
            asked["scope"] = self._scope
        pair = base64.b64encode(f"{self._client_id}:{self._client_secret}".encode()).decode()
        post = Post(urlencode(asked).encode(), "application/x-www-form-urlencoded", f"Basic {pair}")
        try:
            document = fetch(
                self.place,
                context=self._context,
                deadline_ms=FETCH_MS,
                bytes_max=ANSWER_BYTES_MAX,
                post=post,
            )
        except FetchError as error:
            raise TokenError(f"no token: {error}{_told(error.body)}") from error
        found = _json(document)
        if found is None:
            raise TokenError(f"no token: {self.place}: its answer is no JSON object")
        return found


def subject_of(token: str) -> str:
    """The `sub` of a token, unverified; empty if it has none."""
    subject = _claims(token).get("sub")
    return subject if isinstance(subject, str) else ""


def _claims(token: str) -> dict[str, object]:
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        body = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
    except ValueError:
        return {}
    return _json(body) or {}


def _checked(token: str, place: str) -> str:
    if len(token) > TOKEN_BYTES_MAX:
        raise TokenError(f"{place}: a token of more than {TOKEN_BYTES_MAX} bytes")
    if not _TOKEN.fullmatch(token):
        raise TokenError(f"{place}: has no token" if not token else f"{place}: what it has is none")
    return token


def _lifetime_s(answer: dict[str, object], token: str) -> float:
    """How long a token holds: as the answer says, or as the token's own claims do; 0 if neither
    does, so that each login gets another one."""
    told = answer.get("expires_in")
    if isinstance(told, int | float) and told > 0:
        return float(told)
    ends_s, claims = time.time(), _claims(token)
    if isinstance(claims.get("exp"), int | float):
        ends_s = float(claims["exp"])  # type: ignore[arg-type]
    return max(ends_s - time.time(), 0.0)


def _json(document: bytes) -> dict[str, object] | None:
    try:
        found = json.loads(document)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _told(body: bytes) -> str:
    """What a provider says of its refusal (RFC 6749, section 5.2)."""
    found = _json(body) or {}
    told = [found[name] for name in ("error", "error_description") if name in found]
    text = ": ".join(str(one) for one in told)[:REASON_LENGTH_MAX]
    return f": {text}" if text.isprintable() and text else ""
