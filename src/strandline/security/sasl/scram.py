"""SCRAM-SHA-256 and SCRAM-SHA-512: a password that never crosses the network.

How:    client-first --> server-first; client-final --> server-final. The library checks nonces and
        proofs; the server stores no password. librdkafka before 2.6.1 repeats its own nonce before
        the whole one: that is accepted, for the proof covers the server's nonce there, too.
Source: RFC 5802, RFC 7677; KIP-84."""

from strandline.security.sasl.mechanism import SaslError
from strandline.security.sasl.secrets import SecretBook
from strandline.security.session import Principal

MESSAGE_BYTES_MAX = 2_048
"""The longest message of a client: the longest name of a user takes 1,024 bytes. The time in which
the library prepares a name grows with the square of its length: 3 s for 64 KB, here 11 ms."""


class ScramServer:
    """See the module; a `Mechanism`."""

    is_refused = False
    is_slow = False
    lifetime_ms: int | None = None
    groups: frozenset[str] = frozenset()

    def __init__(self, mechanism: str, book: SecretBook) -> None:
        from scramp import ScramMechanism

        self.principal: Principal | None = None
        self.name = mechanism
        self.known_user = ""
        self._book = book
        self._user = ""
        self._is_real = False
        self._is_begun = False
        self._exchange = ScramMechanism(mechanism).make_server(self._find)

    def step(self, token: bytes) -> bytes:
        """See `Mechanism`."""
        from scramp import ScramException

        if len(token) > MESSAGE_BYTES_MAX:
            raise SaslError(f"a message of SCRAM of {len(token)} bytes")
        try:
            message = token.decode()
            if not self._is_begun:
                self._is_begun = True
                self._exchange.set_client_first(message)
                return str(self._exchange.get_server_first()).encode()
            self._expect_repeated_nonce(message)
            self._exchange.set_client_final(message)
            answer = str(self._exchange.get_server_final()).encode()
        except (ScramException, ValueError) as error:
            raise SaslError(f"user {self._user!r}: {error}") from error
        if not self._is_real:
            raise SaslError(f"user {self._user!r}: unknown")
        self.principal = Principal.user(self._user)
        return answer

    def _expect_repeated_nonce(self, client_final: str) -> None:
        """If the message has the client's nonce twice, let the library compare it with just that:
        client nonce, client nonce, server nonce."""
        from scramp.core import Nonce

        exchange = self._exchange
        whole = str(exchange.nonce)
        repeated = whole.removesuffix(str(exchange.s_nonce)) + whole
        if f",r={repeated}," in client_final:
            exchange.nonce = Nonce(repeated)

    def _find(self, user: str) -> tuple[bytes, bytes, bytes, int]:
        """The library's question: the salt, the stored key, the server key, the iterations."""
        self._user = user
        secret, self._is_real = self._book.find(user, self.name)
        self.known_user = user if self._is_real else ""
        return secret.salt, secret.stored_key, secret.server_key, secret.iterations
