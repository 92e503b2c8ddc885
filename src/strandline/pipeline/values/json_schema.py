"""The type that a JSON Schema describes.

Why:    producers who check their values by a JSON Schema have written down the columns already.
How:    object with `properties`             STRUCT; names in `required` are NOT NULL
        object with `additionalProperties`   MAP<STRING, ...>, if it has no `properties`
        array with `items`                   ARRAY
        integer, number, boolean             BIGINT, DOUBLE, BOOLEAN
        string                               STRING; DATE or TIMESTAMP by `format` date, date-time;
                                             BINARY by `contentEncoding` base64
        enum, const                          the type of the values that it lists
        ["T", "null"], anyOf or oneOf of T and null, `nullable`    may be null
        $ref within the document             what it points to, unless that contains itself
        Keywords that restrict values (`pattern`, `minimum`, ...) are for the producer's validator:
        here they change nothing. What has no column is refused with its place in the schema.
Source: JSON Schema 2020-12 and draft 7; decisions/0051."""

import json
from pathlib import Path
from typing import Any, NoReturn

from pyspark.sql import types as T  # noqa: N812  (as in all of Spark's documentation)

from strandline.base.errors import OperatorError
from strandline.pipeline.values.ddl import FIELDS_MAX, NESTING_MAX

_FORMATS = {"date": T.DateType, "date-time": T.TimestampType}
_SIMPLE: dict[str, type[T.DataType]] = {
    "integer": T.LongType,
    "number": T.DoubleType,
    "boolean": T.BooleanType,
}


def read_json_schema(path: Path, *, option: str = "--schema") -> T.StructType:
    """The type that a file of JSON Schema describes. OperatorError names file and place."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorError(f"{option} {path}: cannot read: {error}") from error
    return parse_json_schema(text, source=f"{option} {path}")


def parse_json_schema(text: str, *, source: str = "schema") -> T.StructType:
    """The struct that a JSON Schema describes. OperatorError begins with `source`."""
    try:
        root = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise OperatorError(f"{source}: not JSON: {error}") from None
    found, _ = _Reader(root, source).type(root, "#", ())
    if not isinstance(found, T.StructType):
        raise OperatorError(f"{source}: #: expected a schema of objects with `properties`")
    return found


class _Reader:
    """One schema document."""

    def __init__(self, root: Any, source: str) -> None:
        self._root = root
        self._source = source

    def type(self, node: Any, place: str, within: tuple[str, ...]) -> tuple[T.DataType, bool]:
        """(the type at a place, whether it may be null). `within`: references on the way here."""
        if len(place.split("/")) > 4 * NESTING_MAX or len(within) > NESTING_MAX:
            self._refuse(place, "too many levels")
        if not isinstance(node, dict):
            self._refuse(place, "any value is allowed here: name its type")
        if "$ref" in node:
            reference = node["$ref"]
            if reference in within:
                self._refuse(place, f"{reference} contains itself: no column is that deep")
            return self.type(self._find(reference, place), place, (*within, reference))
        for word in ("anyOf", "oneOf"):
            if word in node:
                return self._choice(node[word], f"{place}/{word}", within)
        if "allOf" in node:
            self._refuse(place, "allOf is not supported: write its parts as one schema")
        names, nullable = self._names(node, place)
        if len(names) != 1:
            told = " and ".join(names) or "no type"
            self._refuse(place, f"{told}: a column has exactly one type")
        return self._named(names[0], node, place, within), nullable

    def _names(self, node: dict[str, Any], place: str) -> tuple[list[str], bool]:
        """(the names of its types but null, whether it may be null)"""
        given = node.get("type")
        listed = node["enum"] if "enum" in node else [node["const"]] if "const" in node else None
        if given is None and listed is not None:
            given = list(dict.fromkeys(_name_of(one) for one in listed))
        if given is None and "properties" in node:
            given = "object"
        if given is None and "items" in node:
            given = "array"
        names = given if isinstance(given, list) else [given] if given else []
        if not all(isinstance(name, str) for name in names):
            self._refuse(place, "type: expected a name or a list of names")
        nullable = "null" in names or node.get("nullable") is True
        return [name for name in names if name != "null"], nullable

    def _named(
        self, name: str, node: dict[str, Any], place: str, within: tuple[str, ...]
    ) -> T.DataType:
        if name in _SIMPLE:
            return _SIMPLE[name]()
        if name == "string":
            if node.get("contentEncoding") == "base64":
                return T.BinaryType()
            return _FORMATS.get(str(node.get("format")), T.StringType)()
        if name == "array":
            if "prefixItems" in node or isinstance(node.get("items"), list):
                self._refuse(place, "arrays whose elements differ by place have no column")
            element, nullable = self.type(node.get("items"), f"{place}/items", within)
            return T.ArrayType(element, nullable)
        if name != "object":
            self._refuse(place, f"unknown type {name}")
        return self._object(node, place, within)

    def _object(self, node: dict[str, Any], place: str, within: tuple[str, ...]) -> T.DataType:
        properties = node.get("properties")
        more = node.get("additionalProperties")
        if not properties and isinstance(more, dict):
            value, nullable = self.type(more, f"{place}/additionalProperties", within)
            return T.MapType(T.StringType(), value, nullable)
        if not isinstance(properties, dict) or not properties:
            self._refuse(place, "an object without `properties` has no columns")
        if len(properties) > FIELDS_MAX:
            self._refuse(place, f"more than {FIELDS_MAX} properties")
        required = node.get("required") or []
        fields: list[T.StructField] = []
        names: dict[str, str] = {}
        for name, one in properties.items():
            twin = names.setdefault(name.lower(), name)
            if twin != name:
                self._refuse(place, f"{name} differs from {twin} in case: column names ignore case")
            found, nullable = self.type(one, f"{place}/properties/{name}", within)
            fields.append(T.StructField(name, found, nullable or name not in required))
        return T.StructType(fields)

    def _choice(self, options: Any, place: str, within: tuple[str, ...]) -> tuple[T.DataType, bool]:
        """Of several schemas one may be for null; the others must be one."""
        if not isinstance(options, list):
            self._refuse(place, "expected a list of schemas")
        others = [
            (number, one)
            for number, one in enumerate(options)
            if not (isinstance(one, dict) and one.get("type") == "null")
        ]
        if len(others) != 1:
            self._refuse(place, "a column has exactly one type, and null at most")
        number, one = others[0]
        found, nullable = self.type(one, f"{place}/{number}", within)
        return found, nullable or len(others) < len(options)

    def _find(self, reference: Any, place: str) -> Any:
        if not isinstance(reference, str) or not reference.startswith("#"):
            self._refuse(place, f"$ref {reference}: only references within the file (#/...)")
        node = self._root
        for part in reference[1:].split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(node, dict) or name not in node:
                self._refuse(place, f"$ref {reference} points to nothing")
            node = node[name]
        return node

    def _refuse(self, place: str, reason: str) -> NoReturn:
        raise OperatorError(f"{self._source}: {place}: {reason}")


def _name_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"
