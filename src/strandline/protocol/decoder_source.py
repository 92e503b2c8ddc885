"""Generates the Python source of a decoder for one class at one version.

Why:    the table is walked once, when the source is generated, and not for every message.
How:    one function `decode(data, p, end, left) -> (message, p)` per class. A single struct call
        reads neighbouring fields of a fixed size, and the length before a string or array:

            a, b, n = unpack_iih(data, p)
            p += 10

        Every declared length is compared with the bytes left before anything is allocated for it.
        `left`: how many more elements of arrays, and tags, the whole message may have, and how
        many it had to begin with. An element of two bytes takes fifty of memory, so bytes alone
        bound little.
        Reading past the end of `data` raises IndexError or struct.error, which `codec.decode` turns
        into ProtocolError.
Source: KIP-482, KIP-893; reference reliability.md section 4."""

import struct
from collections.abc import Callable

import msgspec

from strandline.protocol import primitives
from strandline.protocol.primitives import ALL_ITEMS
from strandline.protocol.table import (
    FIXED,
    Column,
    VersionRange,
    columns,
    fixed_size_bytes,
    min_element_size,
    min_size_bytes,
)

Namespace = dict[str, object]
_NEVER = VersionRange.parse("none")


class DecoderSource:
    """Builds the source; `lines` and `namespace` are what `exec` needs."""

    def __init__(
        self,
        cls: type[msgspec.Struct],
        version: int,
        *,
        flexible: bool,
        nested: Callable[[type[msgspec.Struct]], object],
    ) -> None:
        self.cls = cls
        self.version = version
        self.flexible = flexible
        self.nested = nested
        self.lines: list[str] = ["def decode(data, p, end, left):"]
        self.namespace: Namespace = {
            "cls": cls,
            "fail": primitives.fail,
            "fail_items": primitives.fail_items,
            "read_uvarint": primitives.read_uvarint,
            "skip_tags": primitives.skip_tags,
            "to_uuid": primitives.to_uuid,
            "unpack_from": struct.unpack_from,
        }
        self._run: list[tuple[str, str]] = []
        self._indent = 1

    def build(self) -> str:
        """The whole source."""
        table = columns(self.cls)
        present = [column for column in table if column.versions.has(self.version)]
        for column in present:
            if column.tag is None:
                self._column(column)
        self._flush()
        tagged = {column.tag: column for column in present if column.tag is not None}
        assert self.flexible or not tagged, f"{self.cls.__name__}: tags without flexible versions"
        if self.flexible:
            self._tagged_section(tagged)
        arguments = []
        last = max((table.index(column) for column in present), default=-1)
        for column in table[: last + 1]:
            if column in present:
                arguments.append(f"v_{column.name}")
            else:
                arguments.append(self._default(column))
        self._emit(f"return cls({', '.join(arguments)}), p")
        return "\n".join(self.lines) + "\n"

    def _emit(self, line: str) -> None:
        self.lines.append("    " * self._indent + line)

    def _default(self, column: Column) -> str:
        if column.default == () and column.is_array:
            return "[]"
        name = f"default_{column.name}"
        self.namespace[name] = column.default
        return name

    def _fail(self, column: Column, problem: str) -> str:
        return f"fail({f'{self.cls.__name__}.{column.name}: {problem}'!r})"

    # Runs of fixed-size values.

    def _take(self, target: str, wire_format: str) -> None:
        self._run.append((target, wire_format))

    def _flush(self) -> None:
        """Read the run of fixed-size values collected so far with one struct call."""
        if not self._run:
            return
        targets = [target for target, _ in self._run]
        formats = [item for _, item in self._run]
        self._run = []
        unpack = "unpack_" + "".join(formats).replace("?", "z")
        self.namespace[unpack] = struct.Struct(">" + "".join(formats)).unpack_from
        self._emit(f"{', '.join(targets)}{',' if len(targets) == 1 else ''} = {unpack}(data, p)")
        self._emit(f"p += {fixed_size_bytes(formats)}")
        for target, item in zip(targets, formats, strict=True):
            if item == "16s":
                self._emit(f"{target} = to_uuid({target})")

    # One field.

    def _column(self, column: Column) -> None:
        target = f"v_{column.name}"
        nullable = column.nullable.has(self.version)
        if column.is_array:
            self._array(column, target, nullable=nullable)
        elif column.wire == "struct":
            self._flush()
            self._structure(column, target, nullable=nullable)
        elif column.wire in FIXED:
            self._take(target, FIXED[column.wire])
        else:
            self._sized(column, target, nullable=nullable)

    def _structure(self, column: Column, target: str, *, nullable: bool) -> None:
        assert column.element is not None
        read = f"read_{column.element.__name__}"
        self.namespace[read] = self.nested(column.element)
        if not nullable:
            self._emit(f"{target}, p = {read}(data, p, end, left)")
            return
        self._emit("p += 1")  # One signed byte: negative is null.
        self._emit("if data[p - 1] > 127:")
        self._emit(f"    {target} = None")
        self._emit("else:")
        self._emit(f"    {target}, p = {read}(data, p, end, left)")

    def _length(self, column: Column, length_format: str, *, nullable: bool) -> None:
        """Put a declared length into `n`, -1 for null; refuse what is negative, or no length."""
        if self.flexible:
            self._flush()
            self._emit("n = data[p] - 1")
            self._emit("if n < 127:")
            self._emit("    p += 1")
            self._emit("else:")
            self._emit("    n, p = read_uvarint(data, p)")
            self._emit("    n -= 1")
        else:
            self._take("n", length_format)
            self._flush()
        if not nullable:
            self._emit("if n < 0:")
            self._emit("    " + self._fail(column, "null or negative length"))
        elif not self.flexible:
            self._emit("if n < -1:")
            self._emit("    " + self._fail(column, "negative length"))

    def _sized(self, column: Column, target: str, *, nullable: bool) -> None:
        """A string, bytes or records."""
        self._length(column, "h" if column.wire == "string" else "i", nullable=nullable)
        if nullable:
            self._emit("if n < 0:")
            self._emit(f"    {target} = None")
            self._emit("else:")
            self._indent += 1
        self._sized_body(column, target)
        if nullable:
            self._indent -= 1

    def _sized_body(self, column: Column, target: str) -> None:
        self._emit("q = p + n")
        self._emit("if q > end:")
        self._emit("    " + self._fail(column, "longer than what is left"))
        if self.flexible and column.wire == "string":
            self._emit(f"if n > {primitives.STRING_BYTES_MAX} and left[1] < {ALL_ITEMS}:")
            self._emit("    " + self._fail(column, "longer than a string may be"))
        match column.wire:
            case "string":
                self._emit(f"{target} = str(data[p:q], 'utf-8')")
            case "bytes":
                self._emit(f"{target} = bytes(data[p:q])")
            case _:
                assert column.wire == "records"
                self._emit(f"{target} = memoryview(data)[p:q]")
        self._emit("p = q")

    def _array(self, column: Column, target: str, *, nullable: bool) -> None:
        self._length(column, "i", nullable=nullable)
        if nullable:
            self._emit("if n < 0:")
            self._emit(f"    {target} = None")
            self._emit("else:")
            self._indent += 1
        if column.wire == "struct":
            assert column.element is not None
            minimum = min_size_bytes(column.element, self.version, flexible=self.flexible)
        else:
            minimum = min_element_size(column.wire, flexible=self.flexible)
        assert minimum > 0
        self._emit(f"if n * {minimum} > end - p or n > {primitives.ARRAY_ELEMENTS_MAX}:")
        self._emit("    " + self._fail(column, "more elements than can be there"))
        self._spend("n")
        self._elements(column, target)
        if nullable:
            self._indent -= 1

    def _spend(self, count: str) -> None:
        """Count elements or tags that follow."""
        self._emit(f"left[0] -= {count}")
        self._emit("if left[0] < 0:")
        self._emit("    fail_items(left)")

    def _elements(self, column: Column, target: str) -> None:
        if column.wire in FIXED and column.wire != "uuid":
            wire_format = FIXED[column.wire]
            self._emit(f"{target} = list(unpack_from(f'>{{n}}{wire_format}', data, p))")
            self._emit(f"p += n * {fixed_size_bytes([wire_format])}")
            return
        self._emit(f"{target} = []")
        self._emit("for _ in range(n):")
        self._indent += 1
        # The element is read as if it were a field that cannot be null.
        self._column(
            column._replace(name=f"{column.name}_item", is_array=False, nullable=_NEVER, tag=None)
        )
        self._flush()
        self._indent -= 1
        self._emit(f"    {target}.append(v_{column.name}_item)")

    # Tags.

    def _tagged_section(self, tagged: dict[int, Column]) -> None:
        for column in tagged.values():
            self._emit(f"v_{column.name} = {self._default(column)}")
        self._emit("if data[p] == 0:")
        self._emit("    p += 1")
        self._emit("else:")
        if not tagged:
            self._emit("    p = skip_tags(data, p, end, left)")
            return
        self._indent += 1
        self._emit("count, p = read_uvarint(data, p)")
        self._emit(f"if count > {primitives.TAGGED_FIELDS_MAX}:")
        self._emit("    fail('too many tagged fields')")
        self._spend("count")
        self._emit("outer = end")
        self._emit("for _tag in range(count):")
        self._indent += 1
        self._emit("tag, p = read_uvarint(data, p)")
        self._emit("n, p = read_uvarint(data, p)")
        self._emit("end = p + n")
        self._emit("if end > outer:")
        self._emit("    fail('tagged field longer than what is left')")
        word = "if"
        for tag, column in sorted(tagged.items()):
            self._emit(f"{word} tag == {tag}:")
            self._indent += 1
            self._column(column)
            self._flush()
            self._emit("if p != end:")
            self._emit("    " + self._fail(column, "size of the tagged field is wrong"))
            self._indent -= 1
            word = "elif"
        self._emit("else:")
        self._emit("    p = end")
        self._indent -= 1
        self._emit("end = outer")
        self._indent -= 1
