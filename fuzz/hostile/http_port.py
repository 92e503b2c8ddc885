"""Attacks on the HTTP port: odd heads, methods, lengths and chunks, slow bytes, tokens.

How:    the port has TLS and takes tokens; without one it shows health alone. An answer is one
        whole response of HTTP with a status that a client can earn, and 200 only for health or with
        a right."""

import re
from base64 import b64encode
from contextlib import ExitStack
from random import Random

from fuzz.hostile.cluster import ADMIN, NOBODY, TOPIC
from fuzz.hostile.wire import LATE_S, PATIENCE_S, FindingError, connect, drained, secured, send
from fuzz.hostile.world import World
from fuzz.mutations import damaged

HEALTH_BYTES_MAX = 40
"""What /healthz and /readyz say, compressed or not."""
BODY_BYTES = 1 << 20
STATUSES = frozenset((200, 400, 401, 403, 404, 405, 408, 411, 413, 414, 417, 431, 501, 505))
NOT_READY = 503
METHODS = (
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "get",
    "G T",
    "PRI",
    "",
    "\0",
)
VERSIONS = ("HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/0.9", "HTTP/11", "", "http/1.1")
PATHS = (
    *("/", "/metrics", "/topics", f"/topics/{TOPIC}", "/v1/topics", f"/v1/topics/{TOPIC}"),
    *("/v1/brokers", "/v1/outages", "/healthz", "/readyz", "/healthz/../metrics", "//metrics"),
    *("/metrics?/healthz", "/healthz?/metrics", "/metrics#/healthz", "/%6detrics", "*"),
    *("http://localhost/metrics", "http://localhost/healthz@/metrics", "/topics/..", "/topics/%00"),
    *("/v1/topics/" + "x" * 9_000, "/healthz\0", "/healthz;/metrics", "\\metrics", "/\u00e9"),
)
ENDS = ("\r\n", "\r\n", "\r\n", "\r\n", "\n", "\r", "\r\n\r\n", "\0")
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) [A-Za-z -]+\r\n")
_LENGTH = re.compile(rb"\r\n[Cc]ontent-[Ll]ength: (\d+)\r\n")


def an_odd_request(world: World, random: Random) -> None:
    """A head that is wrong in some places, a body that is wrong in others."""
    asked = _head(random, _credentials(world, random)) + _body(random)
    judge_strangers(world, asked, _ask(world, random, asked))


def a_damaged_request(world: World, random: Random) -> None:
    """The same, damaged."""
    whole = _head(random, _credentials(world, random))
    asked = damaged(whole, random, _head(random, ()))
    judge_strangers(world, asked, _ask(world, random, asked))


def two_requests_in_one(world: World, random: Random) -> None:
    """Health, and behind it a page that needs a right: one answer."""
    first = b"GET /healthz HTTP/1.1\r\nHost: a\r\n"
    first += random.choice(
        (
            b"\r\n",
            b"Content-Length: 0\r\n\r\n",
            b"Content-Length: 5\r\n\r\n",
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n5c\r\n",
            b"Upgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
            b"Expect: 100-continue\r\n\r\n",
        )
    )
    asked = first + b"GET /v1/topics HTTP/1.1\r\nHost: a\r\n\r\n" * random.choice((1, 200))
    judge_strangers(world, asked, _ask(world, random, asked))


def a_head_that_does_not_end(world: World, random: Random) -> None:
    """Bytes that come one by one, or none any more: the world keeps many such connections."""
    try:
        sock = world.tls.wrap_socket(connect(world.ports.http, random), server_hostname="localhost")
    except OSError:
        return
    head = _head(random, ()).rstrip(b"\r\n")
    for at in range(random.choice((0, 1, 7, 30))):
        if not send(sock, head[at : at + 1]):
            break
    world.hold(sock)


def an_endless_request(world: World, random: Random) -> None:
    """A head or a body of a megabyte: the port reads no body, and no such head."""
    if random.random() < 0.5:
        asked = b"GET /healthz HTTP/1.1\r\nX: " + b"x" * BODY_BYTES
    else:
        asked = b"POST /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n"
        asked += b"x" * BODY_BYTES
    judge_strangers(world, asked, _ask(world, random, asked))


def a_user_without_a_right(world: World, random: Random) -> None:
    """Its token holds, and rules let it see health alone."""
    token = world.broker.provider.token(NOBODY)
    path = random.choice(PATHS[:10])
    asked = f"GET {path} HTTP/1.1\r\nHost: a\r\n{_bearer(token)}\r\n\r\n".encode()
    status = judge_strangers(world, asked, _ask(world, random, asked, pause_s=PATIENCE_S))
    expected = 200 if path in ("/healthz", "/readyz") else 403
    if status != expected:
        raise FindingError(f"{path} gave {status} to a user without a right, not {expected}")


def a_monitor_with_a_right(world: World, random: Random) -> None:
    """No attack: amid the others a token of the file and one of the administrator are served."""
    broker = world.broker
    token = random.choice((broker.http_token, broker.provider.token(ADMIN)))
    asked = f"GET /v1/topics HTTP/1.1\r\nHost: a\r\n{_bearer(token)}\r\n\r\n".encode()
    got = _ask(world, random, asked, pause_s=PATIENCE_S)
    if _response(got, asked) != 200 or TOPIC.encode() not in got:
        raise FindingError(f"no page for a client with a right: {got[:200]!r}")


