"""What does not round-trip is a problem with its reason; nothing changes in silence."""

import pickle
from typing import Any

import pyarrow as pa
import pytest

from strandline.pipeline.values.decoding import DecodedValues, Mode
from strandline.pipeline.values.json import decoder
from strandline.pipeline.values.json.decoder import json_decoder
from strandline.pipeline.values.problems import kind
from strandline.pipeline.values.text import TextDecoder

TYPE = "id BIGINT, x DECIMAL(18,2), s STRING, d DOUBLE, b BOOLEAN, n INT"
NONE = dict.fromkeys(("id", "x", "s", "d", "b", "n"))
TIMES = "t TIMESTAMP, n TIMESTAMP_NTZ, d DATE"
NESTED = "a ARRAY<STRUCT<x: INT, y: STRING>>, m MAP<STRING, DOUBLE>, s STRUCT<q: STRUCT<r: INT>>"


def decode(rows: list[bytes | None], schema: str = TYPE, mode: Mode = "strict") -> DecodedValues:
    decoded = json_decoder(schema, mode).decode(pa.array(rows, pa.binary()))
    decoded.values.validate(full=True)
    assert len(decoded.values) == len(decoded.problems) == len(rows)
    return decoded


def reason(row: bytes, schema: str = TYPE) -> str | None:
    strict, lenient = decode([row], schema), decode([row], schema, "lenient")
    assert strict.problems == lenient.problems
    assert (strict.problems[0].as_py() is None) == strict.values[0].is_valid
    return strict.problems[0].as_py()


PROBLEMS: dict[bytes, str] = {
    b'{"id":1} garbage': "trailing bytes",
    b'{"id":2}{"id":3}': "trailing bytes",
    b'{"id":1}\x00': "trailing bytes",
    b'{"id":1,"id":2}': "duplicate field id",
    b'{"id":1,"id":1}': "duplicate field id",
    b'{"id":null,"id":1}': "duplicate field id",
    b'{"id":1,"id" :2}': "duplicate field id",
    b'{"id":1,"id"\n:2,"s":null}': "duplicate field id",
    b'{"id":1,"\\u0069d":2}': "duplicate field id",
    b'{"id":1,"c":2}': "unknown field c",
    b'{"ID":1}': "unknown field ID",
    b'{"x":12.3456}': "field x: 12.3456 has more than 2 decimals",
    b'{"x":"12.34"}': "field x: expected decimal, got text",
    b'{"x":"NaN"}': "field x: expected decimal, got text",
    b'{"x":true}': "field x: expected decimal, got a boolean",
    b'{"x":12345678901234567.00}': (
        "field x: 12345678901234567.00 is out of range for decimal(18,2)"
    ),
    b'{"x":1e999999999999999999999}': (
        "field x: 1e999999999999999999999 is out of range for decimal(18,2)"
    ),
    b'{"x":0.' + b"0" * 90 + b"1}": "field x: 0." + "0" * 38 + "… has more than 2 decimals",
    b'{"s":5}': "field s: expected string, got a number",
    b'{"s":true}': "field s: expected string, got a boolean",
    b'{"s":{"a":1}}': "field s: expected string, got an object",
    b'{"s":"\xff"}': "not UTF-8",
    b'{"s":"\xed\xa0\x80"}': "not UTF-8",
    b'{"s":"\\ud800"}': "field s: lone surrogate",
    b'{"s":"\\ude00\\ud83d"}': "field s: lone surrogate",
    b'{"s":"a\nb"}': "not JSON",
    b'{"id":1e3}': "field id: 1e3 is not written as an integer",
    b'{"id":3.0}': "field id: 3.0 is not written as an integer",
    b'{"id":1e400}': "field id: 1e400 is out of range for bigint",
    b'{"id":true}': "field id: expected bigint, got a boolean",
    b'{"id":9223372036854775808}': "field id: 9223372036854775808 is out of range for bigint",
    b'{"id":' + b"9" * 5000 + b"}": f"field id: {'9' * 40}… is out of range for bigint",
    b'{"n":-2147483649}': "field n: -2147483649 is out of range for int",
    b'{"d":NaN}': "field d: expected double, got NaN",
    b'{"d":-Infinity}': "field d: expected double, got -Infinity",
    b'{"d":"NaN"}': "field d: expected double, got text",
    b'{"d":1e400}': "field d: 1e400 is out of range for double",
    b'{"d":9007199254740993}': "field d: 9007199254740993 is not exact as double",
    b'{"d":0.12345678901234567890}': "field d: 0.12345678901234567890 is not exact as double",
    b'{"d":1e-400}': "field d: 1e-400 is not exact as double",
    b'{"d":1.2345678e-320}': "field d: 1.2345678e-320 is not exact as double",
    b'{"b":1}': "field b: expected boolean, got a number",
    b'{"b":"true"}': "field b: expected boolean, got text",
    b'{"id":01}': "not JSON",
    b'{"id":+1}': "not JSON",
    b"{'id':1}": "not JSON",
    b'{"id":1,}': "not JSON",
    b'\xef\xbb\xbf{"id":1}': "not JSON",
    b"not json": "not JSON",
    b'{"id":1': "not JSON",
    b"": "empty value",
    b" \n": "empty value",
    b"null": "expected an object, got null",
    b"[1]": "expected an object, got an array",
    b"7": "expected an object, got a number",
    b'{"u":' + b"[" * 100_000: "nested too deeply",
    b'{"s":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001: "nested too deeply",
}
FITS: dict[bytes, dict[str, Any]] = {
    b"{}": {},
    b'{"id":null}': {},
    b'{"unknown":null}': {},
    b' {"id" : 1 ,\r\n"s"\t:"x"} ': {"id": 1, "s": "x"},
    b'{"s":"a\\":\\" : \\u00e9\\ud83d\\ude00"}': {"s": 'a":" : é😀'},
    b'{"id":-9223372036854775808,"n":-0}': {"id": -(2**63), "n": 0},
    b'{"id":9007199254740993}': {"id": 2**53 + 1},
    b'{"d":0.1}': {"d": 0.1},
    b'{"d":0.30000000000000004}': {"d": 0.30000000000000004},
    b'{"d":0.10000000000000001}': {"d": 0.1},
    b'{"d":1152921504606846976}': {"d": 2.0**60},
    b'{"d":5e-324}': {"d": 5e-324},
    b'{"d":5.960464477539063e-08}': {"d": 2.0**-24},
    b'{"d":1.0000000000000000000}': {"d": 1.0},
    b'{"d":0e999}': {"d": 0.0},
}


