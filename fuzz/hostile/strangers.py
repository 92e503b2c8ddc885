"""Attacks without a login: on TLS, on the bounds of bytes and time, on what comes before a login.

How:    an attack is a function of the world and randomness. It raises FindingError."""

import socket
import ssl
import struct
import subprocess
from random import Random

from fuzz import samples
from fuzz.hostile.wire import (
    PATIENCE_S,
    FindingError,
    connect,
    connected,
    drained,
    framed,
    secured,
    send,
)
from fuzz.hostile.world import World
from fuzz.mutations import damaged
from strandline.protocol.apis import API_KEYS, APIS, Api

TLS_ALERT = b"\x15"
TLS_RECORDS = (0x14, 0x15, 0x16, 0x17)
BEFORE_LOGIN = frozenset(
    API_KEYS[name] for name in ("ApiVersions", "SaslHandshake", "SaslAuthenticate")
)
HUNDRED_MB = 100 << 20
HELD_MAX = 200


def clear_bytes_at_a_port_with_tls(world: World, random: Random) -> None:
    """No byte of an answer, but for an alert."""
    port = random.choice((*_tls_ports(world), world.ports.rpc))
    data = random.choice((framed(samples.request(random)), random.randbytes(300), b"GET / H\r\n"))
    with connected(port, random) as sock:
        send(sock, data)
        got = drained(sock)
    if port != world.ports.rpc and got and not got.startswith(TLS_ALERT):
        raise FindingError(f"an answer in the clear at a port with TLS: {got[:32]!r}")


def tls_at_a_port_without(world: World, random: Random) -> None:
    """A greeting of TLS is no request."""
    with connected(world.ports.open, random) as sock:
        send(sock, _greeting(world, random)[1])
        if got := drained(sock):
            raise FindingError(f"an answer to a greeting of TLS in the clear: {got[:32]!r}")


def a_damaged_greeting(world: World, random: Random) -> None:
    """The first record of TLS, damaged."""
    with connected(random.choice(_tls_ports(world)), random) as sock:
        send(sock, damaged(_greeting(world, random)[1], random))
        _expect_tls(drained(sock))


