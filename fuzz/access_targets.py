"""What reads the bytes of clients before their login: mechanisms of SASL, tokens, certificates.

How:    a target holds if no damaged input logs in as anybody, nothing but the error of the tree
        comes of it, and it takes little CPU: these steps run on a broker's event loop.
Source: decision 0069; `fuzz.targets` has the others."""

import datetime
import gc
import json
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from functools import cache, wraps
from random import Random

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from strandline.config.principal_rules import PrincipalRules
from strandline.security.certificates import distinguished_name, uri_names
from strandline.security.sasl.mechanism import TOKEN_BYTES_MAX, Mechanism, SaslError
from strandline.security.sasl.oauth_bearer import OAuthBearerServer
from strandline.security.sasl.plain import PlainServer
from strandline.security.sasl.scram import ScramServer
from strandline.security.sasl.secrets import SecretBook, secret_from_password
from strandline.security.sasl.token_keys import TokenKeys, read_key_set
from strandline.security.sasl.tokens import TokenRules
from strandline.security.session import Principal

READ_CPU_MS_MAX = 100.0
"""CPU of one read of an input: more would hold up the requests of others."""
READS_MAX = 5
"""As often is an input read whose read cost more: another process may have had its part of it."""
USER, PASSWORD, MECHANISM = "app", "correct horse", "SCRAM-SHA-256"
BETWEEN = b"\xff\xfe"
"""Between the messages of one exchange: no UTF-8 has it."""
NOW_MS = 1_800_000_000_000
ISSUER, AUDIENCE = "https://id.example/", "kafka"
ODD_NAMES = (
    "e" + "\u0301\u0316" * 9_000,
    "\ufdfa" * 9_000,
    "\u0344" * 9_000,
    "a" * TOKEN_BYTES_MAX,
    "=2C" * 9_000,
    "app\0",
    "app\n",
    "=",
    "=2c",
    "\u00ad",
    "\u0627a",
    "User:admin",
    "*",
    "",
)
RULES = TokenRules(
    issuer=ISSUER, audiences=(AUDIENCE,), algorithms=("ES256", "RS256"), skew_ms=30_000
)
_RULES = PrincipalRules(r"RULE:^CN=(.*?),.*$/$1/, RULE:.*OU=([a-z]+).*/$1/U, DEFAULT")


def step(exchange: Mechanism, message: bytes) -> bytes | None:
    """The answer to one message, None if it is refused."""
    try:
        return exchange.step(message)
    except SaslError as error:
        return error.challenge or None