@pytest.mark.parametrize("row", PROBLEMS, ids=lambda row: repr(row[:30]))
def test_a_value_that_would_change_is_a_problem(row: bytes) -> None:
    assert reason(row) == PROBLEMS[row]


@pytest.mark.parametrize("row", FITS, ids=lambda row: repr(row[:30]))
def test_a_value_that_fits_is_exact(row: bytes) -> None:
    decoded = decode([row])
    assert decoded.problems.to_pylist() == [None]
    assert decoded.values.to_pylist() == [NONE | FITS[row]]


def test_decimals_are_the_same_numbers() -> None:
    texts = [b"12.30", b"12.3", b"1e2", b"-0.01", b"0", b"1234567890123456.78", b"1.230000", b"7"]
    decoded = decode([b'{"x":%s}' % text for text in texts])
    assert decoded.problems.null_count == len(texts)
    found = [str(row["x"]) for row in decoded.values.to_pylist()]
    assert found == [
        *("12.30", "12.30", "100.00", "-0.01", "0.00"),
        *("1234567890123456.78", "1.23", "7.00"),
    ]


LENIENT: dict[bytes, dict[str, Any] | None] = {
    b'{"id":1} garbage': {"id": 1},
    b'{"id":1,"id":2,"c":5}': {"id": 2},
    b'{"s":12.50}': {"s": "12.50"},
    b'{"s":true}': {"s": "true"},
    b'{"id":3.0,"n":1e3}': {"id": 3, "n": 1000},
    b'{"id":3.5,"s":"x"}': {"s": "x"},
    b'{"id":"17"}': {"id": 17},
    b'{"id":9223372036854775808}': {},
    b'{"d":9007199254740993}': {"d": 2.0**53},
    b'{"b":1}': {},
    b'{"s":"\\ud800","id":4}': {"id": 4},
    b"[1]": None,
    b"{": None,
}


@pytest.mark.parametrize("row", LENIENT, ids=repr)
def test_lenient_keeps_what_fits_and_the_reason(row: bytes) -> None:
    decoded = decode([row], mode="lenient")
    expected = LENIENT[row]
    assert decoded.values.to_pylist() == [None if expected is None else NONE | expected]
    assert decoded.problems[0].is_valid


def test_lenient_rounds_decimals_half_up_and_says_so() -> None:
    decoded = decode([b'{"x":12.345}', b'{"x":0.004}', b'{"x":1e-999}'], mode="lenient")
    assert [str(row["x"]) for row in decoded.values.to_pylist()] == ["12.35", "0.00", "0.00"]
    assert decoded.problems[0].as_py() == "field x: 12.345 has more than 2 decimals"