# ---- requests ------------------------------------------------------------------------------------


def _head(random: Random, credentials: tuple[str, ...]) -> bytes:
    is_odd = random.random() < 0.7
    method = random.choice(METHODS) if is_odd else random.choice(("GET", "GET", "HEAD"))
    version = random.choice(VERSIONS) if is_odd and random.random() < 0.3 else "HTTP/1.1"
    lines = [f"{method} {random.choice(PATHS)} {version}"]
    lines += random.choice((["Host: a"], ["Host: a"], [], ["Host: a", "Host: b"], ["Host:"]))
    lines += credentials
    if is_odd:
        lines += random.choices(_odd_fields(random), k=random.randrange(4))
    end = random.choice(ENDS) if is_odd else "\r\n"
    return (end.join(lines) + end * 2).encode("utf-8")


def _odd_fields(random: Random) -> list[str]:
    size = random.choice(("0", "5", "-1", "+5", "5, 5", "5, 6", "0x5", "9" * 40, " ", "\u0665"))
    return [
        f"Content-Length: {size}",
        f"Content-Length : {size}",
        f"Transfer-Encoding: {random.choice(('chunked', 'xchunked', 'gzip, chunked', ' '))}",
        "X: a\r\n folded",
        " X: a",
        "X",
        ":",
        "X: " + "x" * random.choice((1, 15_000, 20_000)),
        *(["X: y"] * 3),
        "\r\n".join(["X: y"] * 2_000),
        "Accept-Encoding: " + random.choice(("gzip", "gzip;q=", "gzip;q=9" * 500, ",,,")),
        "Expect: 100-continue",
        "Connection: keep-alive, upgrade",
        "X-Forwarded-For: 127.0.0.1",
        "X-Original-URL: /metrics",
        "X: \0",
    ]


def _credentials(world: World, random: Random) -> tuple[str, ...]:
    """None, or such as do not hold."""
    kind = random.randrange(8)
    if kind == 0:
        return (_bearer(world.broker.provider.wrong_token(random, ADMIN)),)
    if kind == 1:
        token = world.broker.http_token
        wrong = random.choice((token[:-1], token + "x", token.upper(), token.swapcase(), "a.b.c"))
        return (_bearer(wrong),)
    if kind == 2:
        text = random.choice((b"admin:", b":", b"", b"\xff:\xff", b"a:" + b"." * 9_000))
        return (f"Authorization: Basic {b64encode(text).decode()}",)
    if kind == 3:
        right = _bearer(world.broker.http_token)
        return (right, random.choice((right, "Authorization: Bearer x")))  # Two are none.
    if kind == 4:
        return (f"Authorization: {random.choice(('Bearer', 'Digest x', 'Basic ==', '', 'x y z'))}",)
    return ()


def _bearer(token: str) -> str:
    return f"Authorization: Bearer {token}"


def _body(random: Random) -> bytes:
    return random.choice(
        (
            b"",
            b"",
            b"xxxxx",
            b"5\r\nxxxxx\r\n0\r\n\r\n",
            b"-1\r\n",
            b"f" * 40 + b"\r\nx",
            b"0\r\n\r\n",
        )
    )


# ---- answers -------------------------------------------------------------------------------------


def _ask(world: World, random: Random, asked: bytes, *, pause_s: float = LATE_S) -> bytes:
    with ExitStack() as stack:
        try:
            sock = stack.enter_context(secured(world.ports.http, random, world.tls))
        except OSError as error:
            raise FindingError(f"no handshake at the HTTP port: {error}") from error
        send(sock, asked)
        return drained(sock, pause_s=pause_s)


def judge_strangers(world: World, asked: bytes, got: bytes) -> int | None:
    """The status of an answer to a client without a right; None without one. Raises
    FindingError."""
    world.expect_no_secret(asked, got)
    status = _response(got, asked)
    if status == 200 and _length(got) > HEALTH_BYTES_MAX:
        raise FindingError(f"a page without a right, to {asked[:200]!r}: {got[:300]!r}")
    return status


def _response(got: bytes, asked: bytes) -> int | None:
    """The status of one whole response; None without one. Raises FindingError if it is none, or
    has more behind it."""
    if not got:
        return None
    beginning = _STATUS.match(got)
    if beginning is None or b"\r\n\r\n" not in got:
        raise FindingError(f"no response of HTTP to {asked[:200]!r}: {got[:300]!r}")
    status = int(beginning[1])
    if status not in STATUSES and status != NOT_READY:
        raise FindingError(f"the status {status} to {asked[:200]!r}")
    body = got.partition(b"\r\n\r\n")[2]
    if body and len(body) != _length(got):
        raise FindingError(f"{len(body)} bytes of a body of {_length(got)} to {asked[:200]!r}")
    return status


def _length(got: bytes) -> int:
    found = _LENGTH.search(got.partition(b"\r\n\r\n")[0] + b"\r\n")
    if found is None:
        raise FindingError(f"a response without a length: {got[:300]!r}")
    return int(found[1])


HTTP = (
    *(an_odd_request,) * 6,
    *(a_damaged_request,) * 6,
    *(two_requests_in_one,) * 2,
    *(a_head_that_does_not_end,) * 4,
    an_endless_request,
    a_user_without_a_right,
    a_monitor_with_a_right,
)
