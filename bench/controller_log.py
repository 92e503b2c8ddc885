"""A controller's log of a million records: a start that replays all of it, and one from a snapshot.

Why:    without snapshots every start replays the whole log, which only grows.
How:    `python -m bench.controller_log --count 1000000`: one broker is started again as it is;
        then records of topics that are created and deleted again are put into its log, and it is
        started three times: it replays all of them, and takes a snapshot; it starts from that; it
        is killed, and starts from it once more. The figures are the time of the start command,
        which waits until the broker serves, the CPU seconds of the broker, and the log's size.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

from bench.alone import Say, run_alone
from bench.clusters import Cluster, command, memory_mb
from bench.load import cpu_seconds
from bench.restart import pid_of, wait_gone
from strandline.controller.records import (
    Assignment,
    Record,
    TopicCreated,
    TopicDeleted,
    encode_record,
)
from strandline.model.ids import BrokerId, GroupId
from strandline.network.loop_clock import LoopClock
from strandline.records import record as records
from strandline.records.batch import iterate_headers
from strandline.storage.config import LogConfig
from strandline.storage.disk.real_disk import RealDisk
from strandline.storage.log.log import Log

BROKER = 1
BATCH_COUNT = 1_000
SNAPSHOT_S_MAX = 60
LOOK_S = 0.05


def measure(cluster: Cluster, say: Say, *, count: int) -> None:
    """Start the broker, fill its log, and start it three times."""
    data = next(cluster.directory.glob(f"broker-{BROKER}/**/@controller.0")).parents[1]
    pid = cluster.pids[BROKER]
    for step in ("no records", "whole log", "snapshot", "snapshot, killed"):
        if step.startswith("snapshot"):
            _wait_snapshot(data)
        os.kill(pid, signal.SIGKILL if step.endswith("killed") else signal.SIGTERM)
        wait_gone(pid)
        if step == "whole log":
            asyncio.run(_fill(data / "logs/@controller.0", count))
        size = sum(one.stat().st_size for one in data.glob("logs/@controller.0/*.log"))
        begin = time.monotonic()
        command("dev", "broker", "start", str(BROKER), "--dir", str(cluster.directory))
        serving_s = time.monotonic() - begin
        pid = pid_of(cluster)
        say(
            step=step,
            records=count,
            log_mb=round(size / 1e6, 1),
            serving_s=round(serving_s, 2),
            broker_cpu_s=round(cpu_seconds([pid]), 2),
            rss_mb=round(memory_mb(pid)),
        )


async def _fill(directory: Path, count: int) -> None:
    """Append records to the log of a broker that is stopped."""
    loop = asyncio.get_running_loop()

    def post(callback: Callable[[], None]) -> None:
        loop.call_soon_threadsafe(callback)

    disk = RealDisk(post)
    log = Log.open(
        disk, str(directory), config=LogConfig(retention_ms=-1, delete=False), clock=LoopClock(loop)
    )
    for first in range(0, count, BATCH_COUNT):
        some = range(first, min(first + BATCH_COUNT, count))
        batch = records.build_batch(
            [
                records.Record(
                    offset_delta=number - first,
                    timestamp=1,
                    key=None,
                    value=encode_record(_record(number)),
                )
                for number in some
            ]
        )
        header = next(iterate_headers(batch))
        header.stamp(batch, base_offset=log.end_offset, epoch=log.last_epoch)
        log.append([batch], [header])
    log.close()
    disk.close()


def _record(number: int) -> Record:
    topic, id_ = f"topic-{number // 2}", UUID(int=number // 2 + 1)
    if number % 2:
        return TopicDeleted(topic, id_)
    return TopicCreated(topic, id_, (Assignment(GroupId(number // 2 + 1), (BrokerId(BROKER),)),))


def _wait_snapshot(data: Path) -> None:
    """Wait until the broker has stored a snapshot."""
    end_s = time.monotonic() + SNAPSHOT_S_MAX
    while not list(data.glob("snapshots/*.checkpoint")):
        assert time.monotonic() < end_s, "no snapshot"
        time.sleep(LOOK_S)


if __name__ == "__main__":
    run_alone(measure, description=__doc__ or "", regions="east=1", count=1_000_000)
