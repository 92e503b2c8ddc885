"""A client's login by SASL: PLAIN or SCRAM.

How:    SaslHandshake, then one SaslAuthenticate for each message of the mechanism. The library
        checks that the broker knows the password, too.
Source: KIP-152; RFC 4616, RFC 5802."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

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


@dataclass(frozen=True, slots=True)
class Login:
    """The user that a client logs in as. `mechanism`: one of MECHANISMS."""

    mechanism: str
    user: str
    password: str

    def __repr__(self) -> str:
        return f"Login({self.mechanism}, {self.user!r})"

    def run(self, call: Callable[[Message, type[R]], R]) -> None:
        """Log in; `call` sends a request and gives its answer. Raises LoginError."""
        answer = call(SaslHandshakeRequest(self.mechanism), SaslHandshakeResponse)  # type: ignore[arg-type]
        assert isinstance(answer, SaslHandshakeResponse)
        if answer.error_code == Error.UNSUPPORTED_SASL_MECHANISM:
            offered = ", ".join(answer.mechanisms)
            raise LoginError(f"the listener does not offer {self.mechanism}: it offers {offered}")
        if answer.error_code:
            raise LoginError(f"the listener takes no logins: {message_of(answer.error_code)}")

        def step(token: str) -> str:
            request = SaslAuthenticateRequest(token.encode())
            stepped = call(request, SaslAuthenticateResponse)  # type: ignore[arg-type]
            assert isinstance(stepped, SaslAuthenticateResponse)
            if stepped.error_code:
                raise LoginError(
                    f"the login of user {self.user!r} failed: "
                    f"{stepped.error_message or message_of(stepped.error_code)}"
                )
            return stepped.auth_bytes.decode()

        if self.mechanism == PLAIN:
            step(f"\0{self.user}\0{self.password}")
        else:
            self._run_scram(step)

    def _run_scram(self, step: Callable[[str], str]) -> None:
        from scramp import ScramClient, ScramException

        try:
            client = ScramClient([self.mechanism], self.user, self.password)
            client.set_server_first(step(client.get_client_first()))
            client.set_server_final(step(client.get_client_final()))
        except ScramException as error:
            raise LoginError(f"the login of user {self.user!r} failed: {error}") from error
