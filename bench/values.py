"""Bytes of values to Arrow columns, strictly: records per CPU second of one core.

Why:    a table with a schema must not be slower than one without (decision 0051).
How:    `python -m bench.values [--records 200000]`, without a broker and without Spark: records of
        100 B with four fields, and what makes some of them slower. One JSON line each; the least
        CPU time of five rounds.
"""

import argparse
import io
import json
import time
from collections.abc import Callable

import fastavro
import pyarrow as pa

from strandline.pipeline.values.avro.decoder import avro_decoder
from strandline.pipeline.values.decoding import Decoder
from strandline.pipeline.values.json.decoder import json_decoder

ROUNDS = 5
TEXT = "x" * 40
FOUR = "id BIGINT, n INT, name STRING, score DOUBLE"
"""The type of most rows: 100 B with four fields."""


def four(at: int) -> str:
    """A record of about 100 B."""
    return f'{{"id":{at * 1_000_003},"n":{at % 1000},"name":"{TEXT}{at:09}","score":{at / 8:.3f}}}'


def times(at: int) -> str:
    """The same with a timestamp and a decimal."""
    moment = f"2013-01-{at % 28 + 1:02}T05:{at % 60:02}:00Z"
    return f'{{"id":{at},"price":{at % 10000}.{at % 100:02},"name":"{TEXT}","at":"{moment}"}}'


def nulls(at: int) -> str:
    """The same with a null in each record: duplicates must be looked for."""
    return f'{{"id":{at * 1_000_003},"n":null,"name":"{TEXT}{at:09}","score":{at / 8:.3f}}}'


def one_in(share: int, bad: str) -> Callable[[int], str]:
    """Records of `four`, one of `share` of them bad."""
    return lambda at: bad if at % share == share - 1 else four(at)


def nested(at: int) -> str:
    """An object and an array in each record."""
    return f'{{"id":{at},"to":{{"city":"{TEXT}","zip":{at % 99999}}},"tags":["a","b{at % 10}"]}}'


ROWS: dict[str, tuple[str, Callable[[int], str]]] = {
    "four fields": (FOUR, four),
    "a null in each": (FOUR, nulls),
    "timestamp and decimal": ("id BIGINT, price DECIMAL(18,2), name STRING, at TIMESTAMP", times),
    "nested": ("id BIGINT, to STRUCT<city: STRING, zip: INT>, tags ARRAY<STRING>", nested),
    "1 % not JSON": (FOUR, one_in(100, '{"id":1')),
    "1 % duplicates": (FOUR, one_in(100, '{"id":1,"id":2}')),
    "all unknown fields": (FOUR, lambda at: f'{{"other":{at},"text":"{TEXT}{TEXT}"}}'),
}


AVRO = """{"type": "record", "name": "R", "fields": [
    {"name": "id", "type": "long"}, {"name": "n", "type": ["null", "int"]},
    {"name": "name", "type": "string"}, {"name": "score", "type": "double"}]}"""


def avro(at: int) -> bytes:
    """The record of `four`, as Avro, with a longer text."""
    out = io.BytesIO()
    value = {"id": at * 1_000_003, "n": at % 1000, "name": TEXT + TEXT[:30], "score": at / 8}
    fastavro.schemaless_writer(out, _AVRO, value)
    return out.getvalue()


_AVRO = fastavro.parse_schema(json.loads(AVRO))


def measure(name: str, decoder: Decoder, column: pa.BinaryArray) -> None:
    """One row of results."""
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        decoded = decoder.decode(column)
        best = min(best, time.process_time() - began)
    problems = len(column) - decoded.problems.null_count
    print(
        json.dumps(
            {
                "values": name,
                "record_bytes": round(column.nbytes / len(column)) - 4,
                "problems": problems,
                "records_per_cpu_s": round(len(column) / best),
            }
        ),
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--records", type=int, default=200_000)
    count = parser.parse_args().records
    for name, (schema, row) in ROWS.items():
        column = pa.array([row(at).encode() for at in range(count)], pa.binary())
        measure(name, json_decoder(schema), column)
    measure("avro", avro_decoder(AVRO), pa.array([avro(at) for at in range(count)], pa.binary()))


if __name__ == "__main__":
    main()
