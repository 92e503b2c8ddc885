"""An upgrade domain by a formula: `ordinal % 3` over the number at the end of a host's name.

Why:    an operator with brokers kafka-0 ... kafka-11 wants three upgrade domains without writing
        twelve labels.
How:    sum = product {(+ | -) product};  product = atom {(* | / | %) atom};
        atom = digits | `ordinal` | ( sum ).  `/` rounds down. Read by recursive descent into
        nested functions: no text is ever run as Python.
Source: decision 0008."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from strandline.base.errors import OperatorError

FORMULA_CHARACTERS_MAX = 64
_DIGITS_MAX = 9
_TOKEN = re.compile(r"\s*([0-9]+|[A-Za-z_]+|[-+*/%()])")
_NUMBER_AT_THE_END = re.compile(r"([0-9]{1,9})$")
_ADDRESS = re.compile(r"[0-9]+(\.[0-9]+){3}|.*:.*")

Compute = Callable[[int], int]
_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a // b,
    "%": lambda a, b: a % b,
}


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula that was read; `text` is what the operator wrote."""

    text: str
    compute: Compute

    def upgrade_domain(self, host: str) -> str:
        """The upgrade domain of a host by its name; raises OperatorError when there is none."""
        ordinal = ordinal_of(host)
        try:
            value = self.compute(ordinal)
        except ZeroDivisionError:
            raise OperatorError(
                f"upgrade domain formula {self.text!r} divides by zero for ordinal {ordinal}: "
                "divide by a number"
            ) from None
        if value < 0:
            raise OperatorError(
                f"upgrade domain formula {self.text!r} gives {value} for ordinal {ordinal}: "
                "write one that is never below 0, like ordinal % 3"
            )
        return str(value)


def ordinal_of(host: str) -> int:
    """The number at the end of a host's name, before its first dot: 12 of `kafka-12.example`.

    Raises OperatorError where there is none, as in an address."""
    name = host.partition(".")[0]
    found = None if _ADDRESS.fullmatch(host) else _NUMBER_AT_THE_END.search(name)
    if found is None:
        raise OperatorError(
            f"host {host[:80]!r} has no number at the end of its name: "
            "name hosts like kafka-12, or give upgrade_domain as a label"
        )
    return int(found[1])


def parse_formula(text: str) -> Formula:
    """Read a formula; raises OperatorError with one line that says what to write."""
    if len(text) > FORMULA_CHARACTERS_MAX:
        raise _refused(text, f"is longer than {FORMULA_CHARACTERS_MAX} characters")
    reader = _Reader(text)
    compute = reader.sum()
    if reader.tokens:
        raise _refused(text, f"has {reader.tokens[0]!r} where it should end")
    return Formula(text.strip(), compute)


class _Reader:
    """The tokens that are left."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.tokens: list[str] = []
        position = 0
        rest = text.rstrip()
        while position < len(rest):
            match = _TOKEN.match(rest, position)
            if match is None:
                raise _refused(text, f"has {rest[position:].strip()[:1]!r}")
            self.tokens.append(match[1])
            position = match.end()

    def sum(self) -> Compute:
        return self._chain("+-", self._product)

    def _product(self) -> Compute:
        return self._chain("*/%", self._atom)

    def _chain(self, operators: str, operand: Callable[[], Compute]) -> Compute:
        value = operand()
        while self.tokens and self.tokens[0] in operators:
            operator = _OPERATORS[self.tokens.pop(0)]
            value = _apply(operator, value, operand())
        return value

    def _atom(self) -> Compute:
        token = self.tokens.pop(0) if self.tokens else ""
        if token == "ordinal":
            return lambda ordinal: ordinal
        if token.isdigit() and len(token) <= _DIGITS_MAX:
            number = int(token)
            return lambda _: number
        if token == "(":
            value = self.sum()
            if not self.tokens or self.tokens.pop(0) != ")":
                raise _refused(self._text, "lacks a closing bracket")
            return value
        raise _refused(self._text, f"has {token!r}" if token else "ends too early")


def _apply(operator: Callable[[int, int], int], left: Compute, right: Compute) -> Compute:
    return lambda ordinal: operator(left(ordinal), right(ordinal))


def _refused(text: str, reason: str) -> OperatorError:
    return OperatorError(
        f"upgrade domain formula {text[:FORMULA_CHARACTERS_MAX]!r} {reason}: write numbers, "
        "`ordinal`, + - * / % and brackets, for example ordinal % 3"
    )
