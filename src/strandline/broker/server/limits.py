"""Every bound that the server sets on Kafka clients, with its unit.

Source: STYLE, rule 5; reliability reference 4 (length before memory, always)."""

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB

FRAME_BYTES_MIN = 8
"""API key, version and correlation id: the smallest request."""

LARGE_FRAME_BYTES = 64 * KIB
"""A larger frame that is not complete gets its own buffer, which becomes the request's."""

RECEIVE_BYTES = 256 * KIB
"""The most that one system call reads into the shared buffer; also a large frame's first buffer."""

PEEK_BYTES = 4 * KIB
"""How much of an expected large frame is read into the shared buffer, to learn its length."""

TRUSTED_BYTES_MAX = 4 * MIB
"""A connection that has sent frames this large gets as much at once for its next one."""

SENDFILE_BYTES_MIN = 64 * KIB
"""From this size on the kernel sends a file range; below, a read and a write are cheaper."""

WRITE_BYTES_PER_PASS = 4 * MIB
"""One connection's share of a pass of the loop."""

IOVEC_COUNT_MAX = 256

UNKNOWN_BYTES_MAX = 64 * KIB
"""The longest frame of a client that has not logged in yet."""

UNKNOWN_REQUESTS_MAX = 1
"""Requests in work of such a client: it tries one password at a time."""


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Bounds that hold for a connection (`connection_...`) or for the whole broker.

    request_bytes_max:        a longer frame closes its connection (socket.request.max.bytes).
    connection_count_max:     connections at one time; more are closed at once.
    connection_count_per_address_max: the same from one address.
    connection_count_per_user_max: the same of one user that has logged in or shown a certificate.
    connection_idle_ms:       without a request, or without taking its answers, for so long: closed.
    connection_requests_max:  requests of one connection in work; beyond it its socket is not read.
    connection_bytes_max:     the same in bytes of requests.
    connection_backlog_bytes_max: bytes of answers that a client has not taken; beyond it, the same.
    inflight_bytes_max:       bytes of requests in work, all connections; beyond it no socket is
    read.
    partial_bytes_max:        memory of frames that have not come in whole; beyond it the connection
                              that has been longest at its frame is closed.
    handshake_ms:             a client has so long for a TLS handshake.
    login_ms:                 a client has so long for its login.
    login_count_max:          connections that have not logged in; beyond it the one that was opened
                              first is closed.
    handshake_count_max:      TLS handshakes in progress; beyond it the one that has waited longest
                              for its client is closed."""

    request_bytes_max: int = 100 * MIB
    connection_count_max: int = 10_000
    connection_count_per_address_max: int = 1_000_000
    connection_count_per_user_max: int = 1_000_000
    connection_idle_ms: int = 600_000
    connection_requests_max: int = 128
    connection_bytes_max: int = 32 * MIB
    connection_backlog_bytes_max: int = 4 * MIB
    inflight_bytes_max: int = 128 * MIB
    partial_bytes_max: int = 256 * MIB
    handshake_ms: int = 10_000
    login_ms: int = 20_000
    login_count_max: int = 1_000
    handshake_count_max: int = 1_000
