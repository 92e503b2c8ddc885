"""The library's client against each mechanism, and everything that proves nothing.

Source: RFC 4616, RFC 5802; CVE-2024-56128 (a nonce that is not checked)."""

import base64
import hashlib
import hmac

import pytest
from bench import scram_client
from scramp import ScramClient, ScramException

from strandline.model.access import ScramSecret
from strandline.security.sasl.mechanism import Mechanism, SaslError
from strandline.security.sasl.plain import PlainServer
from strandline.security.sasl.scram import MESSAGE_BYTES_MAX, ScramServer
from strandline.security.sasl.secrets import (
    HASHES,
    SecretBook,
    has_password,
    secret_from_password,
    secret_of,
)
from strandline.security.session import Principal

PASSWORD = "correct horse"
SCRAMS = sorted(HASHES)
ITERATIONS = 4_096


def book(*users: str) -> SecretBook:
    known: dict[tuple[str, str], ScramSecret] = {}
    for user in users:
        for name in HASHES:
            secret = secret_from_password(user, name, PASSWORD, iterations=ITERATIONS)
            known[user, name] = secret
    return SecretBook(lambda: known)


BOOK = book("alice", "a=b,c")


def log_in(server: Mechanism, name: str, user: str, password: str) -> None:
    client = ScramClient([name], user, password)
    first = server.step(client.get_client_first().encode())
    assert server.principal is None
    client.set_server_first(first.decode())
    last = server.step(client.get_client_final().encode())
    client.set_server_final(last.decode())


@pytest.mark.parametrize("name", SCRAMS)
@pytest.mark.parametrize("user", ["alice", "a=b,c"])
def test_the_right_password(name: str, user: str) -> None:
    server = ScramServer(name, BOOK)
    log_in(server, name, user, PASSWORD)
    assert server.principal == Principal.user(user)


def final_of_older_librdkafka(first: str, challenge: str, *, nonce: str) -> bytes:
    """The message of librdkafka before 2.6.1, which writes `nonce` before the whole one."""
    altered = challenge.replace("r=", f"r={nonce}", 1)
    salted = scram_client.last_message(first, altered, PASSWORD)
    unsigned = salted[: salted.rindex(",p=")]
    signed = ",".join([first.removeprefix("n,,"), challenge, unsigned])
    salt, iterations = (one.split("=", 1)[1] for one in challenge.split(",")[1:3])
    key = hashlib.pbkdf2_hmac("sha512", PASSWORD.encode(), base64.b64decode(salt), int(iterations))
    client_key = hmac.digest(key, b"Client Key", "sha512")
    signature = hmac.digest(hashlib.sha512(client_key).digest(), signed.encode(), "sha512")
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    return f"{unsigned},p={base64.b64encode(proof).decode()}".encode()


@pytest.mark.parametrize("is_own", [True, False])
def test_a_client_may_write_its_own_nonce_twice_and_nothing_else(is_own: bool) -> None:
    server = ScramServer("SCRAM-SHA-512", BOOK)
    first = "n,,n=alice,r=abcdef"
    challenge = server.step(first.encode()).decode()
    last = final_of_older_librdkafka(first, challenge, nonce="abcdef" if is_own else "abcdeg")
    if is_own:
        server.step(last)
        assert server.principal == Principal.user("alice")
    else:
        with pytest.raises(SaslError, match="nonce"):
            server.step(last)


def test_a_final_message_needs_the_nonce_of_the_server() -> None:
    server = ScramServer("SCRAM-SHA-512", BOOK)
    first = "n,,n=alice,r=abcdef"
    challenge = server.step(first.encode()).decode()
    whole = challenge.split(",")[0].removeprefix("r=")
    without = challenge.replace(whole, "abcdef", 1)
    with pytest.raises(SaslError, match="nonce"):
        server.step(final_of_older_librdkafka(first, without, nonce="abcdef"))


@pytest.mark.parametrize("password", [PASSWORD, "wrong"])
def test_the_client_of_the_benchmarks_logs_in_as_the_library_does(password: str) -> None:
    server = ScramServer(scram_client.MECHANISM, BOOK)
    first = scram_client.first_message("alice")
    challenge = server.step(first.encode()).decode()
    last = scram_client.last_message(first, challenge, password)
    if password == PASSWORD:
        server.step(last.encode())
        assert server.principal == Principal.user("alice")
    else:
        with pytest.raises(SaslError):
            server.step(last.encode())


@pytest.mark.parametrize("name", SCRAMS)
def test_the_longest_name_of_a_user_fits_a_message(name: str) -> None:
    user = "\U00020000" * 256
    server = ScramServer(name, book(user))
    log_in(server, name, user, PASSWORD)
    assert server.principal == Principal.user(user)


