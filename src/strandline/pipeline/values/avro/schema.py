"""An Avro schema as nodes, and Spark's type of it.

How:    null in a union             may be null
        int, long, float, double    INT, BIGINT, FLOAT, DOUBLE; unions of them: the wider one
        boolean, string, enum       BOOLEAN, STRING, STRING
        bytes, fixed                BINARY
        record, array, map          STRUCT, ARRAY, MAP
        decimal, date               DECIMAL, DATE
        timestamp-millis, -micros   TIMESTAMP; local-timestamp-...: TIMESTAMP_NTZ
        other logical types         as without them (time-micros is BIGINT)
        Other unions, and records that contain themselves, have no column and are refused.
Source: Avro 1.12, "Schema Declaration"; Spark's SchemaConverters maps the same way."""

import json
from dataclasses import dataclass, field
from typing import Any, NoReturn

from pyspark.sql import types as T  # noqa: N812  (as in all of Spark's documentation)

from strandline.base.errors import OperatorError
from strandline.pipeline.values.ddl import DECIMAL_DIGITS_MAX, FIELDS_MAX, NESTING_MAX
from strandline.pipeline.values.evolution import wider

_PRIMITIVES: dict[str, type[T.DataType]] = {
    "boolean": T.BooleanType,
    "int": T.IntegerType,
    "long": T.LongType,
    "float": T.FloatType,
    "double": T.DoubleType,
    "bytes": T.BinaryType,
    "string": T.StringType,
    "enum": T.StringType,
    "fixed": T.BinaryType,
}
"""Also of named types without parts."""
_LOGICAL: dict[tuple[str, str], type[T.DataType]] = {
    ("int", "date"): T.DateType,
    ("long", "timestamp-millis"): T.TimestampType,
    ("long", "timestamp-micros"): T.TimestampType,
    ("long", "local-timestamp-millis"): T.TimestampNTZType,
    ("long", "local-timestamp-micros"): T.TimestampNTZType,
}


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record. `default` counts only if `has_default`."""

    name: str
    node: "Node"
    aliases: tuple[str, ...] = ()
    has_default: bool = False
    default: Any = None


@dataclass(frozen=True, slots=True)
class Node:
    """One type of a schema. `kind` is Avro's name of it; the other fields are those of its kind."""

    kind: str
    logical: str = ""
    precision: int = 0
    scale: int = 0
    size: int = 0
    symbols: tuple[str, ...] = ()
    fields: tuple[Field, ...] = ()
    items: "Node | None" = None
    """Of an array or a map."""
    branches: tuple["Node", ...] = ()


def parse_avro(text: str, *, source: str, references: tuple[str, ...] = ()) -> Node:
    """The nodes of a schema. `references`: the schemas of names that it uses, in their order."""
    parser = _Parser(source)
    found = Node("null")
    for one in (*references, text):
        try:
            document = json.loads(one)
        except (ValueError, RecursionError):
            # A bare name such as "string" without quotes is what some registries hold.
            document = one.strip()
        found = parser.node(document, "", "", 0)
    return found


