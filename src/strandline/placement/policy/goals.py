"""The losses to survive, in words: "region", "2 brokers", "region and one more broker".

How:    goal = loss {"and" loss};  loss = ["any"] [number] ["more"] level.  A mapping,
        {region: 1, broker: 1}, is the same; the canonical document has mappings.
Source: decision 0008."""

from collections.abc import Mapping

from strandline.base.errors import OperatorError
from strandline.placement.policy.document import Goal, goal_levels

_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4}
_LEVELS = {
    "region": "region",
    "zone": "zone",
    "rack": "rack",
    "host": "host",
    "upgrade_domain": "upgrade_domain",
    "broker": "broker",
}
_WORDS = _LEVELS | {f"{word}s": level for word, level in _LEVELS.items()}


def read_goals(raw: object) -> object:
    """Turn words into mappings, wherever `survive` has them; other values are left as they are.

    Raises OperatorError for words that say nothing."""
    if isinstance(raw, str | Mapping):
        raw = [raw]
    if not isinstance(raw, list):
        return raw
    return [goal_levels(parse_goal(one)) if isinstance(one, str) else one for one in raw]


def parse_goal(text: str) -> Goal:
    """Read "region and one more broker"; raises OperatorError with what to write."""
    losses: dict[str, int] = {}
    for part in text.lower().split(" and "):
        words = [word for word in part.split() if word not in ("any", "more")]
        count = 1
        if len(words) == 2:
            count = _NUMBERS.get(words[0]) or _number(words.pop(0), text)
            words = words[-1:]
        level = _WORDS.get(words[0]) if len(words) == 1 else None
        if level is None:
            raise _unreadable(text)
        if level in losses:
            raise OperatorError(
                f"survive: {text[:80]!r} names {level} twice: write for example 2 {level}s"
            )
        losses[level] = count
    return Goal(**losses)


def format_goal(goal: Goal) -> str:
    """The words: "1 region and 2 brokers"."""
    parts = [f"{n} {level}{'s' * (n > 1)}" for level, n in goal_levels(goal).items()]
    return " and ".join(parts)


def _number(word: str, text: str) -> int:
    if not (word.isascii() and word.isdigit() and 1 <= int(word[:4]) <= 7):
        raise _unreadable(text)
    return int(word)


def _unreadable(text: str) -> OperatorError:
    return OperatorError(
        f"survive: cannot read {text[:80]!r}: write a level (region, zone, rack, host, "
        "upgrade_domain, broker) with a number up to 7, joined by `and`, for example "
        "region and one more broker; several goals are a list"
    )