TIME_PROBLEMS: dict[bytes, str] = {
    b'{"t":"2013-01-01T05:00:00"}': "field t: 2013-01-01T05:00:00 has no time zone",
    b'{"n":"2013-01-01T05:00:00Z"}': "field n: 2013-01-01T05:00:00Z has a time zone",
    b'{"t":"2013-01-01T05:00:00.1234567Z"}': (
        "field t: 2013-01-01T05:00:00.1234567Z has more than 6 decimals of a second"
    ),
    b'{"t":"2013-01-01T05:00:00 Europe/Berlin"}': (
        "field t: 2013-01-01T05:00:00 Europe/Berlin is not a timestamp"
    ),
    b'{"t":"2013-01-01T05:00:00+99:00"}': ("field t: 2013-01-01T05:00:00+99:00 is not a timestamp"),
    b'{"t":"2013-01-01T23:59:60Z"}': "field t: 2013-01-01T23:59:60Z is not a timestamp",
    b'{"t":"2013-01-01T24:00:00Z"}': "field t: 2013-01-01T24:00:00Z is not a timestamp",
    b'{"t":"2013-02-29T05:00:00Z"}': "field t: 2013-02-29T05:00:00Z is not a timestamp",
    b'{"t":"0001-01-01T00:00:00+01:00"}': (
        "field t: 0001-01-01T00:00:00+01:00 is out of range for timestamp"
    ),
    b'{"t":"9999-12-31T23:30:00-01:00"}': (
        "field t: 9999-12-31T23:30:00-01:00 is out of range for timestamp"
    ),
    b'{"t":1356998400000}': "field t: expected timestamp, got a number",
    b'{"d":"2013-1-1"}': "field d: 2013-1-1 is not a date",
    b'{"d":"2013-02-30"}': "field d: 2013-02-30 is not a date",
    b'{"d":"0000-01-01"}': "field d: 0000-01-01 is not a date",
    b'{"d":"2013-01-01T00:00:00Z"}': "field d: 2013-01-01T00:00:00Z is not a date",
}


@pytest.mark.parametrize("row", TIME_PROBLEMS, ids=repr)
def test_dates_and_timestamps_that_would_change_are_problems(row: bytes) -> None:
    assert reason(row, TIMES) == TIME_PROBLEMS[row]


def test_timestamps_are_instants_in_microseconds() -> None:
    texts = (
        "2013-01-01T05:00:00Z",
        "2013-01-01 07:00:00.000000+02:00",
        "2013-01-01T05:00Z",
        "2013-01-01T05:00:00.000000000Z",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999999Z",
    )
    decoded = decode([b'{"t":"%s"}' % text.encode() for text in texts], TIMES)
    assert decoded.problems.null_count == len(texts)
    instants = decoded.values.field("t").cast(pa.int64()).to_pylist()
    assert instants == [1357016400000000] * 4 + [-62135596800000000, 253402300799999999]


def test_base64_has_one_spelling() -> None:
    schema = "b BINARY"
    assert decode([b'{"b":"aGk="}'], schema).values.to_pylist() == [{"b": b"hi"}]
    for text in (b"aGk", b"aGl=", b"aG k=", b"a-_=", "aé==".encode()):
        assert kind(str(reason(b'{"b":"%s"}' % text, schema))) == "not base64"


NESTED_PROBLEMS: dict[bytes, str] = {
    b'{"a":[{"x":1,"x":2}]}': "duplicate field a.element.x",
    b'{"a":[{"x":1},{"z":1}]}': "unknown field a.element.z",
    b'{"a":[1]}': "field a.element: expected an object, got a number",
    b'{"a":{"x":1}}': "field a: expected array, got an object",
    b'{"m":{"k":1,"k":2}}': "field m: duplicate key k",
    b'{"m":{"k":"1"}}': "field m.value: expected double, got text",
    b'{"m":{"\\ud800":1}}': "field m.key: lone surrogate",
    b'{"m":[1]}': "field m: expected map, got an array",
    b'{"s":{"q":{"r":1}},"s":null}': "duplicate field s",
    b'{"s":{"q":{"r":1,"r":1}}}': "duplicate field s.q.r",
    b'{"s":{"q":[]}}': "field s.q: expected an object, got an array",
}


@pytest.mark.parametrize("row", NESTED_PROBLEMS, ids=repr)
def test_problems_within_values_name_their_place(row: bytes) -> None:
    assert reason(row, NESTED) == NESTED_PROBLEMS[row]


def test_nested_values_fit() -> None:
    rows: list[bytes | None] = [
        b'{"a":[{"x":1},null,{"x":2,"y":"z"}],"m":{"k":1.5,"j":null},"s":{"q":{"r":7}}}',
        b'{"a":[],"m":{},"s":{}}',
        None,
        b'{"a":null,"s":{"q":null}}',
    ]
    decoded = decode(rows, NESTED)
    assert decoded.problems.null_count == len(rows)
    assert decoded.values.to_pylist() == [
        {
            "a": [{"x": 1, "y": None}, None, {"x": 2, "y": "z"}],
            "m": [("k", 1.5), ("j", None)],
            "s": {"q": {"r": 7}},
        },
        {"a": [], "m": [], "s": {"q": None}},
        None,
        {"a": None, "m": None, "s": {"q": None}},
    ]


