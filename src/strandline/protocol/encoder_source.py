"""Generates the Python source of an encoder for one class at one version.

Why:    as for decoders: the table is walked once, and not for every message.
How:    one function `encode(m, out, parts)` per class, appending to the bytearray `out`. A single
        struct call packs neighbouring fields of a fixed size. Records go to
        `primitives.put_records`, which keeps them apart if there is a list of `parts`.
        A value that does not fit its field (a forbidden None, a number too large, a string above
        32,767 bytes in a version that is not flexible) is a bug of the caller and raises Python's
        own error.
Source: KIP-482, KIP-893."""

import struct
from collections.abc import Callable

import msgspec

from strandline.protocol import primitives
from strandline.protocol.table import FIXED, Column, VersionRange, columns

Namespace = dict[str, object]
_NEVER = VersionRange.parse("none")


class EncoderSource:
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
        self.lines: list[str] = ["def encode(m, out, parts):"]
        self.namespace: Namespace = {
            "encode_uvarint": primitives.encode_uvarint,
            "pack": struct.pack,
            "put_records": primitives.put_records,
            "records_size": primitives.records_size_bytes,
        }
        self._run: list[tuple[str, str]] = []
        self._indent = 1

    def build(self) -> str:
        """The whole source."""
        present = [column for column in columns(self.cls) if column.versions.has(self.version)]
        for column in present:
            if column.tag is None:
                self._column(column, f"m.{column.name}")
        tagged = {column.tag: column for column in present if column.tag is not None}
        assert self.flexible or not tagged, f"{self.cls.__name__}: tags without flexible versions"
        if self.flexible:
            if tagged:
                self._flush()
                self._tagged_section([tagged[tag] for tag in sorted(tagged)])
            else:
                self._give("B", "0")
        self._flush()
        self._emit("return out")
        return "\n".join(self.lines) + "\n"

    def _emit(self, line: str) -> None:
        self.lines.append("    " * self._indent + line)

    # Runs of fixed-size values.

    def _give(self, wire_format: str, expression: str) -> None:
        self._run.append((wire_format, expression))

    def _flush(self) -> None:
        """Write the run of fixed-size values collected so far with one struct call."""
        if not self._run:
            return
        formats = "".join(item for item, _ in self._run)
        arguments = [expression for _, expression in self._run]
        self._run = []
        if formats == "B":
            self._emit(f"out.append({arguments[0]})")
            return
        pack = "pack_" + formats.replace("?", "z")
        self.namespace[pack] = struct.Struct(">" + formats).pack
        self._emit(f"out += {pack}({', '.join(arguments)})")

    # One field.

    def _column(self, column: Column, value: str) -> None:
        nullable = column.nullable.has(self.version)
        if column.is_array:
            self._array(column, value, nullable=nullable)
        elif column.wire == "struct":
            self._flush()
            self._structure(column, value, nullable=nullable)
        elif column.wire in FIXED:
            suffix = ".bytes" if column.wire == "uuid" else ""
            self._give(FIXED[column.wire], value + suffix)
        else:
            self._sized(column, value, nullable=nullable)

    def _structure(self, column: Column, value: str, *, nullable: bool) -> None:
        assert column.element is not None
        write = f"write_{column.element.__name__}"
        self.namespace[write] = self.nested(column.element)
        if not nullable:
            self._emit(f"{write}({value}, out, parts)")
            return
        self._emit(f"if {value} is None:")
        self._emit("    out.append(255)")
        self._emit("else:")
        self._emit("    out.append(1)")
        self._emit(f"    {write}({value}, out, parts)")

    def _length(self, length_format: str, length: str) -> None:
        """Write the length that the local `length` holds, -1 for null."""
        if self.flexible:
            self._flush()
            self._emit(f"if {length} < 127:")
            self._emit(f"    out.append({length} + 1)")
            self._emit("else:")
            self._emit(f"    out += encode_uvarint({length} + 1)")
        else:
            self._give(length_format, length)
            self._flush()

    def _sized(self, column: Column, value: str, *, nullable: bool) -> None:
        """A string, bytes or records."""
        if column.wire == "records":
            self._emit(f"s = {value}")
            size = "records_size(s)"
        elif nullable:
            self._emit(f"s = {value}")
            size = "len(s)"
            if column.wire == "string":
                self._emit("if s is not None:")
                self._emit("    s = s.encode()")
        else:
            self._emit(f"s = {value}" + (".encode()" if column.wire == "string" else ""))
            size = "len(s)"
        self._emit(f"n = -1 if s is None else {size}" if nullable else f"n = {size}")
        self._length("h" if column.wire == "string" else "i", "n")
        line = "put_records(s, out, parts)" if column.wire == "records" else "out += s"
        if nullable:
            self._emit("if n > 0:")
            line = "    " + line
        self._emit(line)

    def _array(self, column: Column, value: str, *, nullable: bool) -> None:
        items = f"v_{column.name}"
        self._emit(f"{items} = {value}")
        self._emit(
            f"n = -1 if {items} is None else len({items})" if nullable else f"n = len({items})"
        )
        self._length("i", "n")
        if nullable:
            self._emit("if n > 0:")
            self._indent += 1
        if column.wire in FIXED and column.wire != "uuid":
            self._emit(f"out += pack(f'>{{n}}{FIXED[column.wire]}', *{items})")
        else:
            self._emit(f"for item in {items}:")
            self._indent += 1
            self._column(column._replace(is_array=False, nullable=_NEVER), "item")
            self._flush()
            self._indent -= 1
        if nullable:
            self._indent -= 1

    # Tags.

    def _tagged_section(self, tagged: list[Column]) -> None:
        """Count what differs from its default, then write it, each field with its size in front."""
        differs = []
        for column in tagged:
            value, default = f"m.{column.name}", f"default_{column.name}"
            if column.is_array:
                differs.append(f"m.{column.name}")
            elif column.default is None:
                differs.append(f"{value} is not None")
            else:
                self.namespace[default] = column.default
                differs.append(f"{value} is not {default} and {value} != {default}")
        for number, condition in enumerate(differs):
            self._emit(f"has_{number} = {condition}")
        everything = " or ".join(f"has_{number}" for number in range(len(tagged)))
        count = " + ".join(f"bool(has_{number})" for number in range(len(tagged)))
        self._emit(f"if not ({everything}):")
        self._emit("    out.append(0)")
        self._emit("else:")
        self._indent += 1
        self._emit(f"out += encode_uvarint({count})")
        for number, column in enumerate(tagged):
            self._emit(f"if has_{number}:")
            self._indent += 1
            self._emit("whole, out = out, bytearray()")
            self._column(column, f"m.{column.name}")
            self._flush()
            assert column.tag is not None
            self._emit(f"whole += encode_uvarint({column.tag})")
            self._emit("whole += encode_uvarint(len(out))")
            self._emit("whole += out")
            self._emit("out = whole")
            self._indent -= 1
        self._indent -= 1
