"""Tokens of the HTTP port in a file: programs that scrape metrics, people who open pages.

Why:    a monitor has no certificate and no identity provider, and its token must be changed
        without a restart.
How:    lines of `{"name": ..., "role": "read", "sha256": ..., "created": ...}`. A token has 256
        random bits, too many to try, so its plain SHA-256 tells nothing of it. A token is compared
        with every line in constant time.
            file is changed --`reload_if_changed`--> it counts, or an error and the old one stays
Owns:   the lines as read last.
Source: RFC 6750; decision 0069."""

import hashlib
import hmac
import secrets
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from strandline.base.errors import OperatorError
from strandline.security.secret_file import read_secret_lines, replace_secret_lines
from strandline.security.tls import stamp_of

TOKENS_MAX = 1_000
TOKEN_BYTES = 32
TOKEN_PREFIX = "sl_"
"""Programs that search for secrets in files know a token by it."""
NAME_LENGTH_MAX = 100
READ = "read"
"""The role of a token that may see every page; the port has no calls that change anything."""


class HttpToken(msgspec.Struct, frozen=True):
    """One line."""

    name: str
    role: str
    sha256: str
    created: str
    """When, as RFC 3339 in UTC."""


_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[HttpToken] = msgspec.json.Decoder(HttpToken)


class HttpTokens:
    """See the module. Raises OperatorError if the file cannot be used at the start."""

    place = "[metrics] tokens_file"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp = stamp_of(path)
        self._tokens = self._read()

    def find(self, token: str) -> HttpToken | None:
        """The line of a token."""
        digest = _digest(token)
        found = None
        for one in self._tokens:
            if hmac.compare_digest(one.sha256, digest):
                found = one
        return found

    def reload_if_changed(self) -> bool:
        """Take a changed file; whether it was one. Raises OperatorError if it cannot be used: the
        lines read before stay, and the next call tries again once the file has changed again."""
        stamp = stamp_of(self._path)
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        self._tokens = self._read()
        return True

    def _read(self) -> list[HttpToken]:
        try:
            return read_tokens(self._path)
        except OperatorError as error:
            raise OperatorError(f"{self.place}: {error}") from error


def read_tokens(path: Path) -> list[HttpToken]:
    """The lines of a file; raises OperatorError."""
    lines = [one for one in read_secret_lines(path) if one.strip()]
    if len(lines) > TOKENS_MAX:
        raise OperatorError(f"{path}: {len(lines)} tokens; {TOKENS_MAX} are the most")
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            one = _decoder.decode(line)
        except msgspec.MsgspecError as error:
            raise OperatorError(
                f"{path}: line {number} is no token: write it by `strandline http-token create`"
            ) from error
        if one.role != READ or len(one.sha256) != 64 or not one.sha256.isascii():
            raise OperatorError(f"{path}: line {number} has no role and SHA-256 that are known")
        found.append(one)
    return found


def create_token(path: Path, name: str) -> str:
    """Add a token to a file, or put it in the place of the one of the same name. The token itself
    is in no file. Raises OperatorError."""
    if not name or len(name) > NAME_LENGTH_MAX or not name.isprintable():
        raise OperatorError(f"a token's name has 1 to {NAME_LENGTH_MAX} printable characters")
    known = [one for one in _read_if_there(path) if one.name != name]
    if len(known) >= TOKENS_MAX:
        raise OperatorError(f"{path}: has {len(known)} tokens, and {TOKENS_MAX} are the most")
    token = TOKEN_PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
    created = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    _write(path, [*known, HttpToken(name, READ, _digest(token), created)])
    return token


def delete_token(path: Path, name: str) -> None:
    """Take a token out of a file; raises OperatorError."""
    known = read_tokens(path)
    left = [one for one in known if one.name != name]
    if len(left) == len(known):
        names = ", ".join(one.name for one in known[:10]) or "none"
        raise OperatorError(f"{path}: has no token {name!r}; it has {names}")
    _write(path, left)


def _read_if_there(path: Path) -> list[HttpToken]:
    return read_tokens(path) if path.exists() else []


def _write(path: Path, tokens: list[HttpToken]) -> None:
    replace_secret_lines(path, [_encoder.encode(one) for one in tokens])


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()
