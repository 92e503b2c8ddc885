"""Two sets of answers compared, and the differences that have a reason.

Why:    a known difference is a decision; it stands on a page with its reason. Any other one fails.
How:    `docs/reference/differences.md` has a table: a pattern for `case/label path`, and the reason
        (`*` stands for anything), or for the place and what each answers:
        `case/label path => kafka, strandline`. A row that no difference meets is out of date, and
        fails too."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from differential.answers import Flat

PAGE = Path("docs/reference/differences.md")
_ROW = re.compile(r"^\| `(?P<pattern>[^`]+)` \| (?P<reason>.+?) \|$")
ABSENT = "absent"
ANSWERS = " => "
"""In a pattern, between the place and the two answers."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One field of one answer. `place`: `case/label path`."""

    place: str
    kafka: object
    strandline: object

    def __str__(self) -> str:
        return f"{self.place}\n    kafka      {self.kafka!r}\n    strandline {self.strandline!r}"


@dataclass(frozen=True, slots=True)
class Known:
    """A row of the page."""

    pattern: str
    reason: str

    def matches(self, difference: Difference) -> bool:
        """Whether the row is about this difference; `*` stands for anything."""
        text = difference.place
        if ANSWERS in self.pattern:
            text += f"{ANSWERS}{difference.kafka}, {difference.strandline}"
        pattern = ".*".join(re.escape(part) for part in self.pattern.split("*"))
        return re.fullmatch(pattern, text, re.DOTALL) is not None


def read_known(text: str) -> list[Known]:
    """The rows of the page."""
    rows = (_ROW.match(line) for line in text.splitlines())
    return [Known(row["pattern"], row["reason"]) for row in rows if row]


def compare(
    case: str, kafka: Mapping[str, Flat], strandline: Mapping[str, Flat]
) -> list[Difference]:
    """The differences between the answers of one case, in order of their place."""
    found = []
    for label in sorted({*kafka, *strandline}):
        theirs, ours = kafka.get(label, {}), strandline.get(label, {})
        for path in sorted({*theirs, *ours}):
            one, other = theirs.get(path, ABSENT), ours.get(path, ABSENT)
            if one != other:
                found.append(Difference(f"{case}/{label} {path}".rstrip(), one, other))
    return found


def judge(
    found: Iterable[Difference], known: Iterable[Known], *, is_whole: bool
) -> tuple[list[Difference], list[Known]]:
    """(differences without a reason, rows that no difference meets).

    `is_whole`: every case ran; only then can a row be out of date."""
    rows = list(known)
    used: set[Known] = set()
    unknown = []
    for difference in found:
        matching = [row for row in rows if row.matches(difference)]
        used.update(matching)
        if not matching:
            unknown.append(difference)
    return unknown, [row for row in rows if row not in used] if is_whole else []
