"""Fills columns from memory that ends where the records do, into memory that ends where the columns
do: `python -m tests.spark.decoding.guarded_fill SEED ROUNDS FILE`, FILE being the compiled fill.

Why:    the compiled fill reads hostile input and writes to raw memory. One byte behind a buffer
        would go unnoticed in ordinary memory; here it is a segmentation fault."""

import sys
from array import array
from pathlib import Path
from types import ModuleType

import numpy as np
from tests.records.guarded_walk import PAGES_BYTES, guarded_memory
from tests.records.test_contents import damaged_batches
from tests.records.walk_library import load_walk
from tests.spark.decoding.test_fill import batch_row

from strandline.records.record import Record, build_batch
from strandline.spark.decoding.table import Arrays, BytesColumn


class Guarded:
    """Memory whose end is the end of what is taken from it."""

    def __init__(self) -> None:
        self._memory = guarded_memory()

    def array(self, count: int, kind: type) -> "np.ndarray[tuple[int], np.dtype[np.generic]]":
        size = count * np.dtype(kind).itemsize
        return np.frombuffer(memoryview(self._memory)[PAGES_BYTES - size : PAGES_BYTES], kind)

    def copy(self, data: bytes) -> memoryview:
        view = memoryview(self._memory)[PAGES_BYTES - len(data) : PAGES_BYTES]
        view[:] = data
        return view


def main(seed: int, rounds: int, file: Path) -> None:
    """See the module; also each input cut at any place."""
    compiled = load_walk(file)
    source, *columns = (Guarded() for _ in range(19))
    for records, count, base in damaged_batches(seed, rounds=rounds):
        count = max(count, 0)
        for size in {len(records), len(records) // 2, len(records) * seed % (len(records) + 1)}:
            data = source.copy(records[:size])
            scalars = [
                memory.array(count, np.int64 if at < 2 else np.int32)
                for at, memory in enumerate(columns[:6])
            ]
            keys, values, names, contents = (
                column(columns[at : at + 3], count, size) for at in (6, 9, 12, 15)
            )
            row = batch_row(records, count, base_timestamp=base, end=size)
            arrays = Arrays(*scalars, keys, values)  # type: ignore[arg-type]
            fault, _, _, rows, headers = compiled.fill(data, array("q", row), 0, *arrays)
            if not fault and headers:
                names = column(columns[12:15], headers, size)
                contents = column(columns[15:18], headers, size)
                compiled.fill_headers(
                    data, scalars[4][:rows], scalars[5][:rows], 0, headers, names, contents
                )
    scan(compiled, source, (seed, rounds))


def column(memory: list[Guarded], count: int, size: int) -> BytesColumn:
    ends, content, nulls = memory
    made = BytesColumn(
        ends.array(count + 1, np.int32),  # type: ignore[arg-type]
        content.array(size, np.uint8),  # type: ignore[arg-type]
        nulls.array(count, np.uint8),  # type: ignore[arg-type]
    )
    made.ends[0] = 0
    return made


def scan(compiled: ModuleType, source: Guarded, course: tuple[int, int]) -> None:
    """Looks for batches in cut and damaged data."""
    seed, rounds = course
    rng = np.random.default_rng(seed)
    batch = build_batch([Record(0, 1_000, b"k", b"v")])
    table = np.empty(3 * 12, np.int64)
    for _ in range(rounds):
        data = bytearray(batch + batch)
        data[int(rng.integers(len(data)))] = int(rng.integers(256))
        view = source.copy(bytes(data[: int(rng.integers(len(data) + 1))]))
        compiled.scan(view, 0, 0, 0, 1 << 60, True, True, 1 << 20, table)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
