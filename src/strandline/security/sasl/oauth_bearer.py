"""OAUTHBEARER: a token that an identity provider has signed.

How:    client: n,,^Aauth=Bearer TOKEN^A^A  -->  it holds: done, with an empty answer
                                            -->  it does not: {"status":"invalid_token"}
        client: ^A                          -->  failure
Source: RFC 7628; KIP-255, KIP-342, KIP-768."""

import re
from collections.abc import Callable

from strandline.security.sasl.mechanism import SaslError
from strandline.security.sasl.token_keys import TokenKeys
from strandline.security.sasl.tokens import TokenRules, header_of, verify
from strandline.security.session import Principal

NAME = "OAUTHBEARER"
CHALLENGE = b'{"status":"invalid_token"}'
_FIRST = re.compile(
    r"n,(?:a=((?:[^=,\x00]|=2C|=3D)+))?,\x01((?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
)
_CREDENTIALS = re.compile(r"(\w+) +([-_.~+/a-zA-Z0-9]+=*)")


class OAuthBearerServer:
    """See the module; a `Mechanism`. `keys`: those that count now; `now_ms`: wall-clock time."""

    name = NAME
    known_user = ""
    is_slow = False

    def __init__(
        self, keys: Callable[[], TokenKeys], rules: TokenRules, now_ms: Callable[[], int]
    ) -> None:
        self.principal: Principal | None = None
        self.groups: frozenset[str] = frozenset()
        self.lifetime_ms: int | None = None
        self._keys, self._rules, self._now_ms = keys, rules, now_ms
        self.is_refused = False

    def lacks_key(self, token: bytes) -> bool:
        """Whether a newer set of keys could change the answer to this message of the client."""
        try:
            return not self.is_refused and self._keys().lacks(
                header_of(_parse(token)[1]).get("kid")
            )
        except SaslError:
            return False

    def step(self, token: bytes) -> bytes:
        """See `Mechanism`."""
        if self.is_refused:
            raise SaslError("the token was refused", is_known=True)
        authorised, bearer = _parse(token)
        try:
            found = verify(bearer, self._keys(), self._rules, now_ms=self._now_ms())
            if authorised not in ("", found.user):
                raise SaslError(f"user {found.user!r} asks to act as {authorised!r}")
        except SaslError as error:
            self.is_refused = True
            raise SaslError(str(error), challenge=CHALLENGE) from error
        self.groups, self.lifetime_ms = found.groups, found.lifetime_ms
        self.principal = Principal.user(found.user)
        return b""


def _parse(message: bytes) -> tuple[str, str]:
    """The user that the client wants to act as, "" for the token's, and the token."""
    try:
        first = _FIRST.fullmatch(message.decode())
    except UnicodeDecodeError as error:
        raise SaslError("a message of OAUTHBEARER that is no UTF-8") from error
    if first is None:
        raise SaslError("a message that is not of OAUTHBEARER")
    pairs = [one.partition("=") for one in first[2].split("\x01")[:-1]]
    values = [value for name, _, value in pairs if name == "auth"]
    credentials = _CREDENTIALS.fullmatch(values[0].strip()) if len(values) == 1 else None
    if credentials is None or credentials[1].lower() != "bearer":
        raise SaslError("a message of OAUTHBEARER without one bearer token")
    authorised = (first[1] or "").replace("=2C", ",").replace("=3D", "=")
    return authorised, credentials[2]
