"""Reads a schema that is written as Spark DDL, without a Java virtual machine.

Why:    a misspelt type must fail in one line that names the file and its line, before Spark starts.
How:    tokens with their lines -> one function for each rule of the grammar. It takes what Spark
        takes, except types that no value of a record can have (VOID, intervals) or that lake
        tables cannot hold (VARIANT, TIME, collations): these are refused by name.
Source: Spark's SqlBaseParser.g4, `colTypeList` and `dataType`."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from pyspark.sql import types as T  # noqa: N812  (as in all of Spark's documentation)

from strandline.base.errors import OperatorError

FIELDS_MAX = 2_000
"""Most fields of one struct."""
NESTING_MAX = 50
"""Most levels of types in types."""
DECIMAL_DIGITS_MAX = 38

_ATOMIC: dict[str, Callable[[], T.DataType]] = {
    "BOOLEAN": T.BooleanType,
    "TINYINT": T.ByteType,
    "BYTE": T.ByteType,
    "SMALLINT": T.ShortType,
    "SHORT": T.ShortType,
    "INT": T.IntegerType,
    "INTEGER": T.IntegerType,
    "BIGINT": T.LongType,
    "LONG": T.LongType,
    "FLOAT": T.FloatType,
    "REAL": T.FloatType,
    "DOUBLE": T.DoubleType,
    "DATE": T.DateType,
    "TIMESTAMP": T.TimestampType,
    "TIMESTAMP_LTZ": T.TimestampType,
    "TIMESTAMP_NTZ": T.TimestampNTZType,
    "STRING": T.StringType,
    "BINARY": T.BinaryType,
}
_DECIMALS = ("DECIMAL", "DEC", "NUMERIC")
_NESTED = ("ARRAY", "MAP", "STRUCT")
_REFUSED = {
    "VARIANT": "lake tables have no column for it: name the fields, or keep the text in STRING",
    "VOID": "no value has this type",
    "INTERVAL": "records have no such value: use BIGINT",
    "TIME": "lake tables have no column for it: use STRING",
    "CHAR": "use STRING",
    "CHARACTER": "use STRING",
    "VARCHAR": "use STRING",
    "GEOMETRY": "lake tables have no column for it: use BINARY",
    "GEOGRAPHY": "lake tables have no column for it: use BINARY",
}
_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
      | (?P<quoted>`(?:[^`]|``)+`)
      | (?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
      | (?P<word>[A-Za-z0-9_]+)
      | (?P<sign>[<>(),:;])""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    line: int

    @property
    def upper(self) -> str:
        return self.text.upper() if self.kind in ("word", "sign") else ""

    @property
    def shown(self) -> str:
        return "the end" if self.kind == "end" else self.text


def read_ddl(path: Path, *, option: str = "--schema") -> T.StructType:
    """The type that a file of DDL describes. OperatorError names the file and the line."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorError(f"{option} {path}: cannot read: {error}") from error
    return parse_ddl(text, source=f"{option} {path}")


def parse_ddl(text: str, *, source: str = "schema") -> T.StructType:
    """The struct that `name TYPE [NOT NULL], ...` describes. OperatorError begins with `source`."""
    return _Parser(text, source).schema()


