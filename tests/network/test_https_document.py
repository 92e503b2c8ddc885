"""Documents from servers that are slow, endless, or not who they should be."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from strandline.network.https_document import FetchError, fetch
from strandline.security.authority import Authority

OK = b"HTTP/1.1 200 OK\r\n"
PLAIN = ssl.create_default_context()
DEADLINE_MS = 30_000
"""Longer than any answer takes."""
SHORT_MS = 200
"""For servers whose answer never ends."""
CHUNK = b"10\r\n" + b"x" * 16 + b"\r\n"


@contextlib.contextmanager
def served(
    answer: Callable[[socket.socket], None], context: ssl.SSLContext | None = None
) -> Iterator[tuple[int, list[bytes]]]:
    """A server of one connection: its port, and the request that it got."""
    heard: list[bytes] = []
    ended = threading.Event()

    def run() -> None:
        with contextlib.suppress(OSError):
            sock, _ = listening.accept()
            with sock if context is None else context.wrap_socket(sock, server_side=True) as used:
                heard.append(used.recv(65_536))
                answer(used)
                ended.wait()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield listening.getsockname()[1], heard
        finally:
            ended.set()
            with contextlib.suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def get(
    port: int,
    *,
    context: ssl.SSLContext = PLAIN,
    scheme: str = "http",
    deadline_ms: int = DEADLINE_MS,
) -> bytes:
    url = f"{scheme}://localhost:{port}/keys?a=b"
    return fetch(url, context=context, deadline_ms=deadline_ms, bytes_max=1_000)


def test_a_document_is_fetched_over_tls_of_a_trusted_authority(tmp_path: Path) -> None:
    authority, other = Authority(tmp_path / "a"), Authority(tmp_path / "b")
    files = authority.issue("server")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(files.certificate, files.key)
    answer = OK + b"Content-Length: 4\r\n\r\nkeys"
    trusting = ssl.create_default_context(cafile=str(authority.trust))
    with served(lambda sock: sock.sendall(answer), server) as (port, heard):
        assert get(port, context=trusting, scheme="https") == b"keys"
        assert heard[0].startswith(f"GET /keys?a=b HTTP/1.1\r\nHost: localhost:{port}\r\n".encode())
    for trust in (other.trust, None):
        context = ssl.create_default_context(cafile=str(trust) if trust else None)
        with (
            served(lambda sock: sock.sendall(answer), server) as (port, heard),
            pytest.raises(FetchError, match="CERTIFICATE_VERIFY_FAILED"),
        ):
            get(port, context=context, scheme="https")
        assert not heard


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\n\r\n", "it answers 302"),
        (b"HTTP/1.1 503 Busy\r\n\r\n", "it answers 503"),
        (b"SSH-2.0-OpenSSH\r\n", "SSH"),
        (OK + b"Content-Length: 1001\r\n\r\n" + b"x" * 1_001, "more than 1000 bytes"),
        (OK + b"\r\n" + b"x" * 100_000, "more than 1000 bytes"),
        (OK + b"Content-Length: 10\r\n\r\nx", "no whole answer within|too early|IncompleteRead"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "[Ii]ncompleteRead|whole answer"),
        (OK + b"Content-Length: 99999999999\r\n\r\n" + b"x" * 100_000, "more than 1000 bytes"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNK * 1_000, "more than 1000 bytes"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"x" * 70_000, "reading chunk size"),
        (OK + b"X: y\r\n" * 200 + b"\r\n", "more than 100 headers"),
        (OK + b"X: " + b"y" * 70_000 + b"\r\n\r\n", "header line"),
        (b"HTTP/1.1 200 " + b"y" * 70_000, "status line"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000, "no whole answer within"),
        (OK, "no whole answer within"),
        (b"", "no whole answer within"),
    ],
)
def test_what_is_no_document(answer: bytes, reason: str) -> None:
    """The last ones send nothing more and stay connected: the deadline ends them."""
    with (
        served(lambda sock: sock.sendall(answer)) as (port, _),
        pytest.raises(FetchError, match=reason) as raised,
    ):
        get(port, deadline_ms=SHORT_MS if "whole answer" in reason else DEADLINE_MS)
    assert str(raised.value).startswith(f"http://localhost:{port}/keys")


def test_a_server_that_sends_drop_by_drop_is_cut_off() -> None:
    """Each byte comes within the time of one wait."""
    cut = threading.Event()

    def drip(sock: socket.socket) -> None:
        sock.sendall(OK)
        while not cut.wait(0.01):
            sock.sendall(b"X")

    with served(drip) as (port, _):
        try:
            with pytest.raises(FetchError, match="no whole answer within"):
                get(port, deadline_ms=SHORT_MS)
        finally:
            cut.set()


def test_no_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(FetchError, match="refused"):
        get(port)
