"""What every Python program of the matrix shares: its records, and the lines that it prints."""

import base64
import json
import logging
import os
import re
import signal
import ssl
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
PARTITIONS, REPLICAS = 4, 3
RETENTION_MS = "7200000"
IDEMPOTENT = "idempotent"
ERRORS = re.compile(r"SaslAuthenticationFailed|CERTIFICATE_VERIFY_FAILED|HTTP Error 401")


def record(number: int) -> tuple[bytes, bytes | None, list[tuple[str, bytes]]]:
    """Key, value and headers of record n."""
    value = None if number % 20 == 19 else f"value-{number}-{'x' * 60}".encode()
    return f"key-{number % 7}".encode(), value, [("n", str(number).encode()), ("empty", b"")]


def show(
    partition: int,
    offset: int,
    key: bytes,
    value: bytes | None,
    headers: Iterable[tuple[str, bytes]],
) -> None:
    """Print a record that was read."""
    length = -1 if value is None else len(value)
    pairs = ",".join(f"{name}={text.decode()}" for name, text in headers)
    text = (value or b"").decode()
    print(f"record\t{partition}\t{offset}\t{key.decode()}\t{length}\t{text}\t{pairs}", flush=True)


def described(describe: Callable[[], T], is_so: Callable[[T], bool]) -> T:
    """What brokers describe, once all have heard of a change: one may a moment after another has
    answered it."""
    while not is_so(found := describe()):
        time.sleep(0.02)
    return found


def access() -> dict[str, str]:
    """How to come in: the lines KEY=VALUE of the file that CLIENT_ACCESS names; else empty."""
    path = os.environ.get("CLIENT_ACCESS")
    if not path:
        return {}
    with open(path) as file:
        return dict(line.rstrip("\n").split("=", 1) for line in file)


def ssl_context() -> ssl.SSLContext:
    """Trusts the authority, and shows the client's certificate if it has one."""
    told = access()
    context = ssl.create_default_context(cafile=told["ca"])
    if "certificate" in told:
        context.load_cert_chain(told["certificate"], told["key"])
    return context


def token() -> str:
    """A token by the client's credentials (RFC 6749, 4.4)."""
    told = access()
    credentials = f"{told['client_id']}:{told['client_secret']}".encode()
    request = urllib.request.Request(
        told["token_url"],
        data=urllib.parse.urlencode({"grant_type": "client_credentials"}).encode(),
        headers={"Authorization": f"Basic {base64.b64encode(credentials).decode()}"},
    )
    with urllib.request.urlopen(request, timeout=10, context=ssl_context()) as answer:
        return str(json.load(answer)["access_token"])


class Logged(logging.Handler):
    """The errors that a client tells its log alone: it keeps their names."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._found: set[str] = set()
        logging.getLogger().addHandler(self)

    @property
    def errors(self) -> str:
        """Their names, once each."""
        return " ".join(sorted(self._found))

    def emit(self, record: logging.LogRecord) -> None:
        """Keep what a line names."""
        self._found |= set(ERRORS.findall(record.getMessage()))


class Stop:
    """`is_asked` once SIGTERM came."""

    def __init__(self) -> None:
        self.is_asked = False
        signal.signal(signal.SIGTERM, self._on_signal)

    def _on_signal(self, _number: int, _frame: object) -> None:
        self.is_asked = True
