"""Walks damaged batches that end where memory ends.

Why:    the compiled walk reads hostile input. One byte read behind a buffer would go unnoticed in
        ordinary memory; here it is a segmentation fault.
How:    `python -m tests.records.guarded_walk SEED ROUNDS FILE`, FILE being the compiled walk: two
        pages, the second one not readable. Each input is copied to the end of the first."""

import ctypes
import mmap
import sys
from pathlib import Path

from tests.records.test_contents import damaged_batches
from tests.records.walk_library import load_walk

PAGES_BYTES = 64 * mmap.PAGESIZE


def guarded_memory() -> mmap.mmap:
    """Memory whose last page cannot be read."""
    memory = mmap.mmap(-1, PAGES_BYTES + mmap.PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if libc.mprotect(start + PAGES_BYTES, mmap.PAGESIZE, 0):
        raise OSError(ctypes.get_errno(), "mprotect")
    return memory


def main(seed: int, rounds: int, file: Path) -> None:
    """See the module; also each input cut at any place."""
    memory, walk = guarded_memory(), load_walk(file)
    view = memoryview(memory)
    for records, count, base in damaged_batches(seed, rounds=rounds):
        for size in {len(records), len(records) // 2, len(records) * seed % (len(records) + 1)}:
            data = view[PAGES_BYTES - size : PAGES_BYTES]
            data[:] = records[:size]
            walk.walk(data, count, base)
            walk.refused(data, count, base, True, -(1 << 63), (1 << 63) - 1, 10)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