@dataclass(slots=True)
class _Parser:
    source: str
    names: dict[str, Node | None] = field(default_factory=dict)
    """{full name: the type; None while it is being read}"""

    def node(self, given: Any, namespace: str, path: str, depth: int) -> Node:
        if depth > NESTING_MAX:
            self._refuse(path, f"more than {NESTING_MAX} levels of types")
        if isinstance(given, str):
            return self._by_name(given, namespace, path)
        if isinstance(given, list):
            branches = tuple(self.node(one, namespace, path, depth + 1) for one in given)
            return Node("union", branches=branches)
        if not isinstance(given, dict) or "type" not in given:
            self._refuse(path, "expected a type: a name, a list or an object with `type`")
        kind = given["type"]
        if isinstance(kind, dict | list):
            return self.node(kind, namespace, path, depth + 1)
        if kind in ("record", "error", "enum", "fixed"):
            return self._named(given, kind, namespace, path, depth)
        if kind == "array":
            return Node("array", items=self.node(given.get("items"), namespace, path, depth + 1))
        if kind == "map":
            return Node("map", items=self.node(given.get("values"), namespace, path, depth + 1))
        if isinstance(kind, str) and kind in _PRIMITIVES:
            return self._logical(given, Node(kind), path)
        return self._by_name(str(kind), namespace, path)

    def _by_name(self, name: str, namespace: str, path: str) -> Node:
        if (name in _PRIMITIVES and name not in ("enum", "fixed")) or name == "null":
            return Node(name)
        full = name if "." in name else f"{namespace}.{name}".strip(".")
        full = full if full in self.names else name
        if full not in self.names:
            self._refuse(path, f"unknown type {name}")
        found = self.names[full]
        if found is None:
            self._refuse(path, f"{name} contains itself: no column is that deep")
        return found

    def _named(
        self, given: dict[str, Any], kind: str, namespace: str, path: str, depth: int
    ) -> Node:
        name = str(given.get("name") or "")
        if not name:
            self._refuse(path, f"{kind} without a name")
        if "." in name:
            namespace, _, name = name.rpartition(".")
        else:
            namespace = str(given.get("namespace", namespace) or "")
        full = f"{namespace}.{name}".strip(".")
        if full in self.names:
            self._refuse(path, f"{full} is there twice")
        self.names[full] = None
        if kind == "enum":
            found = Node("enum", symbols=tuple(map(str, given.get("symbols") or ())))
        elif kind == "fixed":
            size = given.get("size")
            if not isinstance(size, int) or size < 0:
                self._refuse(path, f"{full}: expected a size")
            found = self._logical(given, Node("fixed", size=size), path)
        else:
            found = self._record(given, namespace, path, depth)
        self.names[full] = found
        return found

    def _record(self, given: dict[str, Any], namespace: str, path: str, depth: int) -> Node:
        fields: list[Field] = []
        listed = given.get("fields")
        if not isinstance(listed, list) or len(listed) > FIELDS_MAX:
            self._refuse(path, f"expected a list of at most {FIELDS_MAX} fields")
        for one in listed:
            if not isinstance(one, dict) or not one.get("name") or "type" not in one:
                self._refuse(path, "a field needs a name and a type")
            name = str(one["name"])
            place = f"{path}.{name}" if path else name
            node = self.node(one["type"], namespace, place, depth + 1)
            aliases = tuple(map(str, one.get("aliases") or ()))
            fields.append(Field(name, node, aliases, "default" in one, one.get("default")))
        return Node("record", fields=tuple(fields))

    def _logical(self, given: dict[str, Any], node: Node, path: str) -> Node:
        logical = given.get("logicalType")
        if logical == "decimal" and node.kind in ("bytes", "fixed"):
            precision, scale = given.get("precision"), given.get("scale", 0)
            if not (isinstance(precision, int) and isinstance(scale, int)):
                self._refuse(path, "a decimal needs a precision")
            if not 0 <= scale <= precision <= DECIMAL_DIGITS_MAX or precision < 1:
                self._refuse(path, f"a decimal has at most {DECIMAL_DIGITS_MAX} digits")
            return Node(node.kind, "decimal", precision, scale, node.size)
        if (node.kind, logical) in _LOGICAL:
            return Node(node.kind, str(logical))
        return node

    def _refuse(self, path: str, reason: str) -> NoReturn:
        raise OperatorError(f"{self.source}: {f'field {path}: ' if path else ''}{reason}")


def spark_type(node: Node, *, source: str, path: str = "") -> tuple[T.DataType, bool]:
    """(Spark's type, whether it may be null). OperatorError for what has no column."""
    if node.kind == "union":
        return _union(node, source, path)
    if node.kind == "record":
        if not node.fields:
            raise OperatorError(f"{source}: {path or 'the schema'}: a record without fields")
        fields: list[T.StructField] = []
        names: dict[str, str] = {}
        for one in node.fields:
            place = f"{path}.{one.name}" if path else one.name
            twin = names.setdefault(one.name.lower(), one.name)
            if len(names) == len(fields):
                raise OperatorError(f"{source}: field {place} differs from {twin} only in case")
            kind, nullable = spark_type(one.node, source=source, path=place)
            fields.append(T.StructField(one.name, kind, nullable))
        return T.StructType(fields), False
    if node.items is not None:
        kind, nullable = spark_type(node.items, source=source, path=f"{path}.element")
        if node.kind == "array":
            return T.ArrayType(kind, nullable), False
        return T.MapType(T.StringType(), kind, nullable), False
    if node.kind == "null":
        raise OperatorError(f"{source}: field {path}: null alone has no column")
    return atomic_type(node), False


def atomic_type(node: Node) -> T.DataType:
    """Spark's type of a node without parts."""
    if node.logical == "decimal":
        return T.DecimalType(node.precision, node.scale)
    if node.logical:
        return _LOGICAL[node.kind, node.logical]()
    return _PRIMITIVES[node.kind]()


def _union(node: Node, source: str, path: str) -> tuple[T.DataType, bool]:
    kinds = [
        spark_type(one, source=source, path=path) for one in node.branches if one.kind != "null"
    ]
    if not kinds:
        raise OperatorError(f"{source}: field {path}: null alone has no column")
    found = kinds[0][0]
    for kind, _ in kinds[1:]:
        both = wider(found, kind)
        if both is None or isinstance(both, T.StructType | T.ArrayType | T.MapType):
            names = " and ".join(one.simpleString() for one, _ in kinds)
            raise OperatorError(
                f"{source}: field {path}: a union of {names} has no column: use one type, or null"
            )
        found = both
    return found, len(kinds) < len(node.branches)
