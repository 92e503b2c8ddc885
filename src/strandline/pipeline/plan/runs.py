"""Runs a plan's trials: in this process, in processes of this machine, or on Spark executors.

Why:    a small question is answered before Spark has started; a large one needs a cluster. Both
        give the same numbers.
How:    trials are shared out in chunks; `trials.run_trials` runs a chunk wherever it is. Rows come
        back in any order and are sorted by trial, so sums do not depend on how many there were.
Owns:   the processes it starts, until it returns."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from typing import TYPE_CHECKING

from strandline.pipeline.plan.trials import Plan, TrialRow, chunks, encode, run_trials

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

OnProgress = Callable[[int], None]
"""Called with the number of trials that are done, now and then."""

CHUNKS_A_PROCESS = 16
"""So many parts for each process: progress is seen, and no process ends long before others."""
CHUNK_TRIALS_MIN = 4
_POLL_S = 0.5


def run_here(
    plan: Plan, trials: int, *, processes: int = 1, on_progress: OnProgress = lambda done: None
) -> list[TrialRow]:
    """All trials on this machine, in order."""
    blob = encode(plan)
    parts = chunks(trials, _parts(trials, processes))
    rows: list[TrialRow] = []
    if processes == 1:
        for part in parts:
            rows += run_trials(blob, part)
            on_progress(len(rows))
        return rows
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(run_trials, blob, part) for part in parts]):
            rows += done.result()
            on_progress(len(rows))
    return _sorted(rows)


def run_on_spark(
    spark: "SparkSession",
    plan: Plan,
    trials: int,
    *,
    partitions: int = 0,
    on_progress: OnProgress = lambda done: None,
) -> list[TrialRow]:
    """All trials on the session's executors, in order. `partitions`: how many tasks; 0: several for
    each core."""
    context = spark.sparkContext
    count = partitions or _parts(trials, context.defaultParallelism)
    parts = chunks(trials, count)
    stop = threading.Event()
    watch = threading.Thread(
        target=_watch, args=(context, stop, trials / len(parts), on_progress), daemon=True
    )
    watch.start()
    try:
        done = context.parallelize(parts, len(parts)).map(partial(run_trials, encode(plan)))
        rows = [row for some in done.collect() for row in some]
    finally:
        stop.set()
        watch.join()
    on_progress(trials)
    return _sorted(rows)


def process_count() -> int:
    """The processors of this machine."""
    return os.cpu_count() or 1


def _parts(trials: int, workers: int) -> int:
    return max(1, min(workers * CHUNKS_A_PROCESS, trials // CHUNK_TRIALS_MIN))


def _watch(
    context: "SparkContext", stop: threading.Event, each: float, on_progress: OnProgress
) -> None:
    """Report the tasks that are done, until the job is."""
    tracker = context.statusTracker()
    while not stop.wait(_POLL_S):
        for stage in tracker.getActiveStageIds():
            info = tracker.getStageInfo(stage)
            if info is not None:
                on_progress(int(info.numCompletedTasks * each))


def _sorted(rows: list[TrialRow]) -> list[TrialRow]:
    found = sorted(rows, key=lambda row: row.trial)
    assert [row.trial for row in found] == list(range(len(found))), "each trial once"
    return found
