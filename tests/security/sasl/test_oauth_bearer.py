"""Tokens that hold, and everything that is none.

Source: RFC 7628, RFC 7519; RFC 8725, section 2."""

import base64
import json
import warnings
from functools import cache

import pytest
from joserfc import jwk, jwt
from joserfc.jws import JWSRegistry

from strandline.config import oauthbearer_section
from strandline.security.sasl.mechanism import SaslError
from strandline.security.sasl.oauth_bearer import CHALLENGE, OAuthBearerServer
from strandline.security.sasl.token_keys import (
    ALGORITHMS,
    KeySetError,
    TokenKeys,
    read_key_set,
)
from strandline.security.sasl.tokens import LIFETIME_MS_MAX, TokenRules
from strandline.security.session import Principal

NOW_S = 1_800_000_000
ISSUER, AUDIENCE = "https://id.example/", "kafka"
RULES = TokenRules(
    issuer=ISSUER, audiences=(AUDIENCE, "other"), algorithms=tuple(ALGORITHMS), skew_ms=30_000
)
GOOD: dict[str, object] = {
    "iss": ISSUER,
    "aud": AUDIENCE,
    "sub": "alice",
    "exp": NOW_S + 600,
    "nbf": NOW_S - 10,
    "iat": NOW_S - 10,
}
CURVES = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}


@cache
def key_for(algorithm: str, name: str = "one") -> jwk.Key:
    """A private key for an algorithm; one RSA key for all of them, for they take long to make."""
    if algorithm in CURVES:
        return jwk.ECKey.generate_key(CURVES[algorithm], {"kid": name})
    if ALGORITHMS[algorithm] == "OKP":
        return jwk.OKPKey.generate_key("Ed25519", {"kid": name})
    return rsa_key(name)


@cache
def rsa_key(name: str) -> jwk.RSAKey:
    return jwk.RSAKey.generate_key(2_048, {"kid": name})


def set_of(*keys: jwk.Key, **more: object) -> bytes:
    return json.dumps({"keys": [{**one.as_dict(private=False), **more} for one in keys]}).encode()


def sign(
    claims: dict[str, object],
    *,
    algorithm: str = "ES256",
    key: jwk.Key | None = None,
    header: dict[str, object] | None = None,
) -> str:
    key = key or key_for(algorithm)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # EdDSA has a newer name.
        return jwt.encode(
            {"alg": algorithm, "kid": key.kid, **(header or {})},
            claims,
            key,
            registry=JWSRegistry(algorithms=[algorithm], strict_check_header=False),
        )


def message(token: str, *, start: str = "n,,", more: str = "") -> bytes:
    return f"{start}\x01auth=Bearer {token}\x01{more}\x01".encode()


def server(*keys: jwk.Key, rules: TokenRules = RULES) -> OAuthBearerServer:
    known = read_key_set(set_of(*(keys or (key_for("ES256"),))))
    return OAuthBearerServer(lambda: known, rules, lambda: NOW_S * 1000)


def assert_refused(one: OAuthBearerServer, sent: bytes, reason: str) -> None:
    """The token is refused by a challenge, and the client's next message fails."""
    with pytest.raises(SaslError, match=reason) as raised:
        one.step(sent)
    assert raised.value.challenge == CHALLENGE and not raised.value.is_known
    with pytest.raises(SaslError) as last:
        one.step(b"\x01")
    assert last.value.is_known and not last.value.challenge
    with pytest.raises(SaslError):
        one.step(message(sign(GOOD)))
    assert one.principal is None


def test_the_configuration_offers_the_algorithms_that_there_are() -> None:
    assert tuple(ALGORITHMS) == oauthbearer_section.ALGORITHMS
    assert not any(one == "none" or one.startswith("HS") for one in ALGORITHMS)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_token_that_holds(algorithm: str) -> None:
    one = server(key_for(algorithm))
    assert one.step(message(sign({**GOOD, "groups": ["a", "b"]}, algorithm=algorithm))) == b""
    assert one.principal == Principal.user("alice")
    assert one.groups == {"a", "b"}
    assert one.lifetime_ms == 600_000


