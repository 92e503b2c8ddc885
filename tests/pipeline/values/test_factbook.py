"""Real nested JSON: 256 country profiles with some 1,400 fields become columns without a loss."""

import json
from typing import Any

import pyarrow as pa
from demo.factbook import load_profiles

from strandline.pipeline.values.evolution import merge, paths
from strandline.pipeline.values.inference import infer
from strandline.pipeline.values.json.decoder import json_decoder


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(one) for name, one in value.items() if one is not None}
    return [without_nulls(one) for one in value] if isinstance(value, list) else value


def test_every_profile_is_a_row_or_has_a_reason() -> None:
    rows = list(load_profiles().values())
    inferred = infer(rows)
    assert (len(rows), inferred.samples, inferred.skipped) == (256, 256, 0)
    assert len(list(paths(inferred.type))) > 1_000
    decoded = json_decoder(inferred.type).decode(pa.array(rows, pa.binary()))
    for row, value, problem in zip(
        rows, decoded.values.to_pylist(), decoded.problems.to_pylist(), strict=True
    ):
        if problem is None:
            assert without_nulls(value) == without_nulls(json.loads(row))
        else:
            # One profile has an object without a member where all others have nothing.
            assert problem.removeprefix("unknown field ") in inferred.undecided
    assert len(rows) - decoded.problems.null_count == len(inferred.undecided) == 1


def test_the_type_grows_from_one_part_of_the_profiles_to_all() -> None:
    rows = list(load_profiles().values())
    grown = infer(rows[:40]).type
    for start in range(40, len(rows), 72):
        evolution = merge(grown, infer(rows[start : start + 72]).type)
        assert {change.kind for change in evolution.changes} == {"add"}
        grown = evolution.type
    whole = {path: kind for path, kind in paths(infer(rows).type) if not hasattr(kind, "fields")}
    parts = {path: kind for path, kind in paths(grown) if not hasattr(kind, "fields")}
    assert parts == whole
