"""Finds the type of JSON values from samples, by rules that do not depend on chance.

Why:    a first table should need no schema file; the same samples must give the same type anywhere.
How:    each field, in the order in which fields first appear, may always be null:
            true, false          BOOLEAN
            text                 STRING, whatever it looks like: a date may be a text tomorrow
            integers             BIGINT; DECIMAL(38,0) if one of them does not fit
            other numbers        DOUBLE if each number of the field is exact as DOUBLE, else DECIMAL
            objects, arrays      STRUCT, ARRAY; never MAP: only a schema can say that names are data
            only null, [], {}    no field: its type is not known yet (`Inferred.undecided`)
        A field with values of two kinds is refused, and so are names that differ only in case.
        The type grows from one run to the next by `values/evolution.py`.
Source: decisions/0051."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import types as T  # noqa: N812  (as in all of Spark's documentation)

from strandline.base.errors import OperatorError
from strandline.pipeline.values import numbers
from strandline.pipeline.values.ddl import DECIMAL_DIGITS_MAX, FIELDS_MAX, NESTING_MAX
from strandline.pipeline.values.json.document import Members, Number, parse
from strandline.pipeline.values.problems import UnfitValueError, encodable, join, shown

_LONG, _DOUBLE = T.LongType(), T.DoubleType()


@dataclass(frozen=True, slots=True)
class Inferred:
    """The type of some samples."""

    type: T.StructType
    undecided: tuple[str, ...]
    """Fields that are not in the type, for no sample has a value of a known type there."""
    samples: int
    """Samples that are JSON objects; the type rests on them."""
    skipped: int
    """Samples that are not; null (a tombstone) counts in neither."""


def infer(values: Iterable[bytes | None]) -> Inferred:
    """The type that holds every sample exactly. OperatorError names the field that has none."""
    root = _Seen()
    samples = skipped = 0
    for data in values:
        if data is None:
            continue
        try:
            document, trailing = parse(data)
        except UnfitValueError:
            document, trailing = None, True
        if trailing or not isinstance(document, Members):
            skipped += 1
        else:
            samples += 1
            root.add(document, "", 0)
    undecided: list[str] = []
    found = _type_of(root, "", undecided)
    if not isinstance(found, T.StructType):
        raise OperatorError(
            f"no schema can be inferred: {samples} of {samples + skipped} samples are JSON "
            "objects, and they have no values: give --schema"
        )
    return Inferred(found, tuple(undecided), samples, skipped)


@dataclass(slots=True)
class _Seen:
    """What the samples have at one place."""

    kinds: dict[str, str] = field(default_factory=dict)
    """{kind: the first value of this kind, for the error}"""
    members: dict[str, "_Seen"] = field(default_factory=dict)
    element: "_Seen | None" = None
    is_long: bool = True
    is_double: bool = True
    whole: int = 1
    """Most digits before the point."""
    scale: int = 0

    def add(self, value: Any, path: str, depth: int) -> None:
        if depth > NESTING_MAX:
            raise OperatorError(f"field {path[:80]}: more than {NESTING_MAX} levels: give --schema")
        if value is None:
            return
        if isinstance(value, Members):
            self.kinds.setdefault("object", "an object")
            for name, one in value:
                if name not in self.members and len(self.members) == FIELDS_MAX:
                    raise OperatorError(
                        f"more than {FIELDS_MAX} names in {path or 'the values'}: if names are "
                        "data, give --schema with a MAP"
                    )
                place = join(path, encodable(name))
                self.members.setdefault(name, _Seen()).add(one, place, depth + 1)
        elif isinstance(value, Number):
            self.kinds.setdefault("number", shown(value))
            self._add_number(value)
        elif isinstance(value, str):
            self.kinds.setdefault("text", f'"{shown(value)}"')
        elif isinstance(value, bool):
            self.kinds.setdefault("boolean", str(value).lower())
        else:
            self.kinds.setdefault("array", "an array")
            self.element = self.element or _Seen()
            for one in value:
                self.element.add(one, join(path, "element"), depth + 1)

    def _add_number(self, text: Number) -> None:
        self.is_long = self.is_long and numbers.integer(text, _LONG)[1] is None
        self.is_double = self.is_double and numbers.floating(text, _DOUBLE)[1] is None
        exact = numbers.exact(text) if numbers.is_number(text) else None
        if exact is None or abs(exact.adjusted()) > DECIMAL_DIGITS_MAX:
            self.whole = DECIMAL_DIGITS_MAX + 1
        elif exact:
            digits = "".join(map(str, exact.as_tuple().digits)).rstrip("0")
            self.whole = max(self.whole, exact.adjusted() + 1)
            self.scale = max(self.scale, len(digits) - 1 - exact.adjusted())


def _type_of(seen: _Seen, path: str, undecided: list[str]) -> T.DataType | None:
    """None if nothing is known."""
    if len(seen.kinds) > 1:
        shown_kinds = " and ".join(seen.kinds.values())
        raise OperatorError(f"field {path} has values of two kinds: {shown_kinds}: give --schema")
    for kind in seen.kinds:
        if kind == "object":
            return _struct(seen, path, undecided)
        if kind == "array":
            assert seen.element is not None
            element = _type_of(seen.element, join(path, "element"), undecided)
            return None if element is None else T.ArrayType(element)
        if kind == "number":
            return _number(seen, path)
        return T.StringType() if kind == "text" else T.BooleanType()
    return None


def _number(seen: _Seen, path: str) -> T.DataType:
    if seen.is_long:
        return T.LongType()
    if not seen.scale and seen.whole <= DECIMAL_DIGITS_MAX and not seen.is_double:
        return T.DecimalType(DECIMAL_DIGITS_MAX, 0)
    if seen.is_double:
        return T.DoubleType()
    if seen.whole + seen.scale > DECIMAL_DIGITS_MAX:
        raise OperatorError(
            f"field {path}: its numbers have more digits than DOUBLE and DECIMAL: give --schema"
        )
    return T.DecimalType(DECIMAL_DIGITS_MAX, seen.scale)


def _struct(seen: _Seen, path: str, undecided: list[str]) -> T.StructType | None:
    fields = []
    for name, place, one in _distinct(seen, path):
        found = _type_of(one, place, undecided)
        if found is None:
            undecided.append(place)
        else:
            fields.append(T.StructField(name, found))
    return T.StructType(fields) if fields else None


def _distinct(seen: _Seen, path: str) -> Iterator[tuple[str, str, _Seen]]:
    names: dict[str, str] = {}
    for name, one in seen.members.items():
        twin = names.setdefault(name.lower(), name)
        if twin != name:
            raise OperatorError(
                f"fields {join(path, shown(twin))} and {join(path, shown(name))} differ only in "
                "case, and column names ignore case: give --schema"
            )
        if encodable(name) != name:
            raise OperatorError(
                f"field {join(path, encodable(name))}: its name has a lone surrogate"
            )
        yield name, join(path, name), one