@pytest.mark.parametrize(
    ("claims", "lifetime_ms"),
    [
        ({"aud": ["x", AUDIENCE]}, 600_000),
        ({"aud": "other", "groups": "one"}, 600_000),
        ({"exp": NOW_S - 29}, 1_000),
        ({"exp": NOW_S + 1.5}, 1_500),
        ({"exp": 10**30}, LIFETIME_MS_MAX),
        ({"exp": 1e300}, LIFETIME_MS_MAX),
        ({"nbf": NOW_S + 29, "iat": NOW_S + 29}, 600_000),
    ],
)
def test_claims_within_their_bounds(claims: dict[str, object], lifetime_ms: int) -> None:
    one = server()
    one.step(message(sign(GOOD | claims)))
    assert one.principal == Principal.user("alice")
    assert one.lifetime_ms == lifetime_ms


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"exp": NOW_S - 31}, "exp"),
        ({"exp": None}, "exp"),
        ({"exp": "never"}, "exp"),
        ({"exp": True}, "exp"),
        ({"exp": float("nan")}, "exp"),
        ({"exp": float("inf")}, "exp"),
        ({"nbf": NOW_S + 31}, "not yet valid"),
        ({"iat": NOW_S + 31}, "in the future"),
        ({"iss": "https://evil.example/"}, "iss"),
        ({"iss": None}, "iss"),
        ({"iss": [ISSUER]}, "iss"),
        ({"aud": "another"}, "aud"),
        ({"aud": []}, "aud"),
        ({"aud": None}, "aud"),
        ({"aud": {AUDIENCE: 1}}, "aud"),
        ({"sub": None}, "sub"),
        ({"sub": ""}, "sub"),
        ({"sub": 7}, "sub"),
        ({"sub": "x" * 2_000}, "sub"),
        ({"groups": 7}, "groups"),
        ({"groups": ["a", 7]}, "groups"),
        ({"groups": ["a"] * 1_001}, "groups"),
        ({"groups": ["a", "x" * 257]}, "groups"),
        ({"groups": [["a"]]}, "groups"),
        ({"groups": {"a": 1}}, "groups"),
        ({"groups": ""}, "groups"),
        ({"groups": ["a", "b\nc"]}, "groups"),
        ({"sub": "*"}, "sub"),
        ({"sub": "a\nevent=login"}, "sub"),
        ({"sub": ["alice"]}, "sub"),
        ({"exp": float("nan")}, "exp"),
        ({"exp": float("inf")}, "exp"),
        ({"exp": True}, "exp"),
        ({"exp": str(NOW_S + 600)}, "exp"),
        ({"exp": NOW_S - 30}, "expired"),
        ({"nbf": NOW_S + 31}, "not yet valid"),
        ({"nbf": float("nan")}, "nbf"),
        ({"iat": NOW_S + 31}, "in the future"),
        ({"aud": [[AUDIENCE]]}, "aud"),
        ({"aud": f"{AUDIENCE} "}, "aud"),
    ],
)
def test_a_claim_that_does_not_hold(claims: dict[str, object], reason: str) -> None:
    kept = {name: value for name, value in (GOOD | claims).items() if value is not None}
    assert_refused(server(), message(sign(kept)), reason)


def test_a_missing_subject_may_be_named_otherwise() -> None:
    rules = TokenRules(
        issuer=ISSUER,
        audiences=(AUDIENCE,),
        algorithms=("ES256",),
        skew_ms=0,
        user_claim="email",
        groups_claim="roles",
    )
    one = server(rules=rules)
    one.step(message(sign(GOOD | {"email": "a@b.example", "roles": ["r"], "groups": ["g"]})))
    assert (one.principal, one.groups) == (Principal.user("a@b.example"), {"r"})
    assert_refused(server(rules=rules), message(sign(GOOD)), "email")


