"""The client's seam to the world: streams of bytes to brokers, and time.

Why:    tests supply a cluster in memory and a simulated clock; only this file uses sockets.
Source: STYLE, rule 2."""

import select
import socket
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from strandline.base.disk import Buffer
from strandline.client.wire.login import AnyLogin
from strandline.model.cluster import Address
from strandline.network.sockets import refuse_itself

if TYPE_CHECKING:
    import ssl

RECEIVE_BYTES = 256 * 1024
_REFUSED = "it does not accept this client's certificate"
_REFUSALS = {"TLSV13_ALERT_CERTIFICATE_REQUIRED": "it requires a certificate of its clients"}


class Stream(Protocol):
    """One connection. Whatever goes wrong is an OSError; TimeoutError when the time is over."""

    def send(self, parts: Sequence[Buffer], timeout_ms: int) -> None:
        """Hand all the parts over."""

    def receive(self, length: int, timeout_ms: int) -> memoryview:
        """Exactly `length` bytes; ConnectionError when the peer ends before."""

    def close(self) -> None:
        """End it; harmless when it has ended."""


class Transport(Protocol):
    """Connections and time. `login`: how clients log in on each connection; None if they do not."""

    login: AnyLogin | None

    def connect(self, address: Address, timeout_ms: int) -> Stream:
        """A new connection; raises OSError."""

    def wait_readable(self, streams: Sequence[Stream], timeout_ms: int) -> list[Stream]:
        """Those of the streams that have something to receive, or none when the time is over."""

    def monotonic_ms(self) -> int:
        """Milliseconds since some fixed moment."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC, for the timestamps of records."""

    def sleep_ms(self, duration_ms: int) -> None:
        """Let so much time go by."""


class TcpStream:
    """A stream over a TCP socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock

    def fileno(self) -> int:
        """The socket's descriptor, for `select`."""
        return self._socket.fileno()

    def send(self, parts: Sequence[Buffer], timeout_ms: int) -> None:
        """See `Stream.send`."""
        self._socket.settimeout(max(timeout_ms, 1) / 1000)
        if sum(map(len, parts)) <= RECEIVE_BYTES:
            parts = (b"".join(parts),)
        for part in parts:
            self._socket.sendall(part)

    def receive(self, length: int, timeout_ms: int) -> memoryview:
        """See `Stream.receive`."""
        until = time.monotonic() + timeout_ms / 1000
        # Memory grows with what has come in, not with what was announced.
        buffer = bytearray(min(length, RECEIVE_BYTES))
        filled = 0
        while filled < length:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError("timed out")
            if filled == len(buffer):
                buffer.extend(bytes(min(length - filled, filled)))
            self._socket.settimeout(left)
            count = self._socket.recv_into(memoryview(buffer)[filled:])
            if count == 0:
                raise ConnectionError("the broker closed the connection")
            filled += count
        return memoryview(buffer)

    def close(self) -> None:
        """See `Stream.close`."""
        self._socket.close()


class TlsStream(TcpStream):
    """A stream over a TLS socket."""

    def __init__(self, sock: "ssl.SSLSocket") -> None:
        super().__init__(sock)
        self._tls = sock

    @property
    def has_pending(self) -> bool:
        """Whether TLS holds bytes that the kernel does not report."""
        return self._tls.pending() > 0

    def receive(self, length: int, timeout_ms: int) -> memoryview:
        """See `Stream.receive`. A broker says only here that it refuses a certificate."""
        try:
            return super().receive(length, timeout_ms)
        except OSError as error:
            reason = getattr(error, "reason", "")
            if "CERTIFICATE" not in reason and "UNKNOWN_CA" not in reason:
                raise
            raise ConnectionError(_REFUSALS.get(reason, _REFUSED)) from error


class TcpTransport:
    """The real world. `tls`: the context of connections with TLS; None for none."""

    def __init__(
        self, tls: "ssl.SSLContext | None" = None, *, login: AnyLogin | None = None
    ) -> None:
        self.login = login
        self._tls = tls

    def connect(self, address: Address, timeout_ms: int) -> Stream:
        """See `Transport.connect`."""
        sock = socket.create_connection(
            (address.host, address.port), timeout=max(timeout_ms, 1) / 1000
        )
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            refuse_itself(sock)
            if self._tls is not None:
                return TlsStream(_secured(sock, self._tls, address.host))
        except OSError:  # The broker has hung up already, or is none.
            sock.close()
            raise
        return TcpStream(sock)

    def wait_readable(self, streams: Sequence[Stream], timeout_ms: int) -> list[Stream]:
        """See `Transport.wait_readable`."""
        poll = select.poll()
        by_descriptor: dict[int, Stream] = {}
        pending = [one for one in streams if isinstance(one, TlsStream) and one.has_pending]
        if pending:
            return list(pending)
        for stream in streams:
            assert isinstance(stream, TcpStream)
            by_descriptor[stream.fileno()] = stream
            poll.register(stream.fileno(), select.POLLIN)
        return [by_descriptor[descriptor] for descriptor, _ in poll.poll(max(timeout_ms, 0))]

    def monotonic_ms(self) -> int:
        """See `Transport.monotonic_ms`."""
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        """See `Transport.wall_ms`."""
        return time.time_ns() // 1_000_000

    def sleep_ms(self, duration_ms: int) -> None:
        """See `Transport.sleep_ms`."""
        time.sleep(max(duration_ms, 0) / 1000)


def _secured(sock: socket.socket, tls: "ssl.SSLContext", host: str) -> "ssl.SSLSocket":
    """Shake hands within the socket's time-out. Raises OSError that says what to mend."""
    import ssl  # It takes longer to load than most commands run.

    try:
        return tls.wrap_socket(sock, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        raise ConnectionError(f"its certificate is not accepted: {error.verify_message}") from error
    except (ssl.SSLEOFError, ConnectionResetError) as error:
        raise ConnectionError("it ended the TLS handshake: it may expect no TLS") from error
    except ssl.SSLError as error:
        if error.reason == "WRONG_VERSION_NUMBER":
            raise ConnectionError("it answers without TLS") from error
        raise ConnectionError(f"the TLS handshake failed: {error.reason or error}") from error
