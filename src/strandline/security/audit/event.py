"""One event of the audit log, and its line.

Why:    names come from clients. A name with a line break must not begin a line of its own, and a
        name of a megabyte must not fill the disk.
How:    every text is cut to `TEXT_CHARS_MAX` characters; the line is JSON in ASCII, so a line break
        or a control character is an escape. An event has no field for values, records or secrets.
Source: decision 0069."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

from strandline.security.acls.authoriser import TOLD_GROUPS_MAX

TEXT_CHARS_MAX = 256
CUT = "..."
"""What a text ends with that was cut."""


class EventKind(Enum):
    """What an event tells of."""

    LOGIN = "login"
    """A client has proved who it is, or has failed."""
    REFUSAL = "refusal"
    """A client wanted to do what rules do not allow."""
    CHANGE = "change"
    """A client has changed something, or the cluster refused the change for another reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """See the module. Empty fields are not in the line.

    error:   Kafka's name of the error of a change that was allowed and not made.
    details: {name: text} of what the API adds, as the names of configuration keys."""

    kind: EventKind
    is_allowed: bool
    principal: str = ""
    listener: str = ""
    address: str = ""
    client_id: str = ""
    mechanism: str = ""
    api: str = ""
    operation: str = ""
    resource_type: str = ""
    resource_name: str = ""
    error: str = ""
    details: tuple[tuple[str, str], ...] = ()


def groups_detail(groups: Collection[str]) -> tuple[tuple[str, str], ...]:
    """The detail that names the groups whose rules decided; none without groups."""
    return (("groups", ", ".join(sorted(groups)[:TOLD_GROUPS_MAX])),) if groups else ()


def line_of(event: AuditEvent, *, broker_id: int, wall_ms: int) -> bytes:
    """The event's line, with its line break. `wall_ms`: milliseconds since 1970."""
    texts = {
        "principal": event.principal,
        "listener": event.listener,
        "address": event.address,
        "client_id": event.client_id,
        "mechanism": event.mechanism,
        "api": event.api,
        "operation": event.operation,
        "resource_type": event.resource_type,
        "resource_name": event.resource_name,
        "error": event.error,
        **dict(event.details),
    }
    return _encode(
        {
            "time": _time(wall_ms),
            "broker": broker_id,
            "event": event.kind.value,
            "result": "allowed" if event.is_allowed else "denied",
            **{name: _cut(text) for name, text in texts.items() if text},
        }
    )


def dropped_line(count: int, *, broker_id: int, wall_ms: int) -> bytes:
    """The line that stands for lines that are not in the file."""
    return _encode(
        {"time": _time(wall_ms), "broker": broker_id, "event": "dropped", "lines": count}
    )


def _encode(fields: dict[str, str | int]) -> bytes:
    return json.dumps(fields, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_CHARS_MAX else text[: TEXT_CHARS_MAX - len(CUT)] + CUT


def _time(wall_ms: int) -> str:
    at = datetime.fromtimestamp(wall_ms / 1000, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