def base64url(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def part(value: object) -> str:
    return base64url(json.dumps(value).encode())


def test_a_token_without_a_signature_is_none() -> None:
    """RFC 8725, section 2.1."""
    for algorithm in ("none", "None", "NONE", "", None, ["ES256"]):
        for signature in ("", "AAAA"):
            token = f"{part({'alg': algorithm, 'kid': 'one'})}.{part(GOOD)}.{signature}"
            assert_refused(server(), message(token), "not allowed")


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_a_public_key_is_no_shared_secret(algorithm: str) -> None:
    """RFC 8725, section 2.1: an attacker signs by HMAC with the key that anyone may read."""
    public = rsa_key("one")
    for secret in (public.as_pem(private=False), public.as_der(private=False)):
        forged = jwt.encode(
            {"alg": algorithm, "kid": "one"},
            GOOD,
            jwk.OctKey.import_key(base64.urlsafe_b64encode(secret).rstrip(b"=")),
            algorithms=[algorithm],
        )
        assert_refused(server(public), message(forged), "not allowed")


def test_an_algorithm_that_is_not_listed() -> None:
    rules = TokenRules(issuer=ISSUER, audiences=(AUDIENCE,), algorithms=("RS256",), skew_ms=0)
    assert_refused(server(rules=rules), message(sign(GOOD)), "'ES256', which is not allowed")


def test_another_key_of_the_same_name_signs_nothing() -> None:
    forged = sign(GOOD, key=jwk.ECKey.generate_key("P-256", {"kid": "one"}))
    assert_refused(server(), message(forged), "does not hold: bad_signature")
    of_another_kind = sign(GOOD, algorithm="RS256", key=rsa_key("one"))
    assert_refused(server(), message(of_another_kind), "unknown key")


def test_a_token_that_was_changed_is_none() -> None:
    head, _, signature = sign(GOOD).split(".")
    assert_refused(server(), message(f"{head}.{part(GOOD | {'sub': 'admin'})}.{signature}"), "bad")


def test_a_token_that_brings_its_own_key_is_none() -> None:
    """RFC 8725, section 3.10: `jwk`, `jku` and `x5u` are the sender's."""
    own = jwk.ECKey.generate_key("P-256", {"kid": "mine"})
    header: dict[str, object] = {"jwk": own.as_dict(private=False), "jku": "http://127.0.0.1/"}
    assert_refused(server(), message(sign(GOOD, key=own, header=header)), "unknown key")
    header["kid"] = "one"
    assert_refused(server(), message(sign(GOOD, key=own, header=header)), "does not hold")


def test_a_critical_field_that_is_not_known_is_refused() -> None:
    head = part({"alg": "ES256", "kid": "one", "crit": ["x"], "x": 1})
    _, body, signature = sign(GOOD).split(".")
    assert_refused(server(), message(f"{head}.{body}.{signature}"), "token")
    one = server()
    one.step(message(sign(GOOD, header={"x": 1})))
    assert one.principal is not None


def test_an_unknown_key_asks_for_newer_keys_and_is_taken_once_they_are_there() -> None:
    known = [read_key_set(set_of(key_for("ES256")))]
    second = jwk.ECKey.generate_key("P-256", {"kid": "two"})
    sent = message(sign(GOOD, key=second))
    one = OAuthBearerServer(lambda: known[0], RULES, lambda: NOW_S * 1000)
    assert one.lacks_key(sent) and not one.lacks_key(message(sign(GOOD)))
    known[0] = read_key_set(set_of(second))
    assert not one.lacks_key(sent)
    one.step(sent)
    assert one.principal == Principal.user("alice")
    late = OAuthBearerServer(lambda: known[0], RULES, lambda: NOW_S * 1000)
    assert late.lacks_key(message(sign(GOOD)))
    assert_refused(late, message(sign(GOOD)), "unknown key")
    empty = OAuthBearerServer(TokenKeys, RULES, lambda: NOW_S * 1000)
    assert empty.lacks_key(sent)
    assert_refused(empty, sent, "unknown key")


def test_a_token_that_names_no_key() -> None:
    """It is of the only key for its algorithm, or of none."""
    key, other = key_for("ES256"), jwk.ECKey.generate_key("P-256", {"kid": "two"})
    nameless = jwt.encode({"alg": "ES256"}, GOOD, key)
    one = server(key, rsa_key("one"))
    one.step(message(nameless))
    assert one.principal is not None
    assert_refused(server(key, other), message(nameless), "unknown key")


def test_a_client_may_act_as_itself_only() -> None:
    assert server().step(message(sign(GOOD), start="n,a=alice,", more="traceId=1\x01")) == b""
    assert_refused(server(), message(sign(GOOD), start="n,a=admin,"), "to act as 'admin'")
    one = server()
    one.step(message(sign(GOOD | {"sub": "a=b,c"}), start="n,a=a=3Db=2Cc,"))
    assert one.principal == Principal.user("a=b,c")


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\x01",
        b"n,,",
        b"n,,\x01\x01",
        b"\xff\xfe",
        b"y,,\x01auth=Bearer x\x01\x01",
        b"p=tls-unique,,\x01auth=Bearer x\x01\x01",
        b"n,,\x01auth=Basic x\x01\x01",
        b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01auth=Bearer x y\x01\x01",
        b"n,,\x01auth=Bearer x\x01",
        b"n,,\x01auth=Bearer x\x01\x01\x01",
        b"n,,\x01auth=Bearer x\x01auth=Bearer y\x01\x01",
        b"\0alice\0password",
    ],
)
def test_what_is_no_message_of_oauthbearer(sent: bytes) -> None:
    one = server()
    assert not one.lacks_key(sent)
    with pytest.raises(SaslError) as raised:
        one.step(sent)
    assert not raised.value.challenge and one.principal is None


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "x.y.z",
        "..",
        "e30.e30.e30",
        f"{part([])}.{part(GOOD)}.AAAA",
        f"{part({'alg': 'ES256', 'kid': ['one']})}.{part(GOOD)}.AAAA",
        f"{part({'alg': 'ES256', 'kid': 'one'})}.{part(GOOD)}",
        f"{part({'alg': 'ES256', 'kid': 'one'})}.{part(GOOD)}.AAAA.AAAA.AAAA",
        f"{part({'alg': 'ES256', 'kid': 'one'})}.bm8ganNvbg.{'A' * 86}",
        f"{part({'alg': 'ES256', 'kid': 'x' * 5_000})}.{part(GOOD)}.AAAA",
        f"{part({'alg': 'ES256', 'kid': 'one'})}.{'A' * 60_000}.AAAA",
        f"{part({'alg': 'ES256', 'kid': 'one'})}.{part(GOOD)}.{'A' * 60_000}",
        f"{base64.urlsafe_b64encode(b'[' * 3_000).decode()}.{part(GOOD)}.AAAA",
    ],
)
def test_what_is_no_token(token: str) -> None:
    assert_refused(server(), message(token), "token")


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "one' OR '1'='1", "one\x00", "ONE", "one ", "", "*"]
)
def test_the_name_of_a_key_is_compared_and_nothing_else(name: str) -> None:
    """RFC 8725, section 3.10: a name may be a path, or words of a database."""
    forged = sign(GOOD, key=jwk.ECKey.generate_key("P-256", {"kid": name}))
    assert_refused(server(), message(forged), "unknown key")


