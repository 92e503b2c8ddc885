"""Where a table begins in a topic that it does not know yet: an offset, a time, an end.

Why:    a table of the last week should not read ten years."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from strandline.base.errors import OperatorError
from strandline.pipeline.lake.cluster import Questions, TopicSnapshot

_OFFSET = re.compile(r"(?:([A-Za-z0-9._-]{1,249}):)?(\d+)=(\d+)")


@dataclass(frozen=True, slots=True)
class Start:
    """`at`: "earliest", "latest", or a time in ms; `offsets`: {topic: {partition: offset}} that
    take precedence."""

    at: str | int = "earliest"
    offsets: Mapping[str, Mapping[int, int]] = field(default_factory=dict)


def parse_start(word: str, offsets: Sequence[str], *, topics: Sequence[str]) -> Start:
    """`--start earliest|latest|TIME` and `--start-offset [TOPIC:]PARTITION=OFFSET`."""
    chosen: dict[str, dict[int, int]] = {}
    for text in offsets:
        match = _OFFSET.fullmatch(text)
        if match is None:
            raise OperatorError(f"--start-offset {text}: expected [TOPIC:]PARTITION=OFFSET")
        topic = match[1] or topics[0]
        if match[1] is None and len(topics) > 1:
            raise OperatorError(f"--start-offset {text}: name the topic: TOPIC:{text}")
        if topic not in topics:
            raise OperatorError(f"--start-offset {text}: {topic} is not a topic of this job")
        chosen.setdefault(topic, {})[int(match[2])] = int(match[3])
    return Start(_parse_at(word), chosen)


def _parse_at(word: str) -> str | int:
    if word in ("earliest", "latest"):
        return word
    try:
        time = datetime.fromisoformat(word)
    except ValueError:
        raise OperatorError(
            f"--start {word}: expected earliest, latest or a time such as 2026-01-31T12:00:00Z"
        ) from None
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return round(aware.timestamp() * 1000)


def starting_offsets(
    start: Start, topic: str, snapshot: TopicSnapshot, cluster: Questions
) -> dict[int, int]:
    """{partition: where reading begins}."""
    if start.at == "earliest":
        found = dict(snapshot.starts)
    elif start.at == "latest":
        found = dict(snapshot.ends)
    else:
        assert isinstance(start.at, int)
        told = cluster.offsets_at(topic, start.at)
        found = {one: at if at >= 0 else snapshot.ends[one] for one, at in told.items()}
    for partition, offset in start.offsets.get(topic, {}).items():
        if partition not in found:
            raise OperatorError(f"--start-offset: {topic} has no partition {partition}")
        first, end = snapshot.starts[partition], snapshot.ends[partition]
        if not first <= offset <= end:
            raise OperatorError(
                f"--start-offset {topic}:{partition}={offset}: the partition has offsets {first} "
                f"to {end}"
            )
        found[partition] = offset
    return found
