"""What an uploader spends on each GB, apart from the rest of a broker.

How:    `python -m bench.upload_path`: one log file in the page cache is read, checked and built
        into objects of 16 MiB as `broker.tiering` does it; then they are put into a directory, and
        their trailers read back. CPU seconds of this process, per GB; the second round counts.
Source: decision 0059."""

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from strandline.broker.tiering.sources import LocalSource
from strandline.config.tiered_section import TieredSection
from strandline.model.ids import Offset
from strandline.records.batch import OFFSET_FIELD
from strandline.records.record import Record, build_batch
from strandline.storage.disk.real_disk import RealDisk
from strandline.storage.log.reads import FileRange
from strandline.tiered.objects.buckets import Buckets
from strandline.tiered.segments.writer import SegmentObject, SegmentWriter

OBJECT_BYTES = 16 << 20
OBJECTS = 12
RECORD_BYTES = 990


def main() -> None:
    """A line for each size of batches."""
    for batch_bytes in (128_000, 16_000, 1_000):
        with tempfile.TemporaryDirectory(prefix="strandline-bench-") as work:
            asyncio.run(_measure(Path(work), batch_bytes))


def _log(path: Path, batch_bytes: int) -> tuple[int, int, int]:
    """Write a log of about one object; (its batches, records in each, bytes of each)."""
    count = batch_bytes // 1_000
    records = [Record(at, at, None, os.urandom(RECORD_BYTES)) for at in range(count)]
    batch = bytearray(build_batch(records, epoch=1))
    batches = OBJECT_BYTES // len(batch)
    with path.open("wb") as file:
        for at in range(batches):
            OFFSET_FIELD.pack_into(batch, 0, at * count)
            file.write(batch)
    return batches, count, len(batch)


def _post(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    loop.call_soon_threadsafe(callback)


async def _measure(work: Path, batch_bytes: int) -> None:
    batches, count, size = _log(work / "log", batch_bytes)
    (work / "bucket").mkdir()
    section = TieredSection(buckets=(f"east=file://{work / 'bucket'}",))
    store = Buckets.of(section).store("east")
    disk = RealDisk(partial(_post, asyncio.get_running_loop()))
    file = disk.open(str(work / "log"))
    total = batches * size
    parts = [FileRange(file, 0, total)]
    threads = ThreadPoolExecutor(2)
    gb = OBJECTS * total / 1e9
    for is_counted in (False, True):
        before = time.process_time()
        made: SegmentObject | None = None
        for _ in range(OBJECTS):
            writer = SegmentWriter(Offset(0), Offset(batches * count))
            await LocalSource(parts, threads).read_into(writer, lambda _: None)
            made = writer.finish("c/t/0/object")
        assert made is not None
        built, times = time.process_time(), os.times()
        for at in range(OBJECTS):
            await store.put(f"object-{at % 4}", made.parts)
            entry = made.entry
            await store.get_range(f"object-{at % 4}", entry.data_bytes, entry.size_bytes)
        after = os.times()
        if is_counted:
            figures = {
                "batch_bytes": batch_bytes,
                "read_check_build_cpu_s_per_gb": round((built - before) / gb, 2),
                "put_user_cpu_s_per_gb": round((after.user - times.user) / gb, 2),
                "put_system_cpu_s_per_gb": round((after.system - times.system) / gb, 2),
            }
            print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
