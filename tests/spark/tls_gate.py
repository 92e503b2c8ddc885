"""A gate in front of a broker: TLS and a login by SASL/PLAIN, which Strandline's brokers lack.

How:    the broker tells clients the gate's port. For each connection the gate ends TLS, passes
        ApiVersions on, answers the handshake, compares user and password, and then copies bytes.
Source: KIP-12, KIP-43: SaslHandshake v0, whose tokens travel without a request's header."""

import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

USER, PASSWORD = "lake-reader", "pa55-of-the-lake"
_HANDSHAKE, _VERSIONS = 17, 18
_TOKEN = f"\0{USER}\0{PASSWORD}".encode()


def make_certificate(directory: Path) -> Path:
    """A file with a key and a certificate for 127.0.0.1 that signs itself; `ca.pem` beside it has
    the certificate alone."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    address = x509.IPAddress(ip_address("127.0.0.1"))
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost"), address]), False)
        .sign(key, hashes.SHA256())
    )
    pem = built.public_bytes(serialization.Encoding.PEM)
    (directory / "ca.pem").write_bytes(pem)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (directory / "gate.pem").write_bytes(private + pem)
    return directory / "gate.pem"


@contextmanager
def open_gate(port: int, broker_port: int, certificate: Path) -> Iterator[list[str]]:
    """Serves on the port; yields what each login was, "good" or "bad"."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    logins: list[str] = []
    with socket.create_server(("127.0.0.1", port)) as listener:
        threading.Thread(
            target=_accept, args=(listener, context, broker_port, logins), daemon=True
        ).start()
        yield logins
        listener.shutdown(socket.SHUT_RDWR)


def _accept(
    listener: socket.socket, context: ssl.SSLContext, broker_port: int, logins: list[str]
) -> None:
    with suppress(OSError):
        while True:
            plain, _ = listener.accept()
            threading.Thread(
                target=_serve, args=(plain, context, broker_port, logins), daemon=True
            ).start()


def _serve(
    plain: socket.socket, context: ssl.SSLContext, broker_port: int, logins: list[str]
) -> None:
    with (
        suppress(OSError, EOFError),
        context.wrap_socket(plain, server_side=True) as client,
        socket.create_connection(("127.0.0.1", broker_port)) as broker,
    ):
        while True:
            frame = _frame(client)
            if frame[:2] == struct.pack(">h", _VERSIONS):
                _send(broker, frame)
                _send(client, _with_handshake(_frame(broker), version=frame[3]))
            elif frame[:2] == struct.pack(">h", _HANDSHAKE):
                _send(client, frame[4:8] + struct.pack(">hih", 0, 1, 5) + b"PLAIN")
            else:
                break
        logins.append("good" if frame == _TOKEN else "bad")
        if frame == _TOKEN:
            _send(client, b"")
            _copy_both(client, broker)


def _with_handshake(answer: bytes, *, version: int) -> bytes:
    """The broker's ApiVersions, and SaslHandshake v0 in front of them."""
    head, entry = answer[:6], struct.pack(">hhh", _HANDSHAKE, 0, 0)
    if version >= 3:
        assert answer[6] < 127, "the number of APIs has one byte"
        return head + bytes([answer[6] + 1]) + entry + b"\0" + answer[7:]
    (count,) = struct.unpack(">i", answer[6:10])
    return head + struct.pack(">i", count + 1) + entry + answer[10:]


def _copy_both(client: ssl.SSLSocket, broker: socket.socket) -> None:
    """Frames from the client, whose answers come in order; a client may send several at once."""

    def back() -> None:
        with suppress(OSError, EOFError):
            while True:
                _send(client, _frame(broker))

    thread = threading.Thread(target=back, daemon=True)
    thread.start()
    with suppress(OSError, EOFError):
        while True:
            _send(broker, _frame(client))
    broker.shutdown(socket.SHUT_RDWR)
    thread.join()


def _frame(connection: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", _exactly(connection, 4))
    return _exactly(connection, size)


def _exactly(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = connection.recv(size - len(found))
        if not part:
            raise EOFError
        found += part
    return found


def _send(connection: socket.socket, frame: bytes) -> None:
    connection.sendall(struct.pack(">i", len(frame)) + frame)
