"""Differences between recorded answers and Strandline's, and those that have a reason.

How:    `docs/reference/differences.md` has a table of them: the request or the script, the part of
        the answer, what each answers (`-` for nothing), and the reason. `*` stands for anything."""

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from differential.access.walk import Answers
from strandline.protocol.errors import Error

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "differences.md"
HEAD = "| request | part of the answer | Kafka | Strandline | reason |"
NOTHING = "-"
_ERRORS = frozenset(one.name for one in Error)


class Difference(NamedTuple):
    """`clients` get another answer than from Kafka. `request`: its title, or a script's name;
    `part`: the path of names in the answer, or the label of a step."""

    request: str
    part: str
    kafka: str
    strandline: str
    clients: tuple[str, ...] = ()


class Known(NamedTuple):
    """A row of the page."""

    request: str
    part: str
    kafka: str
    strandline: str
    reason: str

    def matches(self, found: Difference) -> bool:
        """Whether the row is about this difference."""
        return self.request == found.request and all(
            fnmatchcase(value, pattern)
            for value, pattern in zip(found[1:4], self[1:4], strict=True)
        )


def read_known() -> list[Known]:
    """The rows of the page."""
    _, _, table = PAGE.read_text().partition(HEAD + "\n")
    rows = []
    for line in table.splitlines()[1:]:
        if not line.startswith("|"):
            break
        rows.append(Known(*(cell.strip() for cell in line.strip("|").split(" | "))))
    return rows


def compare_answers(request: str, kafka: Answers, strandline: Answers) -> list[Difference]:
    """The differences in the answers to one request, of all clients."""
    theirs, ours = _by_client(kafka), _by_client(strandline)
    found: dict[tuple[str, str, str], list[str]] = {}
    for client in ours:
        one, other = _parts(theirs[client]), _parts(ours[client])
        for part in sorted({*one, *other}):
            answers = one.get(part, NOTHING), other.get(part, NOTHING)
            if answers[0] != answers[1]:
                found.setdefault((part, *answers), []).append(client)
    return [Difference(request, *key, tuple(clients)) for key, clients in found.items()]


def compare_steps(
    script: str, kafka: Mapping[str, list[str]], strandline: Mapping[str, list[str]]
) -> list[Difference]:
    """The differences in the answers to a script."""
    assert kafka.keys() == strandline.keys(), "record the script again"
    return [
        Difference(script, label, _line(lines), _line(strandline[label]))
        for label, lines in kafka.items()
        if lines != strandline[label]
    ]


def judge(
    request: str, found: Iterable[Difference], known: Iterable[Known]
) -> tuple[list[Difference], list[Known]]:
    """(differences without a reason, rows about this request that no difference meets)"""
    rows = [one for one in known if one.request == request]
    unknown, used = [], set()
    for difference in found:
        matching = [one for one in rows if one.matches(difference)]
        used.update(matching)
        if not matching:
            unknown.append(difference)
    return unknown, [one for one in rows if one not in used]


def _by_client(answers: Answers) -> dict[str, str]:
    return {client: line for line, clients in answers.items() for client in clients}


def _parts(line: str) -> dict[str, str]:
    """{path: the words behind it}"""
    return dict(_split(line))


def _split(line: str) -> Iterator[tuple[str, str]]:
    for part in line.split("; "):
        path, _, words = part.partition(" ")
        yield ("whole", part) if path in _ERRORS or not words else (path, words)


def _line(lines: list[str]) -> str:
    return "; ".join(lines) or NOTHING
