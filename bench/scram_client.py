"""SCRAM by hand, for a client that logs in thousands of times.

Why:    a client of the library hashes its password anew at each login, 8,192 times: the load would
        measure itself. Here it is hashed once for each salt.
Source: RFC 5802."""

import base64
import hashlib
import hmac
import secrets
import socket
import ssl
import struct
from functools import cache

from strandline.protocol.codec import decode
from strandline.protocol.headers import decode_response_header, encode_request
from strandline.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from strandline.protocol.messages.sasl_handshake import SaslHandshakeRequest
from strandline.protocol.table import Message

MECHANISM, HASH = "SCRAM-SHA-256", "sha256"
HANDSHAKE_VERSION, AUTHENTICATE_VERSION = 1, 2
HEADER = "n,,"
CONNECT_S = 60.0


def connect(port: int, context: ssl.SSLContext, *, source: str = "127.0.0.1") -> ssl.SSLSocket:
    """A connection whose TLS handshake is done, from an address of this machine."""
    sock = socket.create_connection(
        ("127.0.0.1", port), timeout=CONNECT_S, source_address=(source, 0)
    )
    try:
        return context.wrap_socket(sock, server_hostname="localhost")
    except OSError:
        sock.close()
        raise


def begin(sock: ssl.SSLSocket, user: str) -> tuple[str, str]:
    """The first half of a login; (the client's first message, the broker's)."""
    ask(sock, SaslHandshakeRequest(MECHANISM), HANDSHAKE_VERSION)
    first = first_message(user)
    return first, step(sock, first)


def log_in(sock: ssl.SSLSocket, user: str, password: str) -> None:
    """A whole login. Raises PermissionError if it is refused."""
    step(sock, last_message(*begin(sock, user), password))


def first_message(user: str) -> str:
    """The client's first message; the name has neither a comma nor an equals sign."""
    return f"{HEADER}n={user},r={secrets.token_urlsafe(18)}"


def last_message(first: str, challenge: str, password: str) -> str:
    """The client's last message: its proof."""
    fields = dict(part.split("=", 1) for part in challenge.split(","))
    bound = f"c={base64.b64encode(HEADER.encode()).decode()},r={fields['r']}"
    key = _client_key(password, fields["s"], int(fields["i"]))
    stored = hashlib.new(HASH, key).digest()
    signed = f"{first.removeprefix(HEADER)},{challenge},{bound}"
    signature = hmac.digest(stored, signed.encode(), HASH)
    proof = bytes(one ^ other for one, other in zip(key, signature, strict=True))
    return f"{bound},p={base64.b64encode(proof).decode()}"


def step(sock: ssl.SSLSocket, text: str) -> str:
    """One message of the mechanism, and the answer to it."""
    frame = ask(sock, SaslAuthenticateRequest(text.encode()), AUTHENTICATE_VERSION)
    _, position = decode_response_header(
        frame, SaslAuthenticateRequest.API_KEY, AUTHENTICATE_VERSION
    )
    answer, _ = decode(SaslAuthenticateResponse, frame, position, AUTHENTICATE_VERSION)
    if answer.error_code:
        raise PermissionError(answer.error_message)
    return answer.auth_bytes.decode()


def ask(sock: ssl.SSLSocket, message: Message, version: int) -> bytes:
    """One request; its answer without the size."""
    frame = encode_request(message, version, correlation_id=1, client_id="bench")
    sock.sendall(struct.pack(">i", len(frame)) + frame)
    (size,) = struct.unpack(">i", _exactly(sock, 4))
    return _exactly(sock, size)


def _exactly(sock: ssl.SSLSocket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        chunk = sock.recv(size - len(found))
        if not chunk:
            raise ConnectionResetError("the broker ended the connection")
        found += chunk
    return bytes(found)


@cache
def _client_key(password: str, salt: str, iterations: int) -> bytes:
    salted = hashlib.pbkdf2_hmac(HASH, password.encode(), base64.b64decode(salt), iterations)
    return hmac.digest(salted, b"Client Key", HASH)
