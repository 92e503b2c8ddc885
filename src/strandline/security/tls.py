"""The TLS of one port: its certificates, read again when their files change.

Why:    certificates are renewed every few weeks or days, and authorities are taken away, without
        a restart.
How:    `reload_if_changed` compares what the file system says of the files. If anything changed it
        builds a new context from all of them and puts it in the place of the old one: OpenSSL only
        ever adds trust to a context. Whatever is wrong with the new files, for example a
        certificate whose key has not been written yet, the old context stays.
            New handshakes use the new context; connections live on.
Owns:   the contexts; the caller decides how often to look.
Source: docs/decisions/0069-access.md; Python's `ssl`."""

import os
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from strandline.base.errors import OperatorError
from strandline.security.certificates import host_names, is_named, not_after_ms

_VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
_VERIFY_MODES = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
TlsSocket = ssl.SSLSocket | ssl.SSLObject
T = TypeVar("T")
Stamp = tuple[int, int, int]
"""Of a file: when it was written, its size, its number."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The files of a certificate and its private key."""

    certificate: Path
    private_key: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """What a port with TLS is given. `place` names it in messages: `[[listener]] PUBLIC`.

    pairs:               certificates; the first is shown where none has the name asked for.
    trust:               authorities of the other side's certificates; None for none.
    client_certificates: none, requested or required.
    version_min:         of TLS: 1.2 or 1.3."""

    place: str
    pairs: tuple[Pair, ...]
    trust: Path | None = None
    client_certificates: str = "none"
    version_min: str = "1.2"

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that a context is built from."""
        of_pairs = (file for pair in self.pairs for file in (pair.certificate, pair.private_key))
        return (*of_pairs, *(() if self.trust is None else (self.trust,)))


class ServerTls:
    """See the module. Raises OperatorError if the files cannot be used at the start."""

    def __init__(self, settings: TlsSettings, check: Callable[[Path], None] | None = None) -> None:
        """`check`: raises OperatorError if a certificate's file is good and yet not to be used."""
        self.settings = settings
        self._check = check
        # When the certificate that ends first ends, in milliseconds since 1970.
        self.ends_at_ms = 0
        self._contexts: list[tuple[tuple[str, ...], ssl.SSLContext]] = []
        self._stamps = _stamps(settings.files)
        self._load()

    @property
    def context(self) -> ssl.SSLContext:
        """For the next handshake."""
        return self._contexts[0][1]

    def reload_if_changed(self) -> bool:
        """Take changed files; whether there were any. Raises OperatorError if they cannot be used:
        the old ones stay, and the next call tries again once the files have changed again."""
        stamps = _stamps(self.settings.files)
        if stamps == self._stamps:
            return False
        self._stamps = stamps
        self._load()
        return True

    def _load(self) -> None:
        settings = self.settings
        contexts = []
        ends = []
        for pair in settings.pairs:
            context = server_context(settings, pair)
            if self._check is not None:
                self._check(pair.certificate)
            names = _read(settings.place, pair.certificate, host_names)
            ends.append(_read(settings.place, pair.certificate, not_after_ms))
            contexts.append((names, context))
        if len(contexts) > 1:
            contexts[0][1].sni_callback = self._choose
        self._contexts = contexts
        self.ends_at_ms = min(ends)

    def _choose(
        self, sock: ssl.SSLSocket | ssl.SSLObject, host: str | None, context: ssl.SSLContext
    ) -> None:
        """Show the certificate for the host that the client asks for."""
        chosen = next(
            (one for names, one in self._contexts if host and is_named(host, names)), context
        )
        if chosen is not context:
            sock.context = chosen


def server_context(settings: TlsSettings, pair: Pair) -> ssl.SSLContext:
    """A context for one certificate. Raises OperatorError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    _fill(context, settings, pair)
    context.verify_mode = _VERIFY_MODES[settings.client_certificates]
    return context


def why_not_resumed(sock: TlsSocket) -> str | None:
    """Why a client that has resumed an earlier session may not come in; None if it may. OpenSSL
    verifies certificates in full handshakes only, and each resumption may begin another session:
    without this check a client could come in for ever by a certificate that has ended."""
    if not sock.session_reused:
        return None
    shown = sock.getpeercert()
    if not shown or time.time() < ssl.cert_time_to_seconds(str(shown["notAfter"])):
        return None
    return "the client's certificate is not accepted: certificate has expired"


def client_context(settings: TlsSettings) -> ssl.SSLContext:
    """A context for connections that this side opens: it shows the first certificate, and the
    other side's must be of `trust`, whatever host it names. Raises OperatorError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.options |= ssl.OP_NO_RENEGOTIATION
    _fill(context, settings, settings.pairs[0])
    return context


def _fill(context: ssl.SSLContext, settings: TlsSettings, pair: Pair) -> None:
    context.minimum_version = _VERSIONS[settings.version_min]
    place = settings.place
    for file in (pair.certificate, pair.private_key, settings.trust):
        if file is not None:
            _read(place, file, Path.read_bytes)
    try:
        context.load_cert_chain(pair.certificate, pair.private_key, _refuse_password)
    except ssl.SSLError as error:
        raise OperatorError(f"{place}: {_why_no_pair(pair, error)}") from error
    except _PasswordError as error:
        raise OperatorError(
            f"{place}: {pair.private_key} needs a password: write the key without one"
        ) from error
    if settings.trust is not None:
        try:
            context.load_verify_locations(settings.trust)
        except ssl.SSLError as error:
            raise OperatorError(f"{place}: {settings.trust} has no certificate in PEM") from error


class _PasswordError(Exception):
    """A private key has a password."""


def _refuse_password() -> str:
    raise _PasswordError


def _why_no_pair(pair: Pair, error: ssl.SSLError) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return (
            f"the key in {pair.private_key} is not the one of the certificate in "
            f"{pair.certificate}: both must be of one request"
        )
    if error.reason in ("EE_KEY_TOO_SMALL", "CA_MD_TOO_WEAK", "CA_KEY_TOO_SMALL"):
        return f"{pair.certificate} is too weak for TLS ({error.reason}): use ECDSA P-256"
    for file, what in ((pair.certificate, b"CERTIFICATE"), (pair.private_key, b"PRIVATE KEY")):
        if what + b"-----" not in file.read_bytes():
            return f"{file} has no {what.decode().lower()} in PEM"
    return f"{pair.certificate} or {pair.private_key} is damaged: {error.reason or error}"


def _read(place: str, file: Path, read: Callable[[Path], T]) -> T:
    """What `read` finds in a file. Raises OperatorError."""
    try:
        return read(file)
    except OSError as error:
        raise OperatorError(f"{place}: cannot read {file}: {error.strerror}") from error
    except ValueError as error:
        raise OperatorError(f"{place}: {file} has no certificate in PEM") from error


def _stamps(files: tuple[Path, ...]) -> tuple[Stamp | None, ...]:
    return tuple(stamp_of(file) for file in files)


def stamp_of(file: Path) -> Stamp | None:
    """What the file system says of a file; None if there is none."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