class _Parser:
    """One pass over the tokens of one text."""

    def __init__(self, text: str, source: str) -> None:
        self._source = source
        self._tokens = list(_tokens(text, source))
        self._at = 0
        self._depth = 0

    def schema(self) -> T.StructType:
        if self._next.kind == "end":
            raise OperatorError(f"{self._source}: empty: expected `name TYPE, name TYPE, ...`")
        fields = self._fields(colon=False)
        while self._next.upper == ";":
            self._take()
        if self._next.kind != "end":
            self._fail(f"expected a comma or the end, not {self._next.shown}")
        return fields

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self._next
        self._at += token.kind != "end"
        return token

    def _fail(self, reason: str, token: _Token | None = None) -> None:
        line = (token or self._next).line
        raise OperatorError(f"{self._source}, line {line}: {reason}")

    def _expect(self, sign: str) -> None:
        if self._next.upper != sign:
            self._fail(f"expected {sign}, not {self._next.shown}")
        self._take()

    def _fields(self, *, colon: bool) -> T.StructType:
        """Fields up to the token that is neither a field nor a comma; one comma may come last."""
        fields: list[T.StructField] = []
        names: dict[str, str] = {}
        while self._next.kind in ("word", "quoted"):
            token = self._next
            field = self._field(colon=colon)
            twin = names.setdefault(field.name.lower(), field.name)
            if len(names) == len(fields):
                same = "is there twice" if twin == field.name else f"differs from {twin} in case"
                self._fail(f"field {field.name} {same}: column names ignore case", token)
            fields.append(field)
            if len(fields) > FIELDS_MAX:
                self._fail(f"more than {FIELDS_MAX} fields", token)
            if self._next.upper != ",":
                break
            self._take()
        if not fields:
            self._fail(f"expected the name of a field, not {self._next.shown}")
        return T.StructType(fields)

    def _field(self, *, colon: bool) -> T.StructField:
        token = self._take()
        name = token.text
        if token.kind == "quoted":
            name = name[1:-1].replace("``", "`")
        elif name.isdigit():
            self._fail(
                f"{name} is a number: write `{name}` in backquotes to use it as a name", token
            )
        if self._next.upper == ":":
            self._take()
        elif colon:
            self._fail(f"field {name}: expected : and a type, not {self._next.shown}")
        data_type = self._type(name)
        nullable = True
        comment = None
        while self._next.upper in ("NOT", "COMMENT"):
            if self._take().upper == "NOT":
                if self._next.upper != "NULL":
                    self._fail(f"field {name}: expected NULL after NOT, not {self._next.shown}")
                self._take()
                nullable = False
            else:
                if self._next.kind != "text":
                    self._fail(f"field {name}: expected a quoted text after COMMENT")
                comment = self._take().text[1:-1]
        return T.StructField(name, data_type, nullable, {"comment": comment} if comment else None)

    def _type(self, name: str) -> T.DataType:
        token = self._take()
        word = token.upper
        self._depth += 1
        if self._depth > NESTING_MAX:
            self._fail(f"field {name}: more than {NESTING_MAX} levels of types", token)
        if word in _DECIMALS:
            found: T.DataType = self._decimal(name)
        elif word in _NESTED:
            found = self._nested(word, name)
        elif word in _ATOMIC:
            found = _ATOMIC[word]()
            if word == "STRING" and self._next.upper == "COLLATE":
                self._fail(f"field {name}: collations are not supported: leave COLLATE out")
            if word == "TIMESTAMP" and self._next.upper in ("WITH", "WITHOUT"):
                self._fail(f"field {name}: write TIMESTAMP_LTZ or TIMESTAMP_NTZ")
        else:
            self._refuse(word, name, token)
            raise AssertionError
        self._depth -= 1
        return found

    def _refuse(self, word: str, name: str, token: _Token) -> None:
        if word in _REFUSED:
            self._fail(f"field {name}: {word} is not supported: {_REFUSED[word]}", token)
        if token.kind != "word":
            self._fail(f"field {name}: expected a type, not {token.shown}", token)
        near = get_close_matches(word, (*_ATOMIC, *_DECIMALS, *_NESTED), n=1)
        hint = f": did you mean {near[0]}?" if near else ""
        self._fail(f"field {name}: unknown type {token.text}{hint}", token)

    def _decimal(self, name: str) -> T.DecimalType:
        precision, scale = 10, 0
        if self._next.upper == "(":
            self._take()
            precision = self._count(name)
            if self._next.upper == ",":
                self._take()
                scale = self._count(name)
            self._expect(")")
        if not 1 <= precision <= DECIMAL_DIGITS_MAX or scale > precision:
            self._fail(
                f"field {name}: DECIMAL({precision},{scale}): at most {DECIMAL_DIGITS_MAX} digits, "
                "no more of them after the point than there are"
            )
        return T.DecimalType(precision, scale)

    def _count(self, name: str) -> int:
        token = self._take()
        if not token.text.isdigit():
            self._fail(f"field {name}: expected a number, not {token.shown}", token)
        return int(token.text[:9])

    def _nested(self, word: str, name: str) -> T.DataType:
        self._expect("<")
        if word == "STRUCT":
            found: T.DataType = self._fields(colon=True)
        elif word == "ARRAY":
            found = T.ArrayType(self._type(name), True)
        else:
            key = self._type(name)
            if isinstance(key, T.MapType):
                self._fail(f"field {name}: the key of a map cannot be a map")
            self._expect(",")
            found = T.MapType(key, self._type(name), True)
        self._expect(">")
        return found


def _tokens(text: str, source: str) -> Iterator[_Token]:
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            hint = ": put the name in `backquotes`" if text[at] not in "`'\"" else " does not end"
            raise OperatorError(f"{source}, line {line}: unexpected {text[at]!r}{hint}")
        kind = match.lastgroup or ""
        if kind != "space":
            yield _Token(kind, match.group(), line)
        line += match.group().count("\n")
        at = match.end()
    yield _Token("end", "", line)
