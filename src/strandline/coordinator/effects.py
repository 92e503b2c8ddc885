"""The effects that a group returns, and the turn that collects them.

How:    `step` returns the effects of one event; the driver performs them in order. One `Persisted`
        answers each `Persist`, in the same order; a timer replaces the one with the same name.
Source: STYLE, rule 1."""

import msgspec

from strandline.coordinator.answers import Answer
from strandline.coordinator.settings import GroupSettings

LogRecord = tuple[bytes, bytes | None]
"""Key and value of a record of `__consumer_offsets`; None removes the key."""


class Reply(msgspec.Struct, frozen=True):
    """Answer the request that came with this token. Exactly once for each token."""

    token: int
    answer: Answer


class Persist(msgspec.Struct, frozen=True):
    """Append these records as one batch; `Persisted` brings the result."""

    group: str
    ticket: int
    records: tuple[LogRecord, ...]


class SetTimer(msgspec.Struct, frozen=True):
    """`TimerFired` once, after this delay, unless cancelled or set again."""

    group: str
    name: str
    delay_ms: int


class CancelTimer(msgspec.Struct, frozen=True):
    """Stop a timer; does nothing if there is no such timer."""

    group: str
    name: str


Effect = Reply | Persist | SetTimer | CancelTimer


class Turn:
    """One event being handled: the time, the settings in force, and the effects so far.

    `now_ms` is wall clock time: it is written into the log and shown to people."""

    __slots__ = ("effects", "now_ms", "settings")

    def __init__(self, now_ms: int, settings: GroupSettings) -> None:
        self.now_ms = now_ms
        self.settings = settings
        self.effects: list[Effect] = []

    def reply(self, token: int, answer: Answer) -> None:
        """Answer a request."""
        self.effects.append(Reply(token, answer))
