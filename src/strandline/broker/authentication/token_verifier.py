"""Verifies the tokens of an identity provider, for logins by SASL and for the HTTP port.

Why:    a token that holds at one port holds at the other, and both take new keys at once.
Owns:   the source of the keys.
Source: decision 0069."""

from collections.abc import Callable

from strandline.broker.authentication.key_set_refresh import KeySetRefresh
from strandline.config.broker import BrokerConfig
from strandline.security.sasl import oauth_bearer
from strandline.security.sasl.oauth_bearer import OAuthBearerServer
from strandline.security.sasl.tokens import TokenRules, VerifiedToken, header_of, verify


class TokenVerifier:
    """See the module. `wall_ms`: wall-clock time. Raises OperatorError if the keys' file, or the
    trust, cannot be read."""

    def __init__(self, config: BrokerConfig, *, wall_ms: Callable[[], int]) -> None:
        section = config.oauthbearer
        self._rules = TokenRules(
            issuer=section.expected_issuer,
            audiences=section.expected_audience,
            algorithms=section.algorithms,
            skew_ms=section.clock_skew_ms,
            user_claim=section.sub_claim_name,
            groups_claim=section.groups_claim_name,
        )
        self._wall_ms = wall_ms
        self._keys = KeySetRefresh(section)

    def start(self) -> None:
        """Keep the keys up to date."""
        self._keys.start()

    def stop(self) -> None:
        """Read keys no more."""
        self._keys.stop()

    def begin(self) -> OAuthBearerServer:
        """A login by SASL."""
        return OAuthBearerServer(lambda: self._keys.keys, self._rules, self._wall_ms)

    async def obtain_key(self, exchange: OAuthBearerServer, message: bytes) -> None:
        """Wait for newer keys if the token of a client's message may be of one of them."""
        if exchange.lacks_key(message):
            await self._keys.refresh()

    async def verify(self, token: str) -> VerifiedToken:
        """What a token proves now. Raises SaslError."""
        if self._keys.keys.lacks(header_of(token).get("kid")):
            await self._keys.refresh()
        return verify(token, self._keys.keys, self._rules, now_ms=self._wall_ms())


def verifier_of(config: BrokerConfig, *, wall_ms: Callable[[], int]) -> TokenVerifier | None:
    """The verifier of a broker; None if none of its ports takes tokens. Raises OperatorError."""
    entries = (one.entry for one in config.listeners if one.has_logins)
    if any(one and oauth_bearer.NAME in one.sasl_mechanisms for one in entries) or (
        config.metrics.port and config.metrics.oauthbearer
    ):
        return TokenVerifier(config, wall_ms=wall_ms)
    return None
