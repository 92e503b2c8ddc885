"""Opens a connection to another broker, with TLS where both sides have it.

Why:    the other side must be the broker that is wanted, or nothing may be sent to it.
How:    connect --> TLS handshake --> the certificate names the broker that is wanted
            Where TLS is not required, and the other side ends the connection in the middle of the
        handshake, it has TLS off: the connection is opened once more without. A certificate that
        is not accepted never leads there.
Owns:   nothing: the caller gets the socket.
Source: docs/decisions/0069-access.md."""

import asyncio
import logging
import socket
import ssl

from strandline.model.ids import BrokerId
from strandline.network.sockets import refuse_itself
from strandline.security.peers import PeerTls

UNACKNOWLEDGED_MAX_MS = 10_000

_log = logging.getLogger("strandline.network")


async def open_connection(
    address: tuple[str, int], *, tls: PeerTls | None, peer: BrokerId
) -> socket.socket:
    """A connected socket that does not block; an SSLSocket whose handshake is done, if it has
    TLS. Raises OSError."""
    sock = await _connect(address)
    if tls is None:
        return sock
    try:
        return await _secure(sock, tls, peer)
    except ssl.SSLCertVerificationError as error:
        _log.warning(
            "broker %d at %s:%d: its certificate is not accepted: %s",
            peer,
            *address,
            error.verify_message,
        )
        raise
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError, ConnectionError):
        if tls.is_required:
            raise
    return await _connect(address)


async def _connect(address: tuple[str, int]) -> socket.socket:
    loop = asyncio.get_running_loop()
    host, port = address
    info = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    family, kind, protocol, _, found = info[0]
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Whatever port the kernel gives to this side: a broker may listen there all the same.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MAX_MS)
        await loop.sock_connect(sock, found)
        refuse_itself(sock)
    except BaseException:
        sock.close()
        raise
    return sock


async def _secure(sock: socket.socket, tls: PeerTls, peer: BrokerId) -> ssl.SSLSocket:
    """Shake hands, and check which broker the other side is."""
    secured = tls.connecting.wrap_socket(sock, do_handshake_on_connect=False)
    try:
        while True:
            try:
                secured.do_handshake()
                break
            except ssl.SSLWantReadError:
                await _wait(secured, is_writable=False)
            except ssl.SSLWantWriteError:
                await _wait(secured, is_writable=True)
        _check(secured, tls, peer)
    except BaseException:
        secured.close()
        raise
    return secured


def _check(secured: ssl.SSLSocket, tls: PeerTls, peer: BrokerId) -> None:
    """Raise PermissionError, an OSError, if the other side is not the broker that is wanted."""
    try:
        found = tls.broker_of(secured)
    except ValueError as error:
        _log.warning("broker %d is not where it should be: %s", peer, error)
        raise PermissionError(str(error)) from error
    if found != peer:
        _log.warning("broker %d is not where it should be: broker %d is there", peer, found)
        raise PermissionError(f"this is broker {found}")


async def _wait(sock: ssl.SSLSocket, *, is_writable: bool) -> None:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()

    def on_ready() -> None:
        if not ready.done():
            ready.set_result(None)

    if is_writable:
        loop.add_writer(sock.fileno(), on_ready)
    else:
        loop.add_reader(sock.fileno(), on_ready)
    try:
        await ready
    finally:
        if is_writable:
            loop.remove_writer(sock.fileno())
        else:
            loop.remove_reader(sock.fileno())