@pytest.mark.parametrize("name", SCRAMS)
def test_a_long_message_is_refused_before_its_name_is_prepared(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To prepare 64 KB of accents takes 3 s, in which the broker serves no one."""

    def prepare(source: str) -> str:
        raise AssertionError("the library looks at the name")

    monkeypatch.setattr("scramp.core.saslprep", prepare)
    long = "e" + "\u0301" * MESSAGE_BYTES_MAX
    with pytest.raises(SaslError, match="a message of SCRAM of"):
        ScramServer(name, BOOK).step(f"n,,n={long},r=abc".encode())


@pytest.mark.parametrize("name", SCRAMS)
@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("nobody", PASSWORD)])
def test_a_wrong_password_and_an_unknown_user_fail_at_the_same_step(
    name: str, user: str, password: str
) -> None:
    server = ScramServer(name, BOOK)
    client = ScramClient([name], user, password)
    client.set_server_first(server.step(client.get_client_first().encode()).decode())
    with pytest.raises(SaslError):
        server.step(client.get_client_final().encode())
    assert server.principal is None


def test_the_salt_of_an_unknown_user_stays_the_same() -> None:
    first, second = (BOOK.find("nobody", "SCRAM-SHA-256")[0] for _ in range(2))
    assert first.salt == second.salt != BOOK.find("other", "SCRAM-SHA-256")[0].salt
    assert len(first.salt) == len(BOOK.find("alice", "SCRAM-SHA-256")[0].salt)
    assert first.stored_key != second.stored_key


@pytest.mark.parametrize("name", SCRAMS)
def test_a_proof_for_another_nonce_is_none(name: str) -> None:
    ends = []
    for _ in range(2):
        server = ScramServer(name, BOOK)
        client = ScramClient([name], "alice", PASSWORD)
        client.set_server_first(server.step(client.get_client_first().encode()).decode())
        ends.append((server, client.get_client_final().encode()))
    (first, _), (_, foreign) = ends
    with pytest.raises(SaslError):
        first.step(foreign)
    assert first.principal is None


@pytest.mark.parametrize(
    "token", [b"", b"n,,", b"n,,n=alice", b"\xff\xfe", b"p=tls-unique,,n=alice,r=x", b"n,,n=,r=x"]
)
@pytest.mark.parametrize("name", SCRAMS)
def test_what_is_no_message_of_scram(name: str, token: bytes) -> None:
    server = ScramServer(name, BOOK)
    with pytest.raises(SaslError):
        server.step(token)
        server.step(b"c=biws,r=x,p=" + base64.b64encode(b"0" * 32))
    assert server.principal is None


def test_plain() -> None:
    server = PlainServer(BOOK)
    assert server.step(f"\0alice\0{PASSWORD}".encode()) == b""
    assert server.principal == Principal.user("alice")
    again = PlainServer(BOOK)
    again.step(f"alice\0alice\0{PASSWORD}".encode())
    assert again.principal == Principal.user("alice")


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"\0alice\0wrong",
        b"\0nobody\0correct horse",
        b"bob\0alice\0correct horse",
        b"\0alice\0",
        b"\0\0correct horse",
        b"alice\0correct horse",
        b"\0alice\0correct horse\0",
        b"\0alice\0\xff",
        b"\0alice\0" + b"x" * 2_000,
        "\0alice\0\u0627a".encode(),
    ],
)
def test_what_plain_does_not_take(token: bytes) -> None:
    server = PlainServer(BOOK)
    with pytest.raises(SaslError) as raised:
        server.step(token)
    assert server.principal is None
    assert "correct horse" not in str(raised.value)


@pytest.mark.parametrize("name", SCRAMS)
def test_a_salted_password_gives_the_same_secret(name: str) -> None:
    """AlterUserScramCredentials brings it so; the client has done the work."""
    from hashlib import pbkdf2_hmac

    known = secret_from_password("alice", name, PASSWORD, iterations=ITERATIONS)
    salted = pbkdf2_hmac(HASHES[name], PASSWORD.encode(), known.salt, ITERATIONS)
    assert secret_of("alice", name, salted, known.salt, ITERATIONS) == known
    assert has_password(known, PASSWORD) and not has_password(known, "wrong")
    assert PASSWORD not in repr(known) and repr(known.salt) not in repr(known)


def test_a_client_that_gets_a_forged_signature_notices() -> None:
    """The server proves itself, too."""
    server = ScramServer("SCRAM-SHA-256", BOOK)
    client = ScramClient(["SCRAM-SHA-256"], "alice", PASSWORD)
    client.set_server_first(server.step(client.get_client_first().encode()).decode())
    server.step(client.get_client_final().encode())
    with pytest.raises(ScramException):
        client.set_server_final("v=" + base64.b64encode(b"0" * 32).decode())


def test_an_unknown_user_looks_like_some_real_one() -> None:
    """The iterations and the salt's length are told to every client, and take time."""
    known = {
        ("old", "SCRAM-SHA-512"): ScramSecret("old", "SCRAM-SHA-512", 4_096, b"s" * 20, b"", b""),
        ("new", "SCRAM-SHA-512"): ScramSecret("new", "SCRAM-SHA-512", 9_000, b"t" * 32, b"", b""),
        ("new", "SCRAM-SHA-256"): ScramSecret("new", "SCRAM-SHA-256", 5_000, b"u" * 16, b"", b""),
    }
    version = 1
    found = SecretBook(lambda: known, version=lambda: version)

    def shapes(*secrets: ScramSecret) -> set[tuple[str, int, int]]:
        return {(one.mechanism, one.iterations, len(one.salt)) for one in secrets}

    names = [f"nobody-{number}" for number in range(50)]
    made_up = [found.find(name, "SCRAM-SHA-512")[0] for name in names]
    assert shapes(*made_up) == {("SCRAM-SHA-512", 4_096, 20), ("SCRAM-SHA-512", 9_000, 32)}
    assert [found.find(name, "SCRAM-SHA-512")[0].salt for name in names] == [
        one.salt for one in made_up
    ]
    assert shapes(*(found.find_any(name)[0] for name in names)) == {
        ("SCRAM-SHA-512", 4_096, 20),
        ("SCRAM-SHA-256", 5_000, 16),
    }
    del known["old", "SCRAM-SHA-512"]
    version = 2
    assert shapes(*(found.find_any(name)[0] for name in names)) == {("SCRAM-SHA-256", 5_000, 16)}
