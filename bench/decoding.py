"""What it costs to turn fetched record batches into columns of Arrow.

Why:    Spark's source decodes all that it reads. Decoding should take no more than twice the time
        of copying the bytes (docs/decisions/0056-decoding-batches.md).
How:    `python -m bench.decoding [--seconds 0.3] [--mb 16]`, one core, without a broker: fetched
        data of 100 B and 1 KB records, in batches of 16 KB and of 1 MB, uncompressed and with each
        codec. One JSON line each. `copy_ms`: the data copied to memory that is there already.
        `fresh_copy_ms`: a new copy of it. `key_value_ms` and `all_ms`: decoded to these columns.
        `offset_ms`: to offsets only. `twin_ms`: key and value by NumPy. `records_ms`: by the plain
        decoder, records in a list. Values are half random, half the same. The least of many rounds.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator

import numpy as np

from strandline.records.codec import CODEC_NAMES
from strandline.records.record import Record, build_batch, decode_batches
from strandline.spark.decoding import fill, numpy_fill
from strandline.spark.decoding.columns import TYPES
from strandline.spark.decoding.decode import decode

BATCH_BYTES = (16 << 10, 1 << 20)
RECORD_BYTES = (100, 1_000)
ROUNDS_MIN = 3


def duration_ms(work: Callable[[], object], seconds: float) -> float:
    """The least of many rounds: what it takes when nothing interferes."""
    best, rounds, end = float("inf"), 0, time.perf_counter() + seconds
    while rounds < ROUNDS_MIN or time.perf_counter() < end:
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
        rounds += 1
    return round(best * 1e3, 3)


def batches(record_bytes: int, batch_bytes: int, codec: int, data_bytes: int) -> Iterator[bytes]:
    """About `data_bytes` of records before compression."""
    now = int(time.time() * 1000)
    per_batch = max(1, batch_bytes // (record_bytes + 10))
    half = record_bytes // 2
    for base in range(0, data_bytes // record_bytes, per_batch):
        records = [
            Record(at, now + at, b"%08d" % at, os.urandom(half - 8) + b"v" * (record_bytes - half))
            for at in range(per_batch)
        ]
        yield bytes(build_batch(records, base_offset=base, codec=codec))


def run(data: bytes, *columns: str) -> int:
    """How many rows it decodes."""
    decoded = decode(
        data, columns=columns, topic="orders", partition=0, first_offset=0, end_offset=1 << 60
    )
    return int(decoded.batch.num_rows)


def measure(name: str, data: bytes, seconds: float) -> None:
    """One row."""
    source = np.frombuffer(data, np.uint8)
    target = np.zeros(len(data), np.uint8)
    row: dict[str, object] = {
        "data": name,
        "mb": round(len(data) / 1e6, 1),
        "records": run(data, "offset"),
        "copy_ms": duration_ms(lambda: np.copyto(target, source), seconds),
        "fresh_copy_ms": duration_ms(lambda: bytearray(data), seconds),
        "key_value_ms": duration_ms(lambda: run(data, "key", "value"), seconds),
        "all_ms": duration_ms(lambda: run(data, *TYPES), seconds),
        "offset_ms": duration_ms(lambda: run(data, "offset"), seconds),
    }
    compiled = fill._fill
    fill._fill = numpy_fill.fill
    try:
        row["twin_ms"] = duration_ms(lambda: run(data, "key", "value"), seconds)
    finally:
        fill._fill = compiled
    row["records_ms"] = duration_ms(lambda: list(decode_batches(data)), seconds)
    print(json.dumps(row), flush=True)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--mb", type=int, default=16)
    options = parser.parse_args()
    for codec, codec_name in enumerate(CODEC_NAMES):
        for record_bytes in RECORD_BYTES:
            for batch_bytes in BATCH_BYTES if codec == 0 else BATCH_BYTES[:1]:
                name = f"{record_bytes} B in {batch_bytes >> 10} KB, {codec_name}"
                parts = batches(record_bytes, batch_bytes, codec, options.mb << 20)
                measure(name, b"".join(parts), options.seconds)


if __name__ == "__main__":
    main()
