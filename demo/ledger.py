"""What each client saw, kept as files of fixed-size entries, so that sets can be compared.

Why:    equal counts can hide a loss and a duplicate; equal sets of (partition, offset, flight)
        cannot.
How:    a process appends to its own file; the demo reads all of them, at any time."""

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

import numpy
from confluent_kafka import Message

ENTRY = numpy.dtype(
    [("partition", "<i8"), ("offset", "<i8"), ("flight", "<i8"), ("latency_ms", "<f8")]
)
PLACE = ["partition", "offset", "flight"]


class LedgerWriter:
    """Appends entries to one file; `save` makes what was added visible to readers."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._entries: list[tuple[int, int, int, float]] = []

    def add(self, message: Message) -> None:
        """A message that was acknowledged, then with its latency, or read."""
        partition, offset, key = message.partition(), message.offset(), message.key()
        assert partition is not None and offset is not None and key is not None
        latency_ms = (message.latency() or 0.0) * 1000
        self._entries.append((partition, offset, int(key), latency_ms))

    def save(self) -> None:
        if self._entries:
            self._file.write(numpy.array(self._entries, ENTRY).tobytes())
            self._file.flush()
            self._entries.clear()

    def __enter__(self) -> "LedgerWriter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.save()
        self._file.close()


def count_entries(paths: Iterable[Path]) -> int:
    """How many entries the files have, without reading them."""
    return sum(path.stat().st_size // ENTRY.itemsize for path in paths if path.exists())


def read_entries(paths: Iterable[Path]) -> numpy.ndarray:
    """All whole entries of the files."""
    parts = [path.read_bytes() for path in paths if path.exists()]
    whole = [part[: len(part) // ENTRY.itemsize * ENTRY.itemsize] for part in parts]
    return numpy.frombuffer(b"".join(whole), ENTRY)


def places(entries: numpy.ndarray) -> numpy.ndarray:
    """The set of (partition, offset, flight) in the entries, ordered."""
    return numpy.unique(entries[PLACE])
