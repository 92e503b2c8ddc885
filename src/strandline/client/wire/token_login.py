"""A client's login by OAUTHBEARER: with a token of an identity provider.

How:    SaslHandshake, then SaslAuthenticate with the token. A broker that refuses it answers a
        challenge; the client answers that, and gets the error.
Source: RFC 7628; KIP-255, KIP-768."""

from dataclasses import dataclass

from strandline.client.wire.access_token import TokenSource
from strandline.client.wire.login import Call, Exchange, LoginError

MECHANISM = "OAUTHBEARER"


@dataclass(frozen=True, slots=True)
class TokenLogin:
    """A login whose token comes from `source`."""

    source: TokenSource

    def __repr__(self) -> str:
        return f"TokenLogin({self.source.place})"

    @property
    def user(self) -> str:
        """The token's `sub`: brokers may take another claim."""
        return self.source.subject

    def run(self, call: Call) -> int:
        """See `AnyLogin.run`. Raises TokenError, too."""
        token = self.source.token()
        exchange = Exchange(call, MECHANISM, f"the token of {self.source.place}")
        refused = exchange.step(b"n,,\x01auth=Bearer " + token.encode() + b"\x01\x01")
        if refused:
            self.source.drop()
            exchange.step(b"\x01")
            raise LoginError(f"the broker refuses the token of {self.source.place}")
        return exchange.lifetime_ms
