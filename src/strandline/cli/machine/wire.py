"""What a supervisor and a broker's process tell each other.

How:    a pair of stream sockets without a name, so no other process reaches it. A message is its
        length in four bytes, then MessagePack:

            supervisor --Order--> process, once
            supervisor --Ask--> process --Told--> supervisor, several at a time, by number
            process --Told 0, with the reason--> supervisor, as it fails
        The end of the stream is a message, too. The process takes it as the order to end, also if
        the supervisor was killed.
Owns:   nothing.
Source: decision 0071."""

import asyncio
import socket
from struct import Struct
from typing import TypeVar

import msgspec

MESSAGE_BYTES_MAX = 64 * 1024 * 1024
"""About three times the metrics of 10,000 partitions."""
REASON_CHARACTERS_MAX = 2_000
ENDED = 0
"""The number of the last words of a process."""
_HEAD_BYTES_MAX = 64 * 1024
"""What a message has besides its body."""
_LENGTH = Struct(">I")
T = TypeVar("T")


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What a process needs to be broker `index` of `cores`. `text`: of the configuration `file`;
    `labels`, with their `origin`: see `MergedLabels`; `cpu`: to run on, None for any;
    `is_restart`: the supervisor has started this broker before."""

    text: str
    file: str
    cores: int
    index: int
    labels: dict[str, str]
    origin: dict[str, str]
    cpu: int | None = None
    is_restart: bool = False


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """Does the broker serve Kafka clients?"""


class Scrape(msgspec.Struct, frozen=True, tag="scrape"):
    """What are the broker's metrics?"""


class Judge(msgspec.Struct, frozen=True, tag="judge"):
    """May this client see a path of the HTTP port?"""

    host: str
    authorization: tuple[str, ...]
    path: str


Question = Ready | Scrape | Judge


class Ask(msgspec.Struct, frozen=True):
    """A question, which `number` tells from others."""

    number: int
    question: Question


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to the question of this number. `status`, `headers`, `body`: for a client that is
    not allowed; `is_unregistered`: with the last words."""

    number: int
    is_ready: bool = False
    is_allowed: bool = False
    body: bytes = b""
    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    is_unregistered: bool = False


def encode(message: msgspec.Struct) -> bytes:
    """A message as it goes over the link."""
    body = msgspec.msgpack.encode(message)
    return _LENGTH.pack(len(body)) + body


async def read_message(reader: asyncio.StreamReader, kind: type[T]) -> T | None:
    """The next message; None at the end of the stream."""
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        assert length <= MESSAGE_BYTES_MAX + _HEAD_BYTES_MAX
        return msgspec.msgpack.decode(await reader.readexactly(length), type=kind)
    except (asyncio.IncompleteReadError, OSError):
        return None


def receive(sock: socket.socket, kind: type[T]) -> T:
    """The next message of a socket that blocks. Raises EOFError at the end of the stream."""
    (length,) = _LENGTH.unpack(_receive_exactly(sock, _LENGTH.size))
    return msgspec.msgpack.decode(_receive_exactly(sock, length), type=kind)


def _receive_exactly(sock: socket.socket, count: int) -> bytes:
    found = bytearray()
    while len(found) < count:
        part = sock.recv(count - len(found))
        if not part:
            raise EOFError
        found += part
    return bytes(found)
