"""Defines a configuration key: name, type, default, bounds, one sentence, and how to read a value.

Why:    the file loader, the Kafka config APIs and the reference pages must agree about every key.
How:    a configuration class is a frozen dataclass whose class body *is* the table: each field is
        declared with `key(...)` or `required(...)`; `keys_of` turns the class into `Key`s. Values
        are int, float, bool, str or a tuple of str.
Source: STYLE, "Configuration" and rule 4."""

import dataclasses
from collections.abc import Callable
from enum import Enum
from math import inf, isfinite
from typing import TypeVar

Value = int | float | bool | str | tuple[str, ...]
T = TypeVar("T", bound=Value)

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
SHORT_MAX = 2**15 - 1
NOT_KAFKAS = " Not a key of Kafka's."
"""Ends the meaning of every key that Kafka does not have."""
_TRUE, _FALSE = "true", "false"


class ValueType(Enum):
    """The types of values; the number is the one of Kafka's DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9

    @property
    def title(self) -> str:
        """The word for the reference pages."""
        match self:
            case ValueType.INT | ValueType.SHORT | ValueType.LONG:
                return "integer"
            case ValueType.DOUBLE:
                return "number"
            case ValueType.CLASS | ValueType.PASSWORD:
                return "string"
        return self.name.lower()


@dataclasses.dataclass(frozen=True, slots=True)
class Key:
    """One key. `default` is None where a value must be given, and where one of Kafka's keys has
    none; `bounds` are inclusive."""

    name: str
    type: ValueType
    default: Value | None
    doc: str
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    example: str = ""
    reloadable: bool = False
    own: bool = False
    """Whether Kafka has no such key."""
    internal: bool = False
    """Whether the key is for tests, as in Kafka: described only where it is set, in no page."""
    cluster_name: str = ""
    """For a topic key: the cluster-wide key that gives its default."""
    check: Callable[[Value], str | None] | None = None
    """A further check: the reason why not, or None."""

    @property
    def is_number(self) -> bool:
        """Whether the value is a number, which bounds can be about."""
        return self.type.title in ("integer", "number")

    @property
    def field(self) -> str:
        """The attribute that carries the value of a key with one of Kafka's dotted names."""
        return self.name.replace(".", "_")

    def parse(self, text: str) -> Value:
        """Read a value from text (environment, Kafka's config APIs); raises ValueError with the
        reason."""
        text = text.strip()
        value: Value
        match self.type:
            case ValueType.BOOLEAN:
                if text.lower() not in (_TRUE, _FALSE):
                    raise ValueError(f"must be true or false, not {text!r}")
                value = text.lower() == _TRUE
            case ValueType.INT | ValueType.SHORT | ValueType.LONG:
                value = _parse_integer(text)
            case ValueType.DOUBLE:
                value = _parse_number(text)
            case ValueType.LIST:
                value = tuple(part.strip() for part in text.split(",") if part.strip())
                if self.choices:  # Kafka takes one twice, and so do files that were written for it.
                    value = tuple(dict.fromkeys(value))
            case ValueType.STRING | ValueType.CLASS | ValueType.PASSWORD:
                value = text
        self.require(value)
        return value

    def parse_nearest(self, text: str) -> Value:
        """Read a value that a broker accepted once: a number beyond the bounds becomes the nearest
        one within them. Raises ValueError with the reason."""
        try:
            return self.parse(text)
        except ValueError:
            if not self.is_number:
                raise
        is_whole = self.type is not ValueType.DOUBLE
        number = _parse_integer(text.strip()) if is_whole else _parse_number(text.strip())
        low = number if self.minimum is None else max(number, self.minimum)
        nearest = low if self.maximum is None else min(low, self.maximum)
        self.require(nearest)
        return nearest

    def refuse(self, text: str) -> str | None:
        """Why this text may not be the value, in one line that names the key; None when it may."""
        try:
            self.parse(text)
        except ValueError as error:
            return f"{self.name} {error}"
        return None

    def require(self, value: Value) -> None:
        """Check a value of the right type; raises ValueError with the reason."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            self._require_bounds(value)
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(text, str) and not text.isprintable():
                raise ValueError(f"must be printable text, not {text!r}")
        if self.choices:
            for part in value if isinstance(value, tuple) else (value,):
                if part not in self.choices:
                    raise ValueError(f"must be {alternatives(self.choices)}, not {part!r}")
        if isinstance(value, tuple) and len(set(value)) != len(value):
            raise ValueError("names something twice")
        reason = self.check(value) if self.check is not None else None
        if reason is not None:
            raise ValueError(reason)

    def _require_bounds(self, value: float) -> None:
        low, high = _RANGES.get(self.type, (-inf, inf))
        low = low if self.minimum is None else self.minimum
        high = high if self.maximum is None else self.maximum
        if not low <= value <= high:
            raise ValueError(f"must be {self.bounds or f'at most {high}'}, not {value}")

    @property
    def bounds(self) -> str:
        """The allowed values in words; empty if any value is allowed."""
        if self.choices:
            return alternatives(self.choices)
        if self.minimum is not None and self.maximum is not None:
            return f"{self.minimum} to {self.maximum}"
        if self.minimum is not None:
            return f"at least {self.minimum}"
        return f"at most {self.maximum}" if self.maximum is not None else ""


_RANGES = {
    ValueType.SHORT: (-SHORT_MAX - 1, SHORT_MAX),
    ValueType.INT: (-INT_MAX - 1, INT_MAX),
    ValueType.LONG: (-LONG_MAX - 1, LONG_MAX),
}


def key(
    default: T,
    doc: str,
    *,
    unit: str = "",
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] = (),
    example: str = "",
    reloadable: bool = False,
    own: bool = False,
    cluster_name: str = "",
    check: Callable[[Value], str | None] | None = None,
    long: bool = False,
    internal: bool = False,
    secret: bool = False,
) -> T:
    """Declare a field of a configuration class with its row of the table. `own`: Kafka has no such
    key; `long`: 64 bits for Kafka's APIs; `internal`: for tests, with no value unless it is set;
    `secret`: no request shows its text, and no bucket has it."""
    row = Key(
        name="",
        type=ValueType.PASSWORD if secret else ValueType.LONG if long else _type_of(default),
        default=None if internal else default,
        doc=doc + NOT_KAFKAS if own else doc,
        unit=unit,
        minimum=minimum,
        maximum=maximum,
        choices=choices,
        example=example,
        reloadable=reloadable,
        own=own,
        internal=internal,
        cluster_name=cluster_name,
        check=check,
    )
    return dataclasses.field(default=default, metadata={"key": row})


def required(
    like: T,
    doc: str,
    *,
    minimum: int | None = None,
    check: Callable[[Value], str | None] | None = None,
) -> T:
    """Declare a field that has no default; `like` is an example of its value."""
    row = Key(
        name="",
        type=_type_of(like),
        default=None,
        doc=doc,
        minimum=minimum,
        example=format_value(like),
        check=check,
    )
    declared: T = dataclasses.field(metadata={"key": row})
    return declared


def keys_of(configuration: type, *, prefix: str = "", dotted: bool = False) -> tuple[Key, ...]:
    """The rows of a configuration class, in its order. `dotted`: Kafka's spelling, `retention.ms`
    for `retention_ms`."""
    return tuple(
        dataclasses.replace(
            field.metadata["key"],
            name=prefix + (field.name.replace("_", ".") if dotted else field.name),
        )
        for field in dataclasses.fields(configuration)
    )


def format_value(value: Value) -> str:
    """The text that `Key.parse` reads back."""
    if isinstance(value, bool):
        return _TRUE if value else _FALSE
    return ",".join(value) if isinstance(value, tuple) else str(value)


def alternatives(choices: tuple[str, ...]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    return " or ".join(part for part in (", ".join(choices[:-1]), choices[-1]) if part)


def _type_of(value: Value) -> ValueType:
    if isinstance(value, bool):
        return ValueType.BOOLEAN
    if isinstance(value, int):
        return ValueType.INT
    if isinstance(value, float):
        return ValueType.DOUBLE
    return ValueType.LIST if isinstance(value, tuple) else ValueType.STRING


def _parse_integer(text: str) -> int:
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 19:
        raise ValueError(f"must be a whole number, not {text!r}")
    return int(text)


def _parse_number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"must be a number, not {text!r}") from None
    if not isfinite(value) or "_" in text:
        raise ValueError(f"must be a number, not {text!r}")
    return value