def test_required_fields_must_be_there_and_not_null() -> None:
    schema = "a INT NOT NULL, s STRUCT<b: INT NOT NULL>"
    assert reason(b"{}", schema) == "missing field a"
    assert reason(b'{"a":null}', schema) == "field a: is null"
    assert reason(b'{"a":1,"s":{}}', schema) == "missing field s.b"
    lenient = decode([b'{"a":1,"s":{}}', b'{"a":"x"}'], schema, "lenient")
    assert lenient.values.to_pylist() == [{"a": 1, "s": None}, None]


def test_a_bad_record_among_many_is_the_only_one_that_is_lost() -> None:
    rows = [b'{"id":%d,"d":%d.5,"x":1.%02d}' % (n, n, n % 100) for n in range(10_000)]
    bad = {7: b'{"id":7,"id":7}', 4095: b"{", 4096: b'{"x":1.234}', 9999: b'{"d":1e-999}'}
    for row, data in bad.items():
        rows[row] = data
    rows[5000] = None  # type: ignore[call-overload]
    decoded = decode(list(rows))
    found = decoded.problems.to_pylist()
    assert {row for row, problem in enumerate(found) if problem} == set(bad)
    ids = [row and row["id"] for row in decoded.values.to_pylist()]
    assert ids == [None if n in bad or n == 5000 else n for n in range(10_000)]


def test_a_slice_of_a_column_is_decoded_as_such() -> None:
    column = pa.array([b'{"id":%d}' % n for n in range(10)], pa.binary())
    for values in (column.slice(3, 4), column.slice(3, 4).cast(pa.large_binary())):
        decoded = json_decoder("id INT").decode(values)
        assert decoded.values.field("id").to_pylist() == [3, 4, 5, 6]
    assert len(json_decoder("id INT").decode(column.slice(0, 0)).values) == 0


def test_a_decoder_travels_to_executors() -> None:
    decoder = pickle.loads(pickle.dumps(json_decoder(NESTED, "lenient")))
    assert decoder.type == json_decoder(NESTED).type
    decoded = decoder.decode(pa.array([b'{"a":[]} x'], pa.binary()))
    assert decoded.problems.to_pylist() == ["trailing bytes"]


def test_kinds_have_neither_fields_nor_values() -> None:
    kinds = {kind(reason) for reason in (*PROBLEMS.values(), *TIME_PROBLEMS.values())}
    assert kinds == {
        *("trailing bytes", "duplicate field", "unknown field", "more decimals than fit"),
        *("wrong type", "out of range", "not UTF-8", "lone surrogate", "not JSON", "not exact"),
        *("not an integer", "empty value", "nested too deeply", "timestamp without a time zone"),
        *("timestamp with a time zone", "more decimals of a second than fit"),
        *("not a timestamp", "not a date"),
    }


def test_a_null_stays_null_though_bytes_lie_below_it() -> None:
    whole = pa.array([b'{"id":1}', b'{"id":2}', b"\xff"], pa.binary())
    _, offsets, data = whole.buffers()
    validity = pa.array([True, False, False]).buffers()[1]
    column = pa.BinaryArray.from_buffers(pa.binary(), 3, [validity, offsets, data])
    for one in (json_decoder("id INT"), TextDecoder()):
        decoded = one.decode(column)
        assert decoded.values.is_valid().to_pylist() == [True, False, False]
        assert decoded.problems.null_count == 3


def test_a_long_id_beside_a_double_does_not_hide_lost_digits() -> None:
    rows = [
        b'{"id":9007199254740993,"score":0.5}',
        b'{"id":9007199254740993,"score":9007199254740993}',
        b'{"id":1,"score":9007199254740993}',
        b'{"id":-9007199254740993,"many":[9007199254740993,2],"score":9007199254740993}',
        b'{"id":-9007199254740993,"many":[9007199254740993,2],"score":1.5}',
    ]
    schema = "id BIGINT, many ARRAY<BIGINT>, score DOUBLE"
    problems = json_decoder(schema).decode(pa.array(rows)).problems.to_pylist()
    assert [problem is None for problem in problems] == [True, False, False, False, True]


def test_a_long_id_beside_a_double_stays_on_the_fast_way(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []

    def exact_way(row: bytes, *_: object) -> tuple[None, None]:
        read.append(row)
        return None, None

    monkeypatch.setattr(decoder, "fit", exact_way)
    rows = [b'{"id":%d,"score":%d.5}' % (sign * 10**17, n) for n, sign in enumerate([1, -1] * 9)]
    json_decoder("id BIGINT, score DOUBLE").decode(pa.array(rows))
    assert read == []
