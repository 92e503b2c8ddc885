"""The wire format of a message class: the class body is the table.

Why:    one place per message; codec, tests and documentation read the same table.
How:    a message is a `Message` with one annotated line per field, in wire order:

            name: Annotated[type, F(wire type, versions, nullable=versions, tag=number)] = default

        wire type   bool int8 int16 int32 int64 uint16 uint32 float64 uuid string bytes records
                    struct, or "[]" in front of one
        versions    "0+" (the default), "3-7", "5", "none"; in other versions the field takes no
                    bytes
        nullable    versions in which None may be sent
        tag         the field travels in the tagged section, and only if it differs from its default
        default     Kafka's; also the value of a field that is absent

        Annotations stay strings until a codec is compiled, so that importing a table costs little.
Source: KIP-482 (flexible versions), KIP-893 (nullable structs); reference
        kafka-protocol 8.4-8.7."""

from collections.abc import Sequence
from functools import cache
from typing import Annotated, ClassVar, NamedTuple, Protocol, get_args, get_origin, get_type_hints
from uuid import UUID

import msgspec

from strandline.base.disk import Buffer

NO_ID = UUID(int=0)
"""The UUID that stands for "none" on the wire."""


class SizedPart(Protocol):
    """Bytes that are elsewhere, such as a range of a file for sendfile. Here they are a number."""

    @property
    def size_bytes(self) -> int:
        """How many bytes the part will put on the wire."""


Records = Buffer | SizedPart | Sequence[Buffer | SizedPart]
"""Record batches as a message may carry them out. Decoding gives one memoryview, not a copy."""


class VersionRange(NamedTuple):
    """Versions `first` to `last`, both included; empty when `first > last`."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> "VersionRange":
        """Read "0+", "3-7", "5" or "none"."""
        if text == "none":
            return cls(1, 0)
        if text.endswith("+"):
            return cls(int(text[:-1]), UNBOUNDED_VERSION)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))

    def has(self, version: int) -> bool:
        """Whether `version` lies in the range."""
        return self.first <= version <= self.last


UNBOUNDED_VERSION = 32767


class F:
    """The wire side of one field. See the module's docstring for the meaning of each argument."""

    __slots__ = ("nullable", "tag", "versions", "wire")

    def __init__(
        self, wire: str, versions: str = "0+", *, nullable: str = "none", tag: int | None = None
    ) -> None:
        self.wire = wire
        self.versions = VersionRange.parse(versions)
        self.nullable = VersionRange.parse(nullable)
        self.tag = tag


class Value(msgspec.Struct, frozen=True, gc=False):
    """A small immutable structure: all messages share one default instance."""


class Message(msgspec.Struct, gc=False):
    """A message or a structure inside one. Only whole messages set the three class attributes."""

    API_KEY: ClassVar[int] = -1
    """The request's key; -1 for structures and for schemas that are no requests."""
    VERSIONS: ClassVar[str] = "none"
    """The versions that can be encoded and decoded."""
    FLEXIBLE: ClassVar[str] = "none"
    """The versions with compact lengths and tagged sections."""


class Column(NamedTuple):
    """One field of a table, resolved. `is_array` tells "[]"; `wire` is then the element's type."""

    name: str
    wire: str
    is_array: bool
    versions: VersionRange
    nullable: VersionRange
    tag: int | None
    element: type[msgspec.Struct] | None
    default: object
    """The default value; for arrays an empty tuple stands for a fresh list."""


@cache
def columns(cls: type[msgspec.Struct]) -> tuple[Column, ...]:
    """The table of `cls`, in wire order."""
    hints = get_type_hints(cls, include_extras=True)
    defaults = cls.__struct_defaults__
    assert len(defaults) == len(cls.__struct_fields__), f"{cls.__name__}: a field has no default"
    table = []
    for name, default in zip(cls.__struct_fields__, defaults, strict=True):
        assert get_origin(hints[name]) is Annotated, f"{cls.__name__}.{name} has no wire type"
        annotation, field = get_args(hints[name])
        assert isinstance(field, F)
        is_array = field.wire.startswith("[]")
        wire = field.wire.removeprefix("[]")
        element = _element_class(annotation) if wire == "struct" else None
        if is_array and default is not None:
            default = ()
        table.append(
            Column(
                name, wire, is_array, field.versions, field.nullable, field.tag, element, default
            )
        )
    return tuple(table)


def _element_class(annotation: object) -> type[msgspec.Struct]:
    """The class inside `X`, `X | None`, `list[X]` or `list[X] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return annotation
    for argument in get_args(annotation):
        if argument is not type(None):
            return _element_class(argument)
    raise AssertionError(f"no message class in {annotation}")


FIXED = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint16": "H",
    "uint32": "I",
    "float64": "d",
    "uuid": "16s",
}
"""{wire type: struct format} of everything that has one size."""

_FIXED_SIZE = {"?": 1, "b": 1, "h": 2, "i": 4, "q": 8, "H": 2, "I": 4, "d": 8, "16s": 16}


def fixed_size_bytes(formats: Sequence[str]) -> int:
    """How many bytes these struct formats take together."""
    return sum(_FIXED_SIZE[item] for item in formats)


@cache
def min_size_bytes(cls: type[msgspec.Struct], version: int, *, flexible: bool) -> int:
    """The fewest bytes an instance can take: what a declared array length is checked against."""
    total = 1 if flexible else 0
    for column in columns(cls):
        if column.tag is None and column.versions.has(version):
            total += _min_column_size(column, version, flexible=flexible)
    return total


def _min_column_size(column: Column, version: int, *, flexible: bool) -> int:
    if column.is_array:
        return 1 if flexible else 4
    if column.wire == "struct":
        assert column.element is not None
        if column.nullable.has(version):
            return 1
        return min_size_bytes(column.element, version, flexible=flexible)
    return min_element_size(column.wire, flexible=flexible)


def min_element_size(wire: str, *, flexible: bool) -> int:
    """The fewest bytes one value of a wire type other than struct can take."""
    if wire in FIXED:
        return _FIXED_SIZE[FIXED[wire]]
    if flexible:
        return 1
    return 2 if wire == "string" else 4
