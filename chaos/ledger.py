"""What each client did and was answered, line by line, in a file of its own.

Why:    the verdict goes by what clients saw, in the order in which they saw it; all of them read
        the machine's clock.
How:    each line is an entry as JSON, its kind first. Times are in ns of the monotonic clock, taken
        before a request and after an answer.
Owns:   the layout of the entries; a file has one writer."""

import time
from pathlib import Path
from typing import TypeVar

import msgspec

from chaos.hosts import ChaosError

UNKNOWN_OFFSET = -1


class _Entry(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The base: an entry is an array, the name of its kind first."""


class Client(_Entry, frozen=True):
    """Who writes the ledger; the first entry. `acks` and `is_idempotent` are a producer's, `group`
    is a consumer's."""

    name: str
    acks: int = 0
    is_idempotent: bool = False
    group: str = ""


class Acknowledged(_Entry, frozen=True):
    """A record was acknowledged; at UNKNOWN_OFFSET where nobody said at which."""

    at_ns: int
    sent_ns: int
    topic: str
    partition: int
    offset: int
    mark: str


class Failed(_Entry, frozen=True):
    """A record was given up, or a client broke down."""

    at_ns: int
    what: str
    error: str


class Told(_Entry, frozen=True):
    """A consumer was told how far its group is: -1 for nowhere. What it reads of the partition from
    now on is the `life`-th time that it was given one."""

    begun_ns: int
    at_ns: int
    life: int
    topic: str
    partition: int
    offset: int


class Read(_Entry, frozen=True):
    """A consumer at `position` got these records, in this order: [(offset, mark)]."""

    at_ns: int
    life: int
    topic: str
    partition: int
    position: int
    records: list[tuple[int, str]]


class CommitBegun(_Entry, frozen=True):
    """A consumer is about to commit; `number` counts its commits."""

    at_ns: int
    number: int
    topic: str
    partition: int
    offset: int


class CommitDone(_Entry, frozen=True):
    """The commit was acknowledged. One that was not may have happened all the same."""

    at_ns: int
    number: int
    topic: str
    partition: int


class Listed(_Entry, frozen=True):
    """Somebody asked the leader where the partition ends."""

    begun_ns: int
    at_ns: int
    topic: str
    partition: int
    high_watermark: int


class Refused(_Entry, frozen=True):
    """A record was refused for want of a right, at its only attempt: it is in no log."""

    at_ns: int
    topic: str
    partition: int
    mark: str


class Probed(_Entry, frozen=True):
    """A client without a right asked a broker; `outcome`: refused, or out of reach."""

    at_ns: int
    what: str
    broker: int
    outcome: str


class Leaked(_Entry, frozen=True):
    """A client got what it has no right to."""

    at_ns: int
    what: str
    broker: int
    got: str


Entry = (
    Client
    | Acknowledged
    | Failed
    | Told
    | Read
    | CommitBegun
    | CommitDone
    | Listed
    | Refused
    | Probed
    | Leaked
)
E = TypeVar("E", bound=_Entry)
_decoder = msgspec.json.Decoder(Entry)


class LedgerWriter:
    """Appends to one file; every entry is there for readers at once."""

    def __init__(self, path: Path, client: Client) -> None:
        self._file = path.open("wb", buffering=0)
        self.add(client)

    def add(self, entry: Entry) -> None:
        """One line."""
        self._file.write(msgspec.json.encode(entry) + b"\n")

    def close(self) -> None:
        """No more."""
        self._file.close()


class LedgerReader:
    """Reads on where it stopped. `entries`: all so far."""

    def __init__(self, path: Path) -> None:
        self.entries: list[Entry] = []
        self._path = path
        self._position = 0

    @property
    def has_begun(self) -> bool:
        """Whether the client has written anything."""
        return bool(self.entries)

    @property
    def client(self) -> Client:
        """Whose ledger it is."""
        if not self.entries or not isinstance(self.entries[0], Client):
            raise ChaosError(f"{self._path.name}: the client did not begin")
        return self.entries[0]

    def read_on(self) -> list[Entry]:
        """The entries that came since."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._position)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._position += len(whole)
        fresh = [_decoder.decode(line) for line in whole.splitlines()]
        self.entries += fresh
        return fresh

    def all_of(self, kind: type[E]) -> list[E]:
        """The entries of one kind."""
        return [entry for entry in self.entries if isinstance(entry, kind)]


def now_ns() -> int:
    """The clock of all ledgers."""
    return time.monotonic_ns()
