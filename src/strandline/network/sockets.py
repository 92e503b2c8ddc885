"""Detects a connection to itself, and explains a taken port.

Why:    a broker's port may be in the range that the kernel gives to outgoing connections. A process
        that keeps trying to reach a dead broker on its own host may get that very port for its own
        side, and TCP connects the socket to itself. That looks like a live broker, and the real
        broker cannot listen on its port any more.
Source: RFC 9293 3.5 (simultaneous open); Linux `ip_local_port_range`, `ip_local_reserved_ports`."""

import errno
import os
import socket
import struct


def drop_unsent(sock: socket.socket) -> None:
    """Make `close` drop the data that has not arrived, and free the port at once."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def refuse_itself(sock: socket.socket) -> None:
    """Raise ConnectionRefusedError if both ends of a connection are the same socket: then no broker
    listens there. Raises OSError if the connection has ended already. The caller closes it."""
    if sock.getsockname() == sock.getpeername():
        drop_unsent(sock)
        raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))


def why_not_bound(port: int, error: OSError) -> str:
    """Why a port cannot be listened on."""
    reason = error.strerror or str(error)
    return f"{reason}; {who_has(port)}" if error.errno == errno.EADDRINUSE else reason


def who_has(port: int) -> str:
    """The advice for an operator who looks for the process that has a port."""
    return f"see who has it: ss -tanp 'sport = :{port}'"
