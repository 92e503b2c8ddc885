"""A finding of `strandline doctor security`.

Owns:   nothing.
Source: docs/operating/security.md, "What is open"."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad a finding is, the worst first."""

    OPEN = "open"
    """Someone without the right to it can read, change or stop something."""
    WEAK = "weak"
    """Protection that is there, and less than it should be."""
    NOTE = "note"
    """Worth knowing; often as it should be."""


LEVELS = tuple(Level)


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. `key`: what to change, as the broker's file or a command names it. `what`: what
    is wrong. `advice`: what to do."""

    level: Level
    key: str
    what: str
    advice: str

    def __str__(self) -> str:
        return f"{self.key}: {self.what}: {self.advice}"
