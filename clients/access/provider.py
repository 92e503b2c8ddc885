"""An identity provider on loopback: its keys, and tokens for a client's credentials.

Source: RFC 7517 (keys), RFC 6749, 4.4 (client credentials), RFC 7519 (tokens)."""

import base64
import http.server
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from joserfc import jwk, jwt

from strandline.security.authority import Files

ISSUER, AUDIENCE = "https://id.example/", "kafka"
CLIENT_ID, CLIENT_SECRET = "clients", "sesame, open"
USER = "app"
BODY_MAX = 16_384


@dataclass
class Provider:
    """`token_seconds`: how long a token holds; `issued_count`: how many there were."""

    url: str = ""
    token_seconds: int = 600
    issued_count: int = 0
    key: jwk.RSAKey = field(
        default_factory=lambda: jwk.RSAKey.generate_key(2_048, {"kid": "first"})
    )

    @property
    def token_url(self) -> str:
        """Where clients ask for tokens."""
        return f"{self.url}/token"

    @property
    def keys_url(self) -> str:
        """Where brokers read the keys."""
        return f"{self.url}/keys"

    def keys(self) -> dict[str, object]:
        """The public keys."""
        return {"keys": [self.key.as_dict(private=False)]}

    def answer(self, authorization: str, form: dict[str, list[str]]) -> dict[str, object] | None:
        """A token, or None for credentials that are not known."""
        expected = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        if authorization != f"Basic {expected}":
            return None
        if form.get("grant_type") != ["client_credentials"]:
            return None
        self.issued_count += 1
        now = int(time.time())
        times = {"iat": now, "exp": now + self.token_seconds}
        claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": USER, **times}
        token = jwt.encode({"alg": "RS256", "kid": "first"}, claims, self.key)
        return {"access_token": token, "token_type": "Bearer", "expires_in": self.token_seconds}


@contextmanager
def served(files: Files) -> Iterator[Provider]:
    """A provider at `https://localhost:PORT`, with this certificate."""
    provider = Provider()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(200, provider.keys())

        def do_POST(self) -> None:
            body = self.rfile.read(min(int(self.headers.get("Content-Length", 0)), BODY_MAX))
            found = provider.answer(self.headers.get("Authorization", ""), parse_qs(body.decode()))
            self._send(200 if found else 401, found or {"error": "invalid_client"})

        def _send(self, status: int, body: dict[str, object]) -> None:
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        provider.url = f"https://localhost:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield provider
        server.shutdown()
