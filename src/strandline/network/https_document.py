"""Fetches a small document from a URL that an operator has configured. Blocks: for a thread.

Why:    keys of an identity provider are fetched while clients wait for their login. A server that
        sends slowly, or without end, must hold up neither the thread nor the memory.
How:    One request. Certificates are checked. It follows no redirects: only the configured URL is
        trusted. A watchdog shuts the socket down at the deadline, whatever the server does.
Owns:   nothing.
Source: decision 0069."""

import http.client
import socket
import ssl
import threading
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from strandline.base.errors import StrandlineError

PORTS = {"https": 443, "http": 80}


REASON_BYTES_MAX = 4 * 1024


class FetchError(StrandlineError):
    """The document did not come; the message says why. `body`: of the answer to a POST with
    another status than 200, its beginning."""

    def __init__(self, message: str, *, body: bytes = b"") -> None:
        super().__init__(message)
        self.body = body


@dataclass(frozen=True, slots=True)
class Post:
    """What is sent by POST. `authorization`: of the field of this name."""

    body: bytes
    content_type: str
    authorization: str = ""


def fetch(
    url: str,
    *,
    context: ssl.SSLContext,
    deadline_ms: int,
    bytes_max: int,
    post: Post | None = None,
) -> bytes:
    """The document at an `https` or `http` URL; raises FetchError. `deadline_ms` is for each of
    the server's addresses until one is connected, then for the whole exchange. `post`: what is
    sent; else it is a GET."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
    timeout_s = deadline_ms / 1000
    try:
        with socket.create_connection((host, port), timeout_s) as plain:
            if parts.scheme != "https":
                return _exchange(plain, url, post, timeout_s=timeout_s, bytes_max=bytes_max)
            with context.wrap_socket(
                plain, server_hostname=host, do_handshake_on_connect=False
            ) as secure:
                return _exchange(secure, url, post, timeout_s=timeout_s, bytes_max=bytes_max)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise FetchError(f"{url}: {str(error) or type(error).__name__}") from error


def _exchange(
    sock: socket.socket, url: str, post: Post | None, *, timeout_s: float, bytes_max: int
) -> bytes:
    is_late = threading.Event()
    watchdog = threading.Timer(timeout_s, _cut, (sock, is_late))
    watchdog.daemon = True
    watchdog.start()
    try:
        if isinstance(sock, ssl.SSLSocket):
            sock.do_handshake()
        document = _ask(sock, url, post, bytes_max)
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


def _ask(sock: socket.socket, url: str, post: Post | None, bytes_max: int) -> bytes:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
    connection.sock = sock
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    method = "GET" if post is None else "POST"
    connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
    connection.putheader("Host", parts.netloc)
    connection.putheader("Accept", "application/json, application/jwk-set+json")
    connection.putheader("User-Agent", "strandline")
    connection.putheader("Connection", "close")
    if post is not None:
        connection.putheader("Content-Type", post.content_type)
        connection.putheader("Content-Length", str(len(post.body)))
        if post.authorization:
            connection.putheader("Authorization", post.authorization)
    connection.endheaders(None if post is None else post.body)
    with connection.getresponse() as response:
        if response.status != http.client.OK:
            # Only a server that was asked for something tells why not.
            body = b"" if post is None else response.read(REASON_BYTES_MAX)
            raise FetchError(f"{url}: it answers {response.status}", body=body)
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
