"""What an uploader spends on each GB that it merges, or compacts, in a bucket.

How:    `python -m bench.rewrite_path`: objects of 1 MiB are read out of a directory, checked, and
        built into objects of 16 MiB as `broker.tiering` does it, without pauses: merged as they
        are, then compacted, with each key twice. CPU seconds of this process for each GB that is
        read, the map of keys included.
Source: decision 0066."""

import asyncio
import json
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from strandline.broker.tiering import rewriting
from strandline.broker.tiering.messages import Cleaning
from strandline.broker.tiering.rewriting import Rewriting
from strandline.config.tiered_section import TieredSection
from strandline.model.ids import GroupId, Offset
from strandline.network.loop_clock import LoopClock
from strandline.records.record import Record, build_batch
from strandline.tiered.objects.buckets import Buckets
from strandline.tiered.objects.store import ObjectStore
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.segments.writer import SegmentWriter

OBJECT_BYTES = 1 << 20
OBJECTS = 16
BATCH_BYTES = 16_000
MAP_BYTES_MAX = 1 << 30


def main() -> None:
    """A line for each size of records."""
    for record_bytes in (1_000, 100):
        with tempfile.TemporaryDirectory(prefix="strandline-bench-") as work:
            asyncio.run(_measure(Path(work), record_bytes))


async def _objects(store: ObjectStore, record_bytes: int) -> list[SegmentEntry]:
    """Neighbours whose second half has the keys of the first."""
    count = BATCH_BYTES // record_bytes
    batches = OBJECT_BYTES // BATCH_BYTES
    keys = OBJECTS * batches * count // 2
    entries = []
    offset = 0
    for at in range(OBJECTS):
        writer = SegmentWriter(Offset(offset), Offset(offset + batches * count))
        for _ in range(batches):
            records = [
                Record(one, one, b"key-%d" % ((offset + one) % keys), os.urandom(record_bytes - 20))
                for one in range(count)
            ]
            writer.add(build_batch(records, base_offset=offset, epoch=1))
            offset += count
        made = writer.finish(f"object-{at}")
        await store.put(made.entry.name, made.parts)
        entries.append(made.entry)
    return entries


async def _measure(work: Path, record_bytes: int) -> None:
    rewriting.PAUSE_FACTOR = 0
    section = TieredSection(buckets=(f"east=file://{work}",))
    store = Buckets.of(section).store("east")
    entries = await _objects(store, record_bytes)
    start, end = entries[0].base_offset, entries[-1].end_offset
    gb = sum(one.data_bytes for one in entries) / 1e9
    figures: dict[str, float] = {"record_bytes": record_bytes}
    clock = LoopClock(asyncio.get_running_loop())
    threads = ThreadPoolExecutor(1)
    for what, cleaning in (
        ("merged", None),
        ("compacted", Cleaning(start, end, Offset(0), 0, MAP_BYTES_MAX)),
    ):
        source = Rewriting(clock, threads, bytes_per_s=0).source(
            store,
            entries,
            dirty=entries,
            cleaning=cleaning,
            group=GroupId(1),
            bucket="east",
        )
        writer = SegmentWriter(start, end)
        before = time.process_time()
        await source.read_into(writer, lambda _: None)
        made = writer.finish("object")
        figures[f"{what}_cpu_s_per_gb"] = round((time.process_time() - before) / gb, 2)
        figures[f"{what}_left_ratio"] = round(made.entry.data_bytes / gb / 1e9, 3)
    threads.shutdown()
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
