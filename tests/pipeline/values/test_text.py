"""A text column holds UTF-8 only."""

import pickle

import pyarrow as pa

from strandline.pipeline.values.text import TextDecoder


def test_text_is_kept_and_other_bytes_are_a_problem() -> None:
    decoder = pickle.loads(pickle.dumps(TextDecoder()))
    good = decoder.decode(pa.array([b"a", None, "é".encode(), b""], pa.binary()))
    assert good.values.to_pylist() == ["a", None, "é", ""]
    assert good.problems.null_count == 4
    bad = decoder.decode(pa.array([b"a", b"\xff", b"\xed\xa0\x80", None], pa.binary()).slice(1))
    assert bad.values.to_pylist() == [None, None, None]
    assert bad.problems.to_pylist() == ["not UTF-8", "not UTF-8", None]
    assert bad.values.type == pa.string()