def a_damaged_handshake(world: World, random: Random) -> None:
    """The whole handshake, with damage in the client's second flight or in its first records."""
    client, greeting, incoming, outgoing = _handshake(world, random)
    with connected(random.choice(_tls_ports(world)), random) as sock:
        send(sock, greeting)
        incoming.write(drained(sock))
        try:
            client.do_handshake()
            client.write(framed(samples.request(random)))
        except ssl.SSLError:
            pass
        flight = outgoing.read()
        send(sock, damaged(flight, random) if random.random() < 0.8 else flight[: len(flight) // 2])
        _expect_tls(drained(sock))


def an_early_end(world: World, random: Random) -> None:
    """Half a handshake, and then the end, in order or not."""
    sock = connect(random.choice(_tls_ports(world)), random)
    greeting = _greeting(world, random)[1]
    send(sock, greeting[: random.choice((0, 1, 5, 6, len(greeting) - 1, len(greeting)))])
    if random.random() < 0.5:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def a_client_that_does_not_go_on(world: World, random: Random) -> None:
    """Held open at some stage, as many as the world keeps."""
    stage = random.randrange(5)
    sock: socket.socket = connect(world.ports.login, random)
    greeting = _greeting(world, random)[1]
    if stage == 1:
        send(sock, greeting[: len(greeting) // 2])
    elif stage == 2:
        send(sock, greeting)
    elif stage > 2:
        try:
            sock = world.tls.wrap_socket(sock, server_hostname="localhost")
        except OSError:
            return
        if stage == 4:
            send(sock, struct.pack(">i", 60_000) + b"\0\x11\0\x01")
    world.hold(sock)


def a_renegotiation(world: World, random: Random) -> None:
    """By OpenSSL's client, with TLS 1.2."""
    if random.random() < 0.9:
        return  # A process each time: seldom.
    place = f"127.0.0.1:{world.ports.login}"
    command = ["openssl", "s_client", "-connect", place, "-tls1_2", "-quiet"]
    subprocess.run(command, input=b"R\n" * 20, capture_output=True, timeout=PATIENCE_S, check=False)


def a_request_before_a_login(world: World, random: Random) -> None:
    """Each API and version: none is answered but those of a login."""
    api = random.choice(list(APIS.values()))
    frame = samples.request(random, api)
    got = _ask(world, random, framed(frame))
    if got and api.key not in BEFORE_LOGIN:
        raise FindingError(f"{api.name} was answered before a login: {got[:64].hex()}")
    world.expect_no_secret(frame, got)


def a_damaged_request_before_a_login(world: World, random: Random) -> None:
    """The same, damaged: an answer is one of those that a login has."""
    frame = damaged(samples.request(random, _login_api(random)), random)
    got = _ask(world, random, framed(frame))
    if got and int.from_bytes(frame[:2], "big") not in BEFORE_LOGIN:
        raise FindingError(f"an answer before a login to {frame[:16].hex()}")
    world.expect_no_secret(frame, got)


def a_large_request_announced(world: World, random: Random) -> None:
    """Its size alone takes no memory."""
    size = random.choice((HUNDRED_MB, HUNDRED_MB + 1, (1 << 31) - 1, -1, 0, 7, 65_537))
    got = _ask(world, random, struct.pack(">i", size) + random.randbytes(2_000))
    if got:
        raise FindingError(f"an answer to a frame of {size} bytes before a login")


def many_requests_behind_a_handshake(world: World, random: Random) -> None:
    """SaslHandshake three thousand times, and a request that needs a login in the middle."""
    handshake = framed(samples.request(random, APIS[API_KEYS["SaslHandshake"]]))
    forbidden = framed(samples.request(random, APIS[API_KEYS["Metadata"]]))
    got = _ask(world, random, handshake * 1_500 + forbidden + handshake * 1_500)
    world.expect_no_secret(b"", got)


def a_certificate_with_a_hostile_name(world: World, random: Random) -> None:
    """Of the authority, with an odd name; or of another authority, with the administrator's."""
    context, is_trusted = world.certificate(random)
    frame = world.aimed(random, APIS[API_KEYS["Metadata"]])
    try:
        with secured(world.ports.certificates, random, context) as sock:
            send(sock, framed(frame))
            got = drained(sock)
    except OSError:
        return
    if got and not is_trusted:
        raise FindingError("an answer to a certificate of another authority")
    world.expect_no_secret(frame, got)


def _login_api(random: Random) -> Api:
    return APIS[random.choice(sorted(BEFORE_LOGIN))]


def _ask(world: World, random: Random, data: bytes) -> bytes:
    """What comes back, with TLS or without, to a client that has not logged in."""
    try:
        if random.random() < 0.5:
            with connected(world.ports.open, random) as sock:
                send(sock, data)
                return drained(sock)
        with secured(world.ports.login, random, world.tls) as inner:
            send(inner, data)
            return drained(inner)
    except OSError:
        return b""


def _tls_ports(world: World) -> tuple[int, ...]:
    ports = world.ports
    return ports.login, ports.certificates, ports.tokens, ports.http


def _greeting(world: World, random: Random) -> tuple[ssl.SSLObject, bytes]:
    client, greeting, _, _ = _handshake(world, random)
    return client, greeting


def _handshake(
    world: World, random: Random
) -> tuple[ssl.SSLObject, bytes, ssl.MemoryBIO, ssl.MemoryBIO]:
    """A client of TLS in memory, and its first flight."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    name = random.choice(("localhost", ".".join(("x" * 60,) * 4), "a.b"))
    client = world.lax_tls.wrap_bio(incoming, outgoing, server_hostname=name)
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return client, outgoing.read(), incoming, outgoing


def _expect_tls(got: bytes) -> None:
    if got and got[0] not in TLS_RECORDS:
        raise FindingError(f"an answer that is no record of TLS: {got[:32]!r}")


STRANGERS = (
    clear_bytes_at_a_port_with_tls,
    tls_at_a_port_without,
    a_damaged_greeting,
    a_damaged_handshake,
    an_early_end,
    a_client_that_does_not_go_on,
    a_renegotiation,
    a_request_before_a_login,
    a_damaged_request_before_a_login,
    a_large_request_announced,
    many_requests_behind_a_handshake,
    a_certificate_with_a_hostile_name,
)
