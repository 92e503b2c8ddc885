"""Fetches a small document from a URL that an operator has configured. Blocks: for a thread.

Why:    keys of an identity provider are fetched while clients wait for their login. A server that
        sends slowly, or without end, must hold up neither the thread nor the memory.
How:    One GET. Certificates are checked. It follows no redirects: only the configured URL is
        trusted. A watchdog shuts the socket down at the deadline, whatever the server does.
Owns:   nothing.
Source: decision 0069."""

import http.client
import socket
import ssl
import threading
from contextlib import suppress
from urllib.parse import urlsplit

from strandline.base.errors import StrandlineError

PORTS = {"https": 443, "http": 80}


class FetchError(StrandlineError):
    """The document did not come; the message says why."""


def fetch(url: str, *, context: ssl.SSLContext, deadline_ms: int, bytes_max: int) -> bytes:
    """The document at an `https` or `http` URL; raises FetchError. `deadline_ms` is for each of
    the server's addresses until one is connected, then for the whole exchange."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
    timeout_s = deadline_ms / 1000
    try:
        with socket.create_connection((host, port), timeout_s) as plain:
            if parts.scheme != "https":
                return _exchange(plain, url, timeout_s=timeout_s, bytes_max=bytes_max)
            with context.wrap_socket(
                plain, server_hostname=host, do_handshake_on_connect=False
            ) as secure:
                return _exchange(secure, url, timeout_s=timeout_s, bytes_max=bytes_max)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise FetchError(f"{url}: {str(error) or type(error).__name__}") from error


def _exchange(sock: socket.socket, url: str, *, timeout_s: float, bytes_max: int) -> bytes:
    is_late = threading.Event()
    watchdog = threading.Timer(timeout_s, _cut, (sock, is_late))
    watchdog.daemon = True
    watchdog.start()
    try:
        if isinstance(sock, ssl.SSLSocket):
            sock.do_handshake()
        document = _get(sock, url, bytes_max)
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, TimeoutError):
            is_late.set()
        if not is_late.is_set():
            raise
    finally:
        watchdog.cancel()
    # A connection that is cut may look like the end of an answer.
    if is_late.is_set():
        raise FetchError(f"{url}: no whole answer within {timeout_s:g} s")
    return document


def _get(sock: socket.socket, url: str, bytes_max: int) -> bytes:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
    connection.sock = sock
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection.putrequest("GET", target, skip_host=True, skip_accept_encoding=True)
    connection.putheader("Host", parts.netloc)
    connection.putheader("Accept", "application/json, application/jwk-set+json")
    connection.putheader("User-Agent", "strandline")
    connection.putheader("Connection", "close")
    connection.endheaders()
    with connection.getresponse() as response:
        if response.status != http.client.OK:
            raise FetchError(f"{url}: it answers {response.status}")
        document = response.read(bytes_max + 1)
        if len(document) > bytes_max:
            raise FetchError(f"{url}: more than {bytes_max} bytes")
        if response.length:
            raise FetchError(f"{url}: it ends {response.length} bytes too early")
        return document


def _cut(sock: socket.socket, is_late: threading.Event) -> None:
    is_late.set()
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
