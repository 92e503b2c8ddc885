"""What it costs to look into a producer's batch, beside all else that is checked of it.

Why:    the broker reads each record before it stores a batch (decision 0044). The figures say what
        that costs, and how long one batch can hold up the event loop.
How:    `python -m bench.validation [--seconds 0.3]`, without a broker: batches of 16 KB of 100 B
        and of 1 KB records, uncompressed and with each codec, then the largest that the loop
        validates by itself. One JSON line each, in us: the header and the checksum, the records by
        the compiled walk, and by the one in Python. Values are half random, half the same.
"""

import argparse
import json
import os
import time
from collections.abc import Callable

from strandline.broker.server.batch_validation import SCRATCH_BYTES
from strandline.records import contents
from strandline.records.batch import read_header
from strandline.records.codec import CODEC_NAMES
from strandline.records.contents import IS_COMPILED, walk_in_python
from strandline.records.record import Record, build_batch
from strandline.records.validate import validate_produced
from strandline.records.validate_contents import ContentRules, validate_contents

BATCH_BYTES = 16 << 10
RULES = ContentRules(timestamp_min=0)


def duration_us(work: Callable[[], object], seconds: float) -> float:
    """The least of many rounds: what it takes when nothing interferes."""
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        for _ in range(10):
            work()
        best = min(best, (time.perf_counter() - began) / 10)
    return round(best * 1e6, 1)


def make_batch(record_bytes: int, codec: int, batch_bytes: int = BATCH_BYTES) -> bytearray:
    """About `batch_bytes` of records before compression."""
    now = int(time.time() * 1000)
    count = max(1, batch_bytes // (record_bytes + 10))
    half = record_bytes // 2
    records = [
        Record(at, now + at, b"", os.urandom(half) + b"v" * (record_bytes - half))
        for at in range(count)
    ]
    return build_batch(records, codec=codec)


def measure(name: str, batch: bytearray, seconds: float) -> None:
    """One row: a batch."""
    header = read_header(batch)
    assert header is not None
    view = memoryview(batch)
    scratch = bytearray(SCRATCH_BYTES)
    compiled = contents._walk

    def look_inside() -> int:
        return validate_contents(view, header, RULES, scratch=scratch)

    row: dict[str, object] = {
        "batch": name,
        "bytes": len(batch),
        "records": header.records_count,
        "header_us": duration_us(
            lambda: validate_produced(view, max_bytes=1 << 30, produce_version=9), seconds
        ),
    }
    if IS_COMPILED:
        row["records_us"] = duration_us(look_inside, seconds)
    contents._walk = walk_in_python
    try:
        row["records_in_python_us"] = duration_us(look_inside, seconds)
    finally:
        contents._walk = compiled
    print(json.dumps(row), flush=True)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.3)
    seconds = parser.parse_args().seconds
    for record_bytes in (100, 1_000):
        for codec, name in enumerate(CODEC_NAMES):
            batch = make_batch(record_bytes, codec)
            measure(f"16 KB of {record_bytes} B, {name}", batch, seconds)
    for codec, name in enumerate(CODEC_NAMES):
        for record_bytes in (10, 1_000):
            batch = make_batch(record_bytes, codec, SCRATCH_BYTES - 64_000)
            measure(f"450 KB of {record_bytes} B, {name}", batch, seconds)


if __name__ == "__main__":
    main()
