"""PLAIN: a name and a password, in the clear unless TLS protects them.

How:    The password is compared with the user's SCRAM secret, so there is one set of users.
        That takes milliseconds, so it runs on a thread.
Source: RFC 4616; Kafka's PlainSaslServer."""

from strandline.security.sasl.mechanism import SaslError
from strandline.security.sasl.secrets import SecretBook, has_password
from strandline.security.session import Principal

NAME = "PLAIN"
PASSWORD_LENGTH_MAX = 1_024


class PlainServer:
    """See the module; a `Mechanism`."""

    name = NAME
    is_refused = False
    is_slow = True
    lifetime_ms: int | None = None
    groups: frozenset[str] = frozenset()

    def __init__(self, book: SecretBook) -> None:
        self.principal: Principal | None = None
        self.known_user = ""
        self._book = book

    def step(self, token: bytes) -> bytes:
        """See `Mechanism`."""
        user, password = _parse(token)
        secret, is_real = self._book.find_any(user)
        self.known_user = user if is_real else ""
        try:
            is_right = has_password(secret, password)
        except Exception as error:  # A password that the library cannot prepare is a wrong one.
            raise SaslError(f"user {user!r}: a password that cannot be prepared") from error
        if not (is_right and is_real):
            raise SaslError(f"user {user!r}: unknown, or a wrong password")
        self.principal = Principal.user(user)
        return b""


def _parse(token: bytes) -> tuple[str, str]:
    parts = token.split(b"\0")
    if len(parts) != 3:
        raise SaslError("a message that is not of PLAIN")
    try:
        authorised, user, password = (one.decode() for one in parts)
    except UnicodeDecodeError as error:
        raise SaslError("a message of PLAIN that is no UTF-8") from error
    if not user or not password or len(password) > PASSWORD_LENGTH_MAX:
        raise SaslError("a message of PLAIN without a name or a password")
    if authorised not in ("", user):
        raise SaslError(f"user {user!r} asks to act as {authorised!r}")
    return user, password