def sign_text(body: bytes) -> str:
    """A token whose claims are any bytes."""
    signed = f"{part({'alg': 'ES256', 'kid': 'one'})}.{base64url(body)}"
    signature = JWSRegistry.algorithms["ES256"].sign(signed.encode(), key_for("ES256"))
    return f"{signed}.{base64url(signature)}"


@pytest.mark.parametrize("body", [b"[]", b'"x"', b"7", b"null", b"", b'{"sub": "\xff"}', b"NaN"])
def test_a_signed_token_without_an_object(body: bytes) -> None:
    assert_refused(server(), message(sign_text(body)), "token")


@pytest.mark.parametrize("claim", ["sub", "groups"])
def test_half_of_a_character_is_no_name(claim: str) -> None:
    """It could be written to no connection and no file."""
    claims = GOOD | {claim: "\ud800"}
    assert_refused(server(), message(sign_text(json.dumps(claims).encode())), claim)
    claims = GOOD | {claim: "\U0001f600"}
    one = server()
    one.step(message(sign_text(json.dumps(claims).encode())))
    assert one.principal is not None


def test_claims_that_nest_too_deep() -> None:
    deep = b'{"sub":' + b"[" * 20_000
    header = part({"alg": "RS256", "kid": "one"})
    key = rsa_key("one")
    body = base64.urlsafe_b64encode(deep).rstrip(b"=").decode()
    signature = JWSRegistry.algorithms["RS256"].sign(f"{header}.{body}".encode(), key)
    token = f"{header}.{body}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"
    assert_refused(server(key), message(token), "token")


def test_no_reason_has_the_token() -> None:
    token = sign(GOOD | {"aud": "another"})
    with pytest.raises(SaslError) as raised:
        server().step(message(token))
    assert token.split(".")[1] not in str(raised.value) and token[-20:] not in str(raised.value)


def test_keys_that_verify_nothing_are_left_out() -> None:
    good = key_for("ES256")
    short = {"kty": "RSA", "n": "A" * 170, "e": "AQAB", "kid": "short"}
    document = json.dumps(
        {
            "keys": [
                good.as_dict(private=False),
                good.as_dict(private=True),
                {"kty": "oct", "k": "c2VjcmV0", "kid": "s"},
                {**rsa_key("one").as_dict(private=False), "use": "enc"},
                short,
                {"kty": "EC", "crv": "P-256", "x": "AAAA", "y": "AAAA"},
                {"kty": "PQ"},
                7,
            ]
        }
    )
    found = read_key_set(document.encode())
    assert len(found) == 1 and not found.lacks("one") and found.lacks("short")
    reasons = "\n".join(found.left_out)
    assert len(found.left_out) == 7
    for reason in ("key 2: it is a private key", "key 4: it is not for", "key 5: RSA keys have"):
        assert reason in reasons


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"{}",
        b"[]",
        b"7",
        b'{"keys": 7}',
        b'{"keys": []}',
        b'{"keys": [7]}',
        b"[" * 5_000,
        json.dumps({"keys": [{}] * 300}).encode(),
        set_of(rsa_key("one"), use="enc"),
    ],
)
def test_a_set_without_a_key_of_use(document: bytes) -> None:
    with pytest.raises(KeySetError):
        read_key_set(document)
