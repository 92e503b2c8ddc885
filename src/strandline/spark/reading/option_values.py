"""Reads the options of a query, of the source or the sink: their names, and their texts as numbers,
words, durations, addresses. Each error names its option.

Source: Spark's `JavaUtils.timeStringAsMs` for durations."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from strandline.base.errors import OperatorError
from strandline.config.addresses import parse_bootstrap
from strandline.model.cluster import Address
from strandline.spark.reading.option_table import Option, Use

_UNITS_MS = {
    "us": 0.001, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000,
}  # fmt: skip
_DURATION = re.compile(r"([0-9]+)\s*([a-z]*)")
INTEGER_MAX = 2**63 - 1


def known_option(name: str, options: Sequence[Option]) -> Option:
    """The option of this name, which may be in any case. Raises OperatorError for one that is
    unknown or refused."""
    lower = name.lower()
    by_lower_name = {one.name.lower(): one for one in options}
    option = by_lower_name.get(lower)
    if option is not None and option.use is not Use.REFUSED:
        return option
    if option is not None:
        raise OperatorError(f"option {option.name}: {option.note}")
    near = get_close_matches(lower, by_lower_name, n=1)
    hint = f" (did you mean {by_lower_name[near[0]].name}?)" if near else ""
    known = (one.name for one in options if one.use not in (Use.REFUSED, Use.NO_EFFECT))
    raise OperatorError(f"option {name} is not known{hint}; the options are {', '.join(known)}")


@dataclass(frozen=True, slots=True)
class Values:
    """The texts of a query's options. Everything raises OperatorError, one line."""

    given: Mapping[str, str]
    """{name as in the table of options: text}"""

    def text(self, name: str) -> str:
        """The text without the spaces around it; empty if it is not given."""
        return self.given.get(name, "").strip()

    def integer(self, name: str, *, lowest: int = 1) -> int | None:
        """A whole number; None if it is not given."""
        if name not in self.given:
            return None
        text = self.text(name)
        is_number = text.isascii() and text.isdigit()
        if not is_number or not lowest <= int(text) <= INTEGER_MAX:
            raise OperatorError(f"{name}: {text!r} is not a whole number of at least {lowest}")
        return int(text)

    def boolean(self, name: str, *, default: bool) -> bool:
        """true or false."""
        if name not in self.given:
            return default
        return self.word(name, ("true", "false")) == "true"

    def word(self, name: str, words: tuple[str, ...]) -> str:
        """One of `words`, in any case; the first of them if it is not given."""
        if name not in self.given:
            return words[0]
        for word in words:
            if word.lower() == self.text(name).lower():
                return word
        raise OperatorError(f"{name}: {self.text(name)!r} is not offered: {' or '.join(words)}")

    def duration_ms(self, name: str, *, default: int) -> int:
        """`15m`, `30s`, `200ms`; a number alone is in ms."""
        if name not in self.given:
            return default
        text = self.text(name).lower()
        match = _DURATION.fullmatch(text)
        if match is None or (match[2] or "ms") not in _UNITS_MS:
            raise OperatorError(f"{name}: {text!r} is no duration: expected one like 15m or 30s")
        return int(int(match[1]) * _UNITS_MS[match[2] or "ms"])

    def bootstrap(self, configured: str = "") -> tuple[Address, ...]:
        """The brokers to contact first: `configured` ones unless the query names others."""
        text = self.text("kafka.bootstrap.servers") or configured
        if not text:
            raise OperatorError(
                "option kafka.bootstrap.servers is missing: give host:port,host:port"
            )
        try:
            return parse_bootstrap(text)
        except ValueError as error:
            raise OperatorError(f"kafka.bootstrap.servers {error}") from error
