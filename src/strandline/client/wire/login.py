"""A client's login by SASL: PLAIN or SCRAM here, tokens in `token_login`.

How:    SaslHandshake, then one SaslAuthenticate for each message of the mechanism. The library
        checks that the broker knows the password, too. The broker says how long the login holds:
        the connection runs it again before.
Source: KIP-152, KIP-368; RFC 4616, RFC 5802."""

from dataclasses import dataclass
from typing import Protocol, TypeVar

from strandline.base.errors import OperatorError
from strandline.client.errors import ClientError
from strandline.protocol.errors import Error, message_of
from strandline.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from strandline.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from strandline.protocol.table import Message

PLAIN = "PLAIN"
MECHANISMS = (PLAIN, "SCRAM-SHA-256", "SCRAM-SHA-512")

R = TypeVar("R", bound=Message)


class LoginError(ClientError, OperatorError):
    """The broker refuses the login: trying again is of no use."""


class Call(Protocol):
    """Sends a request and gives its answer."""

    def __call__(self, request: Message, response: type[R], /) -> R: ...


class AnyLogin(Protocol):
    """How clients log in on each connection."""

    @property
    def user(self) -> str:
        """The user, as far as it is known."""

    def run(self, call: Call) -> int:
        """Log in; how long the login holds, in ms, 0 for no end. Raises LoginError."""


class Exchange:
    """One login on a connection. `who`: what logs in, for messages. Raises LoginError."""

    def __init__(self, call: Call, mechanism: str, who: str) -> None:
        self.lifetime_ms = 0
        self._call = call
        self._who = who
        answer = call(SaslHandshakeRequest(mechanism), SaslHandshakeResponse)
        if answer.error_code == Error.UNSUPPORTED_SASL_MECHANISM:
            offered = ", ".join(answer.mechanisms)
            raise LoginError(f"the listener does not offer {mechanism}: it offers {offered}")
        if answer.error_code:
            raise LoginError(f"the listener takes no logins: {message_of(answer.error_code)}")

    def step(self, token: bytes) -> bytes:
        """The answer to the mechanism's message. Raises LoginError."""
        answer = self._call(SaslAuthenticateRequest(token), SaslAuthenticateResponse)
        if answer.error_code:
            raise LoginError(
                f"the login of {self._who} failed: "
                f"{answer.error_message or message_of(answer.error_code)}"
            )
        self.lifetime_ms = answer.session_lifetime_ms
        return bytes(answer.auth_bytes)


@dataclass(frozen=True, slots=True)
class Login:
    """The user that a client logs in as. `mechanism`: one of MECHANISMS."""

    mechanism: str
    user: str
    password: str

    def __repr__(self) -> str:
        return f"Login({self.mechanism}, {self.user!r})"

    def run(self, call: Call) -> int:
        """See `AnyLogin.run`."""
        exchange = Exchange(call, self.mechanism, f"user {self.user!r}")
        if self.mechanism == PLAIN:
            exchange.step(f"\0{self.user}\0{self.password}".encode())
        else:
            self._run_scram(exchange)
        return exchange.lifetime_ms

    def _run_scram(self, exchange: Exchange) -> None:
        from scramp import ScramClient, ScramException

        def step(message: str) -> str:
            return exchange.step(message.encode()).decode()

        try:
            client = ScramClient([self.mechanism], self.user, self.password)
            client.set_server_first(step(client.get_client_first()))
            client.set_server_final(step(client.get_client_final()))
        except ScramException as error:
            raise LoginError(f"the login of user {self.user!r} failed: {error}") from error


def java_login(login: Login) -> str:
    """The same as Java's clients have it (`sasl.jaas.config`); the password is in it."""
    module = "plain.PlainLoginModule" if login.mechanism == PLAIN else "scram.ScramLoginModule"
    user, password = (
        text.replace("\\", "\\\\").replace('"', '\\"') for text in (login.user, login.password)
    )
    return (
        f"org.apache.kafka.common.security.{module} required "
        f'username="{user}" password="{password}";'
    )