def bounded(read: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """`read`, which asserts what it may cost too: of a few reads of the same input the cheapest.

    The garbage collector rests meanwhile: what it costs is the size of the process."""

    @wraps(read)
    def read_bounded(data: bytes) -> None:
        least_ms = min(_reads_ms(read, data))
        assert least_ms < READ_CPU_MS_MAX, f"{len(data)} bytes took {least_ms:.0f} ms of CPU"

    return read_bounded


def _reads_ms(read: Callable[[bytes], None], data: bytes) -> Iterator[float]:
    """What reads of `data` cost, until one is cheap enough."""
    for _ in range(READS_MAX):
        was_enabled = gc.isenabled()
        gc.disable()
        begun = time.thread_time()
        try:
            read(data)
            took_ms = (time.thread_time() - begun) * 1000
        finally:
            if was_enabled:
                gc.enable()
        yield took_ms
        if took_ms < READ_CPU_MS_MAX:
            break


@cache
def _book() -> SecretBook:
    secret = secret_from_password(USER, MECHANISM, PASSWORD, iterations=4_096)
    return SecretBook(lambda: {(USER, MECHANISM): secret})


def read_scram(data: bytes) -> None:
    """Messages of SCRAM, up to three: without the password they never log in."""
    exchange = ScramServer(MECHANISM, _book())
    for message in data.split(BETWEEN)[:3]:
        if step(exchange, message) is None:
            break
    assert exchange.principal is None, f"a login as {exchange.principal}"


def read_plain(data: bytes) -> None:
    """A message of PLAIN: only the whole password logs in."""
    exchange = PlainServer(_book())
    step(exchange, data)
    if exchange.principal is not None:
        assert data in (_plain("", PASSWORD), _plain(USER, PASSWORD)), "a login by another password"
        assert exchange.principal == Principal.user(USER)


def read_token(data: bytes) -> None:
    """A message of OAUTHBEARER: a token that is not signed logs in as nobody."""
    keys, rules = _keys(), RULES
    exchange = OAuthBearerServer(lambda: keys, rules, lambda: NOW_MS)
    exchange.lacks_key(data)
    step(exchange, data)
    if exchange.principal is not None:
        assert exchange.principal == Principal.user(USER), f"a login as {exchange.principal}"
        assert _signed().rpartition(".")[0] in data.decode(), (
            "a login by a token that is not signed"
        )


def read_certificate(data: bytes) -> None:
    """The name in a certificate becomes the name of a principal, or is refused."""
    try:
        _RULES.principal_name(distinguished_name(data))
        uri_names(data)
    except ValueError:
        pass


def _scram(random: Random) -> bytes:
    name = random.choice((USER, USER, "nobody", *ODD_NAMES))
    header = random.choice(("n,,", "n,,", "y,,", "p=tls-unique,,", f"n,a={name},", "p=,,", ""))
    nonce = random.choice(("abcdef", "", "x" * 2_000, "\u00e9", "a,b", "%"))
    extra = random.choice(("", "", ",m=x", ",tokenauth=true", ",i=1", ",r=again"))
    first = f"{header}n={name},r={nonce}{extra}"
    bound = b64encode(header.encode()).decode()
    proof = b64encode(random.randbytes(random.choice((32, 32, 0, 1, 64)))).decode()
    counted = random.choice(("", "", ",i=1", f",i={10**30}"))
    last = f"c={bound},r={nonce}{random.choice(('', 'abc'))}{counted},p={proof}"
    return BETWEEN.join((first.encode(), last.encode()))


def _plain(authorised: str, password: str, user: str = USER) -> bytes:
    return b"\0".join(one.encode() for one in (authorised, user, password))


def _plain_message(random: Random) -> bytes:
    password = random.choice((PASSWORD, "", "wrong", "\u0301" * 1_024, "x" * 2_000))
    return _plain(random.choice(("", USER, "admin")), password, random.choice((USER, *ODD_NAMES)))


@cache
def _key_and_token() -> tuple[TokenKeys, str]:
    from joserfc import jwk, jwt

    key = jwk.ECKey.generate_key("P-256", {"kid": "k1"})
    claims = {"sub": USER, "iss": ISSUER, "aud": AUDIENCE, "exp": NOW_MS // 1000 + 600}
    public = key.as_dict(private=False)
    token = jwt.encode({"alg": "ES256", "kid": "k1"}, claims, key)
    return read_key_set(json.dumps({"keys": [public]}).encode()), token


def _keys() -> TokenKeys:
    return _key_and_token()[0]


def _signed() -> str:
    return _key_and_token()[1]


def _token_message(random: Random) -> bytes:
    header, claims, signature = _signed().split(".")
    kind = random.randrange(5)
    if kind == 1:
        header = _encoded({"alg": random.choice(("none", "HS256", "ES256K", "")), "kid": "k1"})
    elif kind == 2:
        claims = _encoded({"sub": "admin", "iss": ISSUER, "aud": AUDIENCE, "exp": 1 << 40})
    elif kind == 3:
        header = _encoded({"alg": "ES256", "kid": random.choice((None, 7, "k" * 9_000, "k2", []))})
        signature = random.choice(("", signature, "A" * 86))
    elif kind == 4:
        header = urlsafe_b64encode(b"[" * random.choice((1, 3_000, 40_000))).decode()
    name = random.choice(("", "", f"a={USER}", "a=admin", "a==2C"))
    more = random.choice(("", "host=x\x01", "auth=Bearer x\x01", "a=b\x01" * 9_000))
    return f"n,{name},\x01{more}auth=Bearer {header}.{claims}.{signature}\x01\x01".encode()


def _encoded(fields: dict[str, object]) -> str:
    return urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")


def certificate(random: Random) -> bytes:
    """A certificate in DER that names its subject oddly."""
    made = certificate_builder(random).sign(certificate_key(), SHA256())
    return made.public_bytes(Encoding.DER)


def certificate_builder(
    random: Random, *, issuer: x509.Name | None = None
) -> x509.CertificateBuilder:
    """The same before it is signed; its own issuer if there is no other."""
    text = random.choice(("app", "a\0b", "a\nUser:admin", "*", ",+=\\", "\u202eppa", "x" * 60))
    names = [x509.NameAttribute(NameOID.COMMON_NAME, text)]
    for _ in range(random.choice((0, 1, 200))):
        names.append(x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, random.choice("ab#; ")))
    subject = x509.Name(names)
    uris = [f"strandline://c/broker/{n}" for n in range(random.choice((0, 1, 1_000)))]
    begin = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer or subject)
        .public_key(certificate_key().public_key())
        .serial_number(1)
        .not_valid_before(begin)
        .not_valid_after(begin + datetime.timedelta(days=9_999))
    )
    if uris:
        others = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(one) for one in uris])
        builder = builder.add_extension(others, critical=False)
    return builder


@cache
def certificate_key() -> EllipticCurvePrivateKey:
    """Of all certificates that are drawn."""
    return generate_private_key(SECP256R1())


ACCESS_TARGETS: dict[str, tuple[Callable[[bytes], None], Callable[[Random], bytes]]] = {
    "scram": (bounded(read_scram), _scram),
    "plain": (bounded(read_plain), _plain_message),
    "token": (bounded(read_token), _token_message),
    "certificate": (bounded(read_certificate), certificate),
}
"""{name: (what reads the input, what draws well-formed input)}."""
