"""Where a read begins or ends, as options say it: an edge of the log, offsets, or times.

How:    JSON as the Kafka connector takes it: {"orders": {"0": 23, "1": -2}}, with -2 for earliest
        and -1 for latest.
Source: Spark's guide to its Kafka connector."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from strandline.base.errors import OperatorError

LATEST = -1
EARLIEST = -2

TopicPartition = tuple[str, int]
"""A topic's name and the number of a partition."""


@dataclass(frozen=True, slots=True)
class Edge:
    """The same edge of each partition: EARLIEST or LATEST."""

    offset: int


@dataclass(frozen=True, slots=True)
class Offsets:
    """An offset, EARLIEST or LATEST for each partition."""

    option: str
    of: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Time:
    """The first record of each partition at or after a time, in ms since 1970."""

    option: str
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Times:
    """The first record at or after a time for each partition."""

    option: str
    of: Mapping[TopicPartition, int]


Bound = Edge | Offsets | Time | Times


def name_of(partition: TopicPartition) -> str:
    """`orders-3`."""
    return f"{partition[0]}-{partition[1]}"


def names_of(partitions: Iterable[TopicPartition], *, count_max: int = 10) -> str:
    """The first few names, with commas."""
    ordered = sorted(partitions)
    more = f" and {len(ordered) - count_max} more" if len(ordered) > count_max else ""
    return ", ".join(name_of(one) for one in ordered[:count_max]) + more


def parse_edge_or_offsets(text: str, *, option: str) -> Bound:
    """`earliest`, `latest`, or JSON of offsets. Raises OperatorError."""
    word = text.strip().lower()
    if word in ("earliest", "latest"):
        return Edge(EARLIEST if word == "earliest" else LATEST)
    return Offsets(option, parse_by_partition(text, option=option, lowest=EARLIEST))


def parse_by_partition(text: str, *, option: str, lowest: int) -> dict[TopicPartition, int]:
    """{(topic, partition): number} from JSON; no number is below `lowest`. Raises OperatorError."""
    expected = 'expected earliest, latest or JSON like {"topic": {"0": 23, "1": -2}}'
    if lowest >= 0:
        expected = 'expected JSON like {"topic": {"0": 1700000000000}}, in ms'
    try:
        content = json.loads(text)
    except ValueError as error:
        raise OperatorError(f"{option}: {text!r} is not JSON: {expected}") from error
    if not isinstance(content, dict):
        raise OperatorError(f"{option}: {text!r}: {expected}")
    found: dict[TopicPartition, int] = {}
    for topic, partitions in content.items():
        if not isinstance(partitions, dict):
            raise OperatorError(f"{option}: topic {topic}: {expected}")
        for word, number in partitions.items():
            if not (word.isascii() and word.isdigit()):
                raise OperatorError(f"{option}: topic {topic}: {word!r} is not a partition")
            if not isinstance(number, int) or isinstance(number, bool) or number < lowest:
                raise OperatorError(
                    f"{option}: {topic}-{word}: {json.dumps(number)} is not a whole number of at "
                    f"least {lowest}"
                )
            found[topic, int(word)] = number
    if not found:
        raise OperatorError(f"{option}: names no partition: {expected}")
    return found


def parse_assignment(text: str) -> dict[str, tuple[int, ...]]:
    """{topic: its partitions} from `{"orders": [0, 1]}`. Raises OperatorError."""
    expected = 'assign: expected JSON like {"topic": [0, 1]}'
    try:
        content = json.loads(text)
    except ValueError as error:
        raise OperatorError(f"{expected}, not {text!r}") from error
    if not isinstance(content, dict) or not content:
        raise OperatorError(f"{expected}, not {text!r}")
    for topic, partitions in content.items():
        is_list = isinstance(partitions, list) and partitions
        if not is_list or not all(type(one) is int and one >= 0 for one in partitions):
            raise OperatorError(f"{expected}: topic {topic} has {json.dumps(partitions)}")
    return {topic: tuple(sorted(set(partitions))) for topic, partitions in content.items()}
