"""The section of a broker's file that is about logins by tokens.

Owns:   nothing.
Source: decision 0069; Kafka's `sasl.oauthbearer.*`, whose words the keys have."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from strandline.config.addresses import is_loopback
from strandline.config.keys import Value, key

ALGORITHMS = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
    "Ed25519",
)


def check_key_set_url(value: Value) -> str | None:
    """Why keys cannot be read from this URL; None if they can, or if there is none."""
    text = str(value)
    if not text:
        return None
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        return f"must be a URL: {error}"
    if not text.isascii() or not text.isprintable() or " " in text:
        return "must be a URL of printable ASCII without spaces"
    if parts.scheme == "file":
        is_good = not parts.netloc and parts.path.startswith("/")
        return None if is_good else f"must be file:///PATH, not {text!r}"
    if parts.username is not None or parts.fragment:
        return "must be a URL without a user and without a fragment"
    if host and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))):
        return None
    return "must be https://HOST/PATH or file:///PATH; http only on a loopback address"


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthBearerSection:
    """[oauthbearer]: the tokens that clients log in with, where a [[listener]] has OAUTHBEARER
    among its `sasl_mechanisms`. What a token must have, and what it names, is the same on every
    broker. See docs/operating/security-logins.md."""

    jwks_endpoint_url: str = key(
        "",
        "The identity provider's public keys, a JSON Web Key Set: an https URL, or a file as "
        "file:///PATH (Kafka's `sasl.oauthbearer.jwks.endpoint.url`). The broker reads a file "
        "again every 10 s.",
        check=check_key_set_url,
        example="https://id.example/keys",
    )
    jwks_endpoint_refresh_ms: int = key(
        3_600_000,
        "How often the broker fetches the keys from an https URL (Kafka's "
        "`sasl.oauthbearer.jwks.endpoint.refresh.ms`). It fetches them sooner if a token names a "
        "key that it does not know, at most every 10 s. If a fetch fails, the last keys "
        "stay in use.",
        unit="ms",
        minimum=10_000,
        maximum=86_400_000,
    )
    jwks_endpoint_trust: str = key(
        "",
        "A PEM file: the authorities that the URL's certificate may be of; empty for those of the "
        "system.",
        example="/etc/strandline/id-ca.pem",
    )
    expected_issuer: str = key(
        "",
        "The issuer that tokens must name, their `iss` (Kafka's "
        "`sasl.oauthbearer.expected.issuer`). It must be given.",
        example="https://id.example/",
    )
    expected_audience: tuple[str, ...] = key(
        (),
        "Tokens must be for one of these audiences, their `aud` (Kafka's "
        "`sasl.oauthbearer.expected.audience`). It must be given: a token that the identity "
        "provider made for another service is none for this cluster.",
        example="kafka",
    )
    clock_skew_ms: int = key(
        30_000,
        "How far the clocks of broker and identity provider may differ (Kafka's "
        "`sasl.oauthbearer.clock.skew.seconds`).",
        unit="ms",
        minimum=0,
        maximum=600_000,
    )
    sub_claim_name: str = key(
        "sub",
        "The claim that names the user (Kafka's `sasl.oauthbearer.sub.claim.name`).",
        example="preferred_username",
    )
    groups_claim_name: str = key(
        "groups",
        "The claim that lists the user's groups, which rules name as Group:NAME; a token may lack "
        "it. Empty: none is read. A token with more than 1,000 groups, or with one of more than "
        "256 characters, is refused.",
        example="roles",
    )
    algorithms: tuple[str, ...] = key(
        ALGORITHMS,
        "The algorithms that tokens may be signed by.",
        choices=ALGORITHMS,
    )
