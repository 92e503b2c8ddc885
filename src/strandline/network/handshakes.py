"""The TLS handshakes of connections that have just been accepted.

Why:    a handshake costs a millisecond of CPU, and thousands of clients come at once after an
        outage: requests of others must get their turn. And a client that never finishes may not
        hold memory for long.
How:    WAITING --the client's bytes--> READY --a step--> WAITING | done | refused
            Each pass of the loop takes a few steps, the client first that has waited longest.
        Above the bound, the connection that has waited longest for its client ends.
            A client whose first byte is no TLS greeting is told apart before TLS sees it.
Owns:   the sockets until their handshake is done.
Source: docs/decisions/0069-access.md; RFC 8446 (records); OpenSSL's SSL_do_handshake(3)."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from strandline.security.tls import why_not_resumed

STEPS_PER_PASS = 2
"""Handshakes that go on in one pass of the loop: with certificates on both sides, 4 ms."""
TLS_HANDSHAKE_BYTE = b"\x16"
_REASONS = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client showed no certificate, and must",
    "UNSUPPORTED_PROTOCOL": "the client speaks no version of TLS that is new enough",
    "NO_SHARED_CIPHER": "the client and the broker have no cipher in common",
    "TLSV1_ALERT_UNKNOWN_CA": "the client does not trust the broker's certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the client refuses the broker's certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the client refuses the broker's certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the client finds the broker's certificate expired",
    "HTTP_REQUEST": "a client without TLS came to a port with TLS",
    "WRONG_VERSION_NUMBER": "a client without TLS came to a port with TLS",
    "UNEXPECTED_EOF_WHILE_READING": "the client went in the middle of the TLS handshake",
}

T = TypeVar("T")
_log = logging.getLogger("strandline.network")


class Handshakes(Generic[T]):
    """See the module. `T` is the type of what the owner keeps for a connection, such as its
    listener.

    context_of: the context for the next handshake.
    on_done:    gets the socket and the client's address; it raises ValueError, with the reason, if
                the client may not come in.
    on_refused: gets the client's address and the reason; the socket is closed.
    on_plain:   gets a connection that begins without TLS; None refuses it."""

    def __init__(
        self,
        *,
        timeout_ms: int,
        count_max: int,
        context_of: Callable[[T], ssl.SSLContext],
        on_done: Callable[[ssl.SSLSocket, str, T], None],
        on_refused: Callable[[str, T, str], None],
        on_plain: Callable[[socket.socket, str, T], None] | None = None,
    ) -> None:
        self.context_of = context_of
        self.on_done = on_done
        self.on_refused = on_refused
        self.on_plain = on_plain
        self._timeout_ms = timeout_ms
        self._count_max = count_max
        self._loop = asyncio.get_running_loop()
        # Those that wait for their client, since the longest time first: {handshake: None}.
        self._waiting: dict[Handshake[T], None] = {}
        self._ready: deque[Handshake[T]] = deque()
        self._is_step_due = False

    @property
    def count(self) -> int:
        """Handshakes in progress."""
        return len(self._waiting) + len(self._ready)

    def count_of(self, host: str) -> int:
        """Those of an address. Looks at each."""
        return sum(one.host == host for one in (*self._waiting, *self._ready))

    def begin(self, sock: socket.socket, host: str, what: T) -> None:
        """Begin the handshake of a client that has just connected."""
        if self.count >= self._count_max:
            slowest = next(iter(self._waiting), None) or self._ready[-1]
            slowest.close(f"more than {self._count_max} TLS handshakes are in progress")
        handshake = Handshake(sock, host, what, owner=self)
        handshake.timer = self._loop.call_later(
            self._timeout_ms / 1000,
            handshake.close,
            f"no TLS handshake within {self._timeout_ms} ms",
        )
        self.wait(handshake)

    def stop(self) -> None:
        """Close all."""
        for handshake in [*self._waiting, *self._ready]:
            handshake.close()

    def wait(self, handshake: Handshake[T]) -> None:
        """Wait for the client."""
        self._waiting[handshake] = None
        fd = handshake.sock.fileno()
        watch = self._loop.add_writer if handshake.wants_write else self._loop.add_reader
        watch(fd, self._on_client, handshake)

    def forget(self, handshake: Handshake[T]) -> None:
        """A handshake is over: watch its socket no longer."""
        if handshake in self._waiting:
            del self._waiting[handshake]
            self._unwatch(handshake)
        elif handshake in self._ready:
            self._ready.remove(handshake)

    def _unwatch(self, handshake: Handshake[T]) -> None:
        fd = handshake.sock.fileno()
        (self._loop.remove_writer if handshake.wants_write else self._loop.remove_reader)(fd)

    def _on_client(self, handshake: Handshake[T]) -> None:
        del self._waiting[handshake]
        self._unwatch(handshake)
        self._ready.append(handshake)
        self._step_soon()

    def _step_soon(self) -> None:
        if self._ready and not self._is_step_due:
            self._is_step_due = True
            self._loop.call_soon(self._step)

    def _step(self) -> None:
        self._is_step_due = False
        for _ in range(min(STEPS_PER_PASS, len(self._ready))):
            self._ready.popleft().step()
        self._step_soon()


class Handshake(Generic[T]):
    """One handshake, which `Handshakes` drives."""

    __slots__ = ("_owner", "_what", "host", "sock", "timer", "wants_write")

    def __init__(self, sock: socket.socket, host: str, what: T, *, owner: Handshakes[T]) -> None:
        self.sock = sock
        self.wants_write = False
        self.timer: asyncio.TimerHandle | None = None
        self.host = host
        self._what = what
        self._owner = owner

    def step(self) -> None:
        """Go on, as far as the client's bytes reach."""
        try:
            if not isinstance(self.sock, ssl.SSLSocket) and not self._begin():
                return
            assert isinstance(self.sock, ssl.SSLSocket)
            self.sock.do_handshake()
            reason = why_not_resumed(self.sock)
            if reason is not None:
                raise ValueError(reason)
            self._owner.on_done(self.sock, self.host, self._what)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError) as error:
            self.wants_write = isinstance(error, ssl.SSLWantWriteError)
            self._owner.wait(self)
            return
        except ssl.SSLError as error:
            self.close(why_refused(error))
            return
        except ConnectionError:
            self.close()
            return
        except (OSError, ValueError) as error:
            self.close(str(error))
            return
        except Exception:  # A task boundary: one handshake may fail, the others go on.
            _log.exception("the TLS handshake of %s failed", self.host)
            self.close()
            return
        self._cancel_timer()

    def close(self, reason: str = "") -> None:
        """End it, and report the reason if there is one."""
        if self.sock.fileno() < 0:
            return
        self._cancel_timer()
        self._owner.forget(self)
        self.sock.close()
        if reason:
            self._owner.on_refused(self.host, self._what, reason)

    def _begin(self) -> bool:
        """Put TLS over the socket; False if the connection goes on without. Raises ValueError if
        it may not."""
        first = self.sock.recv(1, socket.MSG_PEEK)
        if not first:
            raise ConnectionResetError
        if first != TLS_HANDSHAKE_BYTE:
            if self._owner.on_plain is None:
                raise ValueError("a client without TLS came to a port with TLS")
            self._cancel_timer()
            self._owner.on_plain(self.sock, self.host, self._what)
            return False
        context = self._owner.context_of(self._what)
        self.sock = context.wrap_socket(self.sock, server_side=True, do_handshake_on_connect=False)
        return True

    def _cancel_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


def why_refused(error: ssl.SSLError) -> str:
    """Why a handshake failed, in one line."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client's certificate is not accepted: {error.verify_message}"
    return _REASONS.get(error.reason, f"the TLS handshake failed: {error.reason or error}")
