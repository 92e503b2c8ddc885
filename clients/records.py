"""The records that programs write and read, and how they are judged.

How:    record n has the key `key-(n mod 7)`, the value `value-n-xxx...`, none if n mod 20 is 19,
        and the headers `n` and `empty`. A program prints a record that it read as one line,
        tabs between the fields:

            record  PARTITION  OFFSET  KEY  LENGTH  VALUE  NAME=VALUE,NAME=VALUE

        LENGTH is -1 for a record without a value."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

KEYS = 7
NULL_EVERY = 20
PADDING = "x" * 60
FIELDS = 7


class CellError(Exception):
    """A client did not do what it should; one line says what."""


@dataclass(frozen=True, slots=True)
class Written:
    """A record before it has a place. `value` is None for a record without one."""

    number: int

    @property
    def key(self) -> str:
        """Records with the same key go to the same partition."""
        return f"key-{self.number % KEYS}"

    @property
    def value(self) -> str | None:
        """Absent in a few records."""
        if self.number % NULL_EVERY == NULL_EVERY - 1:
            return None
        return f"value-{self.number}-{PADDING}"

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """One with the number, one that is empty."""
        return (("n", str(self.number)), ("empty", ""))


@dataclass(frozen=True, slots=True)
class Found:
    """A record as a client read it."""

    partition: int
    offset: int
    key: str
    value: str | None
    headers: tuple[tuple[str, str], ...]

    @property
    def number(self) -> int:
        """Which record it is, by its header."""
        return int(dict(self.headers).get("n", "-1"))


def parse(line: str) -> Found:
    """Read one line of a program."""
    parts = line.split("\t")
    if len(parts) != FIELDS:
        raise CellError(f"a line with {len(parts)} fields, not {FIELDS}: {line[:100]!r}")
    _, partition, offset, key, length, value, headers = parts
    pairs = (header.partition("=") for header in headers.split(",")) if headers else ()
    return Found(
        partition=int(partition),
        offset=int(offset),
        key=key,
        value=None if length == "-1" else value,
        headers=tuple((name, value) for name, _, value in pairs),
    )


def judge(found: Iterable[Found], numbers: Sequence[int], *, where: str) -> None:
    """Every record once, as it was written, in order within its partition."""
    records = sorted(found, key=lambda record: (record.partition, record.offset))
    count = Counter(record.number for record in records)
    missing = [number for number in numbers if number not in count]
    twice = [number for number, times in count.items() if times > 1]
    foreign = sorted(set(count) - set(numbers))
    if missing or twice or foreign:
        raise CellError(
            f"{where}: {len(records)} records for {len(numbers)}; missing {missing[:5]},"
            f" twice {twice[:5]}, never written {foreign[:5]}"
        )
    for record in records:
        written = Written(record.number)
        for what in ("key", "value", "headers"):
            is_, should = getattr(record, what), getattr(written, what)
            if is_ != should:
                raise CellError(
                    f"{where}: record {record.number} has {what} {is_!r}, not {should!r}"
                )
    for before, after in pairwise(records):
        if before.partition == after.partition and before.number > after.number:
            raise CellError(f"{where}: record {after.number} stands after {before.number}")
    places = {(record.key, record.partition) for record in records}
    if len(places) != len({key for key, _ in places}):
        raise CellError(f"{where}: records with the same key are in several partitions")
