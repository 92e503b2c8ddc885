"""What a token must say, and whose it is: the judgement of a JSON Web Token.

How:    header --> algorithm on the list --> key of the set --> signature --> exp, nbf, iat, iss,
        aud --> user and groups. Nothing that a token says is used before its signature is
        verified, but for the header's `alg` and `kid`, which choose the key.
Owns:   nothing.
Source: RFC 7519, RFC 8725; Kafka's BrokerJwtValidator."""

import base64
import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from strandline.model.access import WILDCARD
from strandline.security.sasl.mechanism import SaslError
from strandline.security.sasl.token_keys import ALGORITHMS, TokenKeys

if TYPE_CHECKING:
    from joserfc.jws import JWSAlgModel, JWSRegistry  # type: ignore[attr-defined]

HEADER_BYTES_MAX = 4 * 1024
USER_LENGTH_MAX = 1_024
GROUPS_MAX = 1_000
GROUP_LENGTH_MAX = 256
"""A token with more groups, or a longer one, is refused as a whole: rules may deny any of them."""
LIFETIME_MS_MAX = 400 * 24 * 3_600_000
"""A token that is good for longer is taken again after that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRules:
    """What is asked of a token.

    issuer:       its `iss`.
    audiences:    one of its `aud` must be among them.
    algorithms:   those of ALGORITHMS that it may be signed by.
    skew_ms:      how far its issuer's clock may be off.
    user_claim:   the claim that names the user.
    groups_claim: the claim that lists the user's groups; a token may lack it. Empty: none."""

    issuer: str
    audiences: tuple[str, ...]
    algorithms: tuple[str, ...]
    skew_ms: int
    user_claim: str = "sub"
    groups_claim: str = "groups"

    def __post_init__(self) -> None:
        assert self.issuer and self.audiences and self.algorithms
        assert all(one in ALGORITHMS for one in self.algorithms)


class VerifiedToken(NamedTuple):
    """What a token proves, and for how long."""

    user: str
    groups: frozenset[str]
    lifetime_ms: int


def header_of(token: str) -> dict[str, object]:
    """The header of a token, which is not verified; raises SaslError."""
    first, dot, _ = token.partition(".")
    if not dot or len(first) > HEADER_BYTES_MAX:
        raise SaslError("a token that is no signed JSON Web Token")
    try:
        header = json.loads(base64.urlsafe_b64decode(first + "=" * (-len(first) % 4)))
    except (ValueError, RecursionError) as error:
        raise SaslError("a token whose header is no JSON") from error
    if not isinstance(header, dict):
        raise SaslError("a token whose header is no object")
    return header


def verify(token: str, keys: TokenKeys, rules: TokenRules, *, now_ms: int) -> VerifiedToken:
    """What the token proves now, in wall-clock time. Raises SaslError: the reason names no secret
    and nothing that is not verified but the header."""
    header = header_of(token)
    algorithm, name = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in rules.algorithms:
        raise SaslError(f"a token signed by {str(algorithm)[:40]!r}, which is not allowed")
    key = keys.find(name, algorithm)
    if key is None:
        raise SaslError(f"a token of an unknown key: {algorithm}, kid {str(name)[:200]!r}")
    claims = _claims(token, key, rules, now_ms // 1000)
    return VerifiedToken(_user(claims, rules), _groups(claims, rules), _lifetime_ms(claims, now_ms))


def _claims(token: str, key: object, rules: TokenRules, now_s: int) -> dict[str, object]:
    from joserfc import jwt
    from joserfc.errors import JoseError

    claims_registry = jwt.JWTClaimsRegistry(
        now_s,
        rules.skew_ms // 1000,
        exp={"essential": True},
        iss={"essential": True, "value": rules.issuer},
        aud={"essential": True, "values": list(rules.audiences)},
    )
    try:
        found = jwt.decode(
            token,
            key,  # type: ignore[arg-type]
            registry=_registry(rules.algorithms),
        )
        claims_registry.validate(found.claims)
    except JoseError as error:
        raise SaslError(f"a token that does not hold: {error}") from error
    except Exception as error:  # The library has no common error for bytes that are no token.
        raise SaslError(f"a token that cannot be read: {type(error).__name__}") from error
    return found.claims


@cache
def _registry(algorithms: tuple[str, ...]) -> "JWSRegistry":
    from joserfc.jws import JWSRegistry

    class Registry(JWSRegistry):
        """Takes the listed algorithms, and no other one: the library's own lists do not count, nor
        its warning of the name EdDSA, which most issuers use."""

        max_header_length = HEADER_BYTES_MAX

        def get_alg(self, name: str) -> "JWSAlgModel":
            if name not in algorithms:
                raise ValueError("another algorithm")
            return self.algorithms[name]

    # Issuers add fields to headers. Critical ones that the library does not know are still refused.
    return Registry(algorithms=algorithms, strict_check_header=False)


def _user(claims: dict[str, object], rules: TokenRules) -> str:
    user = claims.get(rules.user_claim)
    if not _is_name(user, USER_LENGTH_MAX) or user == WILDCARD:
        raise SaslError(f"a token without a user: its {rules.user_claim} is no name")
    assert isinstance(user, str)
    return user


def _is_name(value: object, length_max: int) -> bool:
    """Whether a claim is a name. Others would break lines of logs, or cannot be sent at all: JSON
    may have half of a character."""
    return isinstance(value, str) and 0 < len(value) <= length_max and value.isprintable()


def _groups(claims: dict[str, object], rules: TokenRules) -> frozenset[str]:
    groups = claims.get(rules.groups_claim) if rules.groups_claim else None
    if groups is None:
        return frozenset()
    if isinstance(groups, str):
        groups = [groups]
    if not isinstance(groups, list) or len(groups) > GROUPS_MAX:
        raise SaslError(f"a token whose {rules.groups_claim} are no list of at most {GROUPS_MAX}")
    if not all(_is_name(one, GROUP_LENGTH_MAX) for one in groups):
        raise SaslError(
            f"a token whose {rules.groups_claim} are not all names of at most {GROUP_LENGTH_MAX} "
            "printable characters"
        )
    return frozenset(groups)


def _lifetime_ms(claims: dict[str, object], now_ms: int) -> int:
    """Until `exp`; a second for a token that holds only because clocks differ."""
    ends_s = claims["exp"]
    assert isinstance(ends_s, int | float), "verified above"
    ends_ms = 1000 * min(ends_s, (now_ms + LIFETIME_MS_MAX) // 1000)
    return max(int(ends_ms) - now_ms, 1_000)
