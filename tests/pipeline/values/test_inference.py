"""Types inferred from samples hold every sample, by rules that do not depend on the order."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.base.errors import OperatorError
from strandline.pipeline.values.evolution import merge
from strandline.pipeline.values.inference import infer
from strandline.pipeline.values.json.decoder import json_decoder

INFERRED = {
    (b'{"a":1}', b'{"a":null,"b":true}'): "struct<a:bigint,b:boolean>",
    (b'{"b":"x","a":1.5}',): "struct<b:string,a:double>",
    (b'{"a":1}', b'{"a":0.1}'): "struct<a:double>",
    (b'{"a":9007199254740993}', b'{"a":0.5}'): "struct<a:decimal(38,1)>",
    (b'{"a":9223372036854775808}',): "struct<a:double>",
    (b'{"a":9223372036854775809}',): "struct<a:decimal(38,0)>",
    (b'{"a":0.12345678901234567890}',): "struct<a:decimal(38,19)>",
    (b'{"a":[1,2,null]}', b'{"a":[]}'): "struct<a:array<bigint>>",
    (b'{"a":[{"x":1},{"y":"z"}]}',): "struct<a:array<struct<x:bigint,y:string>>>",
    (b'{"a":{"b":{"c":1}}}', b'{"a":{"d":2}}'): "struct<a:struct<b:struct<c:bigint>,d:bigint>>",
    (b'{"a":"2013-01-01"}',): "struct<a:string>",
}
REFUSED = {
    (b'{"a":1}', b'{"a":"x"}'): 'field a has values of two kinds: 1 and "x": give --schema',
    (b'{"a":{"b":1}}', b'{"a":[1]}'): (
        "field a has values of two kinds: an object and an array: give --schema"
    ),
    (b'{"a":1,"A":1}',): (
        "fields a and A differ only in case, and column names ignore case: give --schema"
    ),
    (b"[1]", b"x", None): (
        "no schema can be inferred: 0 of 2 samples are JSON objects, and they have no values: "
        "give --schema"
    ),
    (b'{"a":1e-39,"b":1}', b'{"a":12345678901234567890123456789012345678}'): (
        "field a: its numbers have more digits than DOUBLE and DECIMAL: give --schema"
    ),
}


@pytest.mark.parametrize("samples", INFERRED, ids=repr)
def test_the_type_follows_from_the_samples(samples: tuple[bytes, ...]) -> None:
    assert infer(samples).type.simpleString() == INFERRED[samples]


@pytest.mark.parametrize("samples", REFUSED, ids=repr)
def test_samples_without_one_type_are_refused(samples: tuple[bytes, ...]) -> None:
    with pytest.raises(OperatorError) as refusal:
        infer(samples)
    assert str(refusal.value) == REFUSED[samples]


def test_fields_without_a_known_type_are_told() -> None:
    inferred = infer([b'{"a":null,"b":[],"c":{},"d":{"e":null},"f":1}', None, b"{", b"{}"])
    assert inferred.undecided == ("a", "b", "c", "d.e", "d")
    assert (inferred.type.simpleString(), inferred.samples, inferred.skipped) == (
        "struct<f:bigint>",
        2,
        1,
    )


SCALARS = st.one_of(
    st.none(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.dictionaries(
    st.sampled_from("abc"), st.one_of(SCALARS, st.lists(SCALARS, max_size=2)), max_size=3
)


@settings(max_examples=100, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=4))
def test_every_sample_fits_the_inferred_type_in_any_order(values: list[dict[str, Any]]) -> None:
    rows = [json.dumps(value).encode() for value in values]
    try:
        inferred = infer(rows)
    except OperatorError:
        return
    backwards = infer(reversed(rows)).type
    assert {f.name: f.dataType for f in backwards} == {f.name: f.dataType for f in inferred.type}
    decoded = json_decoder(inferred.type).decode(pa.array(rows, pa.binary()))
    undecided = set(inferred.undecided)
    for value, problem in zip(values, decoded.problems.to_pylist(), strict=True):
        if not undecided & {name for name, one in value.items() if one is not None}:
            assert problem is None
    assert merge(inferred.type, inferred.type).changes == ()
