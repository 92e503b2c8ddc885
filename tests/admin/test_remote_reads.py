"""Metrics of reading from buckets say what the reader has done.

Source: decisions 0023 and 0060."""

import asyncio
from pathlib import Path

from tests.tiered.reading.reading_world import Buckets, ReadWorld, batches, fail, flip

from strandline.admin.remote_reads import REASONS, REMOTE_METRICS, remote_figures
from strandline.broker.fetch.remote_log import RemoteLog


def test_a_broker_without_buckets_tells_none() -> None:
    assert remote_figures(None) == {row.name: {} for row in REMOTE_METRICS}


def test_what_was_read_is_told_by_bucket(tmp_path: Path) -> None:
    buckets = Buckets()
    for bucket in ("near", "far"):
        buckets.put(bucket, batches(20))

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        log = RemoteLog(world.reader, lambda: ("near", "far"))
        await world.reader.start()
        buckets.stores["near"].fault = flip  # type: ignore[assignment]
        read = await world.read(0)
        buckets.stores["far"].fault = fail  # type: ignore[assignment]
        assert (await world.read(15)).is_failed
        found = remote_figures(log)
        assert found.keys() == {row.name for row in REMOTE_METRICS}
        assert found["strandline_remote_fetch_requests_total"] == {("near",): 1, ("far",): 3}
        errors = found["strandline_remote_fetch_errors_total"]
        assert isinstance(errors, dict)
        assert {key: count for key, count in errors.items() if count} == {
            ("near", "wrong_bytes"): 1,
            ("far", "unanswered"): 1,
        }
        assert {reason for _, reason in errors} <= set(REASONS)
        assert found["strandline_remote_served_bytes_total"] == read.size_bytes
        assert found["strandline_remote_bucket_down"] == {("near",): 0, ("far",): 1}
        assert found["strandline_remote_unusable_objects"] == 1
        assert found["strandline_remote_failed_reads_total"] == 1
        assert found["strandline_remote_cache_bytes"] == world.reader.cache.size_bytes > 0

    asyncio.run(run())
