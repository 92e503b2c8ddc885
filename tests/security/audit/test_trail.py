"""The audit log's lines stay one line each, and within their bounds (decision 0069)."""

import json

import pytest

from strandline.security.audit.event import TEXT_CHARS_MAX, AuditEvent, EventKind, line_of
from strandline.security.audit.trail import Trail

NOW_MS = 1_700_000_000_000


def event(kind: EventKind = EventKind.REFUSAL, name: str = "orders") -> AuditEvent:
    return AuditEvent(kind=kind, is_allowed=False, principal="User:eve", resource_name=name)


def trail(*, lines: int = 1_000, queue_bytes: int = 1 << 20) -> Trail:
    return Trail(broker_id=1, lines_per_s_max=lines, queue_bytes_max=queue_bytes)


def read(data: bytes) -> list[dict[str, object]]:
    return [json.loads(line) for line in data.splitlines()]


@pytest.mark.parametrize(
    "name",
    [
        'a\n{"event":"change"}',
        "a\r\nb",
        "\u2028\u2029\x85\x0b\x0c",
        "\x1b[2J\x00\x7f",
        '"},{"',
        "\ud800",
        "x" * 1_000_000,
        "\U0001f600" * 1_000_000,
    ],
)
def test_a_hostile_name_stays_one_short_line(name: str) -> None:
    line = line_of(event(name=name), broker_id=1, wall_ms=NOW_MS)
    assert line.endswith(b"\n") and len(line.decode().splitlines()) == 1
    assert len(line) < 200 + 12 * TEXT_CHARS_MAX
    found = json.loads(line)["resource_name"]
    assert found == name or (found.endswith("...") and name.startswith(found[:-3]))


def test_a_line_has_the_time_the_broker_and_what_is_known() -> None:
    assert json.loads(line_of(event(), broker_id=3, wall_ms=NOW_MS)) == {
        "time": "2023-11-14T22:13:20.000Z",
        "broker": 3,
        "event": "refusal",
        "result": "denied",
        "principal": "User:eve",
        "resource_name": "orders",
    }


def test_each_kind_has_lines_of_its_own_and_a_line_tells_what_is_missing() -> None:
    made = trail(lines=2)
    for _ in range(5):
        made.add(event(), NOW_MS)
    assert made.add(event(EventKind.CHANGE), NOW_MS)
    lines = read(made.take(NOW_MS))
    assert [one["event"] for one in lines] == ["refusal", "refusal", "change", "dropped"]
    assert lines[-1]["lines"] == 3
    assert made.dropped_count == 3
    assert made.take(NOW_MS) == b""


def test_the_next_second_has_lines_again_also_if_the_clock_goes_back() -> None:
    made = trail(lines=1)
    assert made.add(event(), NOW_MS)
    assert not made.add(event(), NOW_MS + 500)
    assert made.add(event(), NOW_MS + 1_000)
    assert made.add(event(), NOW_MS - 60_000)


def test_dropped_lines_are_told_at_most_once_a_second() -> None:
    made = trail(lines=1)
    for _ in range(3):
        made.add(event(), NOW_MS)
        made.add(event(), NOW_MS)
        made.take(NOW_MS)
    assert [one["lines"] for one in read(made.take(NOW_MS + 1_000))] == [made.dropped_count - 1]


def test_the_queue_is_bounded_and_keeps_room_for_changes() -> None:
    made = trail(lines=100_000, queue_bytes=10_000)
    for _ in range(1_000):
        made.add(event(), NOW_MS)
    assert made.queue_bytes <= 5_000
    assert made.add(event(EventKind.CHANGE), NOW_MS)
    for _ in range(1_000):
        made.add(event(EventKind.CHANGE), NOW_MS)
    assert made.queue_bytes <= 10_000
    assert len(made.take(NOW_MS)) < 10_000 + 200
