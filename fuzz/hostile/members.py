"""Attacks by a user that has logged in and has no right: each API, damaged or not, aimed at what is
secret.

How:    an answer may say only what the request said, and every part of it that is about something
        secret is an error. What the request would change must be the same afterwards."""

import struct
from random import Random

from fuzz.hostile.cluster import NOBODY, TIMEOUT_MS
from fuzz.hostile.wire import FindingError, framed
from fuzz.hostile.world import World, errors_of
from fuzz.mutations import damaged
from strandline.base.errors import ProtocolError, StrandlineError
from strandline.client.wire.connection import Connection
from strandline.protocol.apis import API_KEYS, APIS
from strandline.protocol.codec import decode
from strandline.protocol.headers import decode_response_header

PATIENCE_MS = 3_000
PIPELINED = 2_000
LOGIN_APIS = frozenset({API_KEYS["SaslHandshake"], API_KEYS["SaslAuthenticate"]})
SILENT_APIS = frozenset({API_KEYS["ApiVersions"]})


class Member:
    """A user that has logged in, in turn by a password and by a token; a connection that the broker
    ends is made again."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._connection: Connection | None = None
        self._count = 0

    def connection(self) -> Connection:
        """One that is open. Raises FindingError if the login fails."""
        if self._connection is None or self._connection.is_closed:
            self._count += 1
            try:
                self._connection = self._world.broker.connect(NOBODY, by_token=self._count % 2 == 0)
            except StrandlineError as error:
                raise FindingError(f"a login that is right failed: {error}") from error
        return self._connection

    def ask(self, frame: bytes) -> bytes | None:
        """One answer, without its size; None if there is none: the connection is over."""
        connection = self.connection()
        try:
            connection.stream.send((framed(frame),), TIMEOUT_MS)
            size = int.from_bytes(connection.stream.receive(4, PATIENCE_MS), "big")
            return bytes(connection.stream.receive(size, PATIENCE_MS))
        except OSError:
            connection.close()
            return None

    def leave_open(self) -> None:
        """Go on with another connection; the world ends this one."""
        if self._connection is not None:
            self._world.leave(self._connection)
            self._connection = None

    def close(self) -> None:
        """End it."""
        if self._connection is not None:
            self._connection.close()


def a_request_without_a_right(world: World, random: Random, member: Member) -> None:
    """Each API and version, well-formed: nothing secret comes of it, and no success."""
    api = random.choice([one for one in APIS.values() if one.key not in LOGIN_APIS])
    frame = world.aimed(random, api)
    got = member.ask(frame)
    if got is None:
        return
    world.expect_no_secret(frame, got)
    version = int.from_bytes(frame[2:4], "big")
    try:
        _, position = decode_response_header(got, api.key, version)
        answer, _ = decode(api.response, got, position, version)
    except ProtocolError as error:
        if api.key in SILENT_APIS:
            return
        raise FindingError(f"an answer of {api.name} that cannot be read: {error}") from error
    for name, code in errors_of(answer):
        if code == 0:
            raise FindingError(f"{api.name} version {version} gave no error for {name!r}")


def a_damaged_request_without_a_right(world: World, random: Random, member: Member) -> None:
    """The same, damaged."""
    api = random.choice(list(APIS.values()))
    frame = damaged(world.aimed(random, api), random, world.aimed(random, api))
    got = member.ask(frame)
    if got is not None:
        world.expect_no_secret(frame, got)


def many_requests_at_once(world: World, random: Random, member: Member) -> None:
    """Thousands without waiting for an answer; then the end, with the answers unread."""
    api = random.choice(list(APIS.values()))
    frame = framed(world.aimed(random, api))
    connection = member.connection()
    try:
        connection.stream.send((frame * min(PIPELINED, (4 << 20) // len(frame)),), PATIENCE_MS)
    except OSError:
        pass
    connection.close()


def a_large_request_that_never_comes(world: World, random: Random, member: Member) -> None:
    """100 MB announced, little sent."""
    connection = member.connection()
    try:
        connection.stream.send(
            (struct.pack(">i", 100 << 20), random.randbytes(200_000)), PATIENCE_MS
        )
    except OSError:
        pass
    if random.random() < 0.5:
        connection.close()
    else:
        member.leave_open()


MEMBERS = (
    *(a_request_without_a_right,) * 20,
    *(a_damaged_request_without_a_right,) * 20,
    many_requests_at_once,
    a_large_request_that_never_comes,
)
