"""Runs lake jobs, one for each table, in one Spark session.

Why:    Spark takes seconds to start; many topics share one start.
How:    locks -> each job looks at its topics and its table -> only if there is something to do:
        Spark -> batches, in turn. A cluster that wants TLS or a login is asked by Java, so that
        Spark starts first."""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from strandline.base.errors import OperatorError, StrandlineError
from strandline.pipeline.lake.cluster import Cluster, Questions, is_outage
from strandline.pipeline.lake.delta_log import LocalLog, LogFiles
from strandline.pipeline.lake.job import LakeJob, Watch, Written
from strandline.pipeline.lake.lock import hold_in_java, table_lock
from strandline.pipeline.lake.options import LakeOptions, check_apart
from strandline.pipeline.locations import is_local
from strandline.pipeline.runtime.session import SessionOptions, open_session
from strandline.pipeline.runtime.spark_errors import summarize

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(slots=True)
class LakeResult:
    """What a run did to one table."""

    options: LakeOptions
    batches: int = 0
    records: int = 0
    malformed: int = 0
    dead_letters: int = 0
    problems: dict[str, int] = field(default_factory=dict)
    """{why records did not fit: how many}."""
    elsewhere: int = 0
    gaps: int = 0
    total: int = 0
    """How many records there were to read when the run began."""
    started: float = field(default_factory=time.monotonic)

    def add(self, written: Written) -> None:
        """Counts a batch."""
        self.batches += 1
        self.records += written.records
        self.malformed += written.malformed
        self.dead_letters += written.dead_letters
        for reason, count in written.problems.items():
            self.problems[reason] = self.problems.get(reason, 0) + count
        self.elsewhere += written.elsewhere
        self.gaps += written.gaps

    @property
    def rate(self) -> float:
        """Records a second, of this run."""
        return (self.records + self.dead_letters) / max(time.monotonic() - self.started, 1e-3)


@dataclass(frozen=True, slots=True)
class Told:
    """Where a run reports to."""

    batch: Callable[[LakeResult, Written], None]
    notice: Callable[[str], None]
    status: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What is done to a table after every so many batches."""

    every_batches: int
    """0: never."""
    run: "Callable[[SparkSession | None, str], str]"
    """(session, table) -> a line for people, or \"\"."""

    def is_due(self, batch: int) -> bool:
        """Whether it is the turn after the batch of this number. Without state: a round that a
        kill prevents is made up by the next one. -1: there is no batch yet, so no table."""
        return batch >= 0 and self.every_batches > 0 and (batch + 1) % self.every_batches == 0


def run_lakes(
    tables: Sequence[LakeOptions],
    session: SessionOptions,
    *,
    told: Told,
    upkeep: Upkeep | None = None,
    then: "Callable[[SparkSession], None] | None" = None,
) -> list[LakeResult]:
    """Brings each table up to the end of now, or follows the topics until SIGINT or SIGTERM;
    `then` runs in the same session afterwards. Raises OperatorError."""
    check_apart(tables)
    results = [LakeResult(options) for options in tables]
    is_secure = any(options.is_secure for options in tables)
    spark: SparkSession | None = None
    with _stop_signals() as stop, ExitStack() as stack:
        locks = [
            stack.enter_context(table_lock(Path(options.table)))
            for options in tables
            if is_local(options.table)
        ]
        jobs = []
        if is_secure:
            spark = _spark(stack, session, stop=stop, told=told)
        for result in results:
            cluster = stack.enter_context(_cluster(spark, result.options))
            watch = Watch(on_batch=_counter(result, told), on_notice=told.notice)
            job = LakeJob(result.options, cluster, stop=stop, watch=watch)
            job.look(_local_log(result.options.table), _local_log(result.options.dead_letters))
            if result.options.access and (lacking := cluster.lacks(result.options.job)):
                told.notice(lacking)
            result.total = job.total
            jobs.append(job)
        follows = any(options.interval_ms is not None for options in tables)
        if not follows and then is None and all(job.is_idle for job in jobs):
            return results
        if spark is None:
            spark = _spark(stack, session, stop=stop, told=told)
        kept = [hold_in_java(spark, lock) for lock in locks]
        _run(spark, jobs, stop=stop, told=told, upkeep=upkeep)
        if stop.is_set() and not follows:
            raise KeyboardInterrupt
        if then is not None:
            then(spark)
        del kept
    return results


def _spark(stack: ExitStack, session: SessionOptions, *, stop: Event, told: Told) -> "SparkSession":
    """A session that ends with the stack."""
    told.status("starting Spark")
    stack.enter_context(_interrupted(stop))
    return stack.enter_context(open_session(session))


def _cluster(
    spark: "SparkSession | None", options: LakeOptions
) -> AbstractContextManager[Questions]:
    """What a job asks: our own client, or Java's where connections need what it has."""
    if spark is None or not options.is_secure:
        return Cluster(options.bootstrap, options.buckets, access=options.access)
    from strandline.pipeline.lake.java_cluster import JavaCluster

    return JavaCluster(spark, options)


def _counter(result: LakeResult, told: Told) -> Callable[[Written], None]:
    def on_batch(written: Written) -> None:
        result.add(written)
        told.batch(result, written)

    return on_batch


def _local_log(table: str | None) -> LogFiles | None:
    return None if table is None or not is_local(table) else LocalLog(Path(table))


def _run(
    spark: "SparkSession",
    jobs: Sequence[LakeJob],
    *,
    stop: Event,
    told: Told,
    upkeep: Upkeep | None,
) -> None:
    from strandline.pipeline.lake.writer import TableWriter, open_log

    work = []
    for job in jobs:
        writer = TableWriter(spark, job.options)
        dead = job.options.dead_letters
        job.open(writer, None if dead is None else open_log(spark, dead))
        work.append((job, writer))
    told.status(f"reading {', '.join(topic for job in jobs for topic in job.options.topics)}")
    interval_ms = jobs[0].options.interval_ms
    while not stop.is_set():
        moved = False
        for job, writer in work:
            if stop.is_set() or not job.step(writer):
                continue
            moved = True
            if upkeep is not None and upkeep.is_due(job.batch_number):
                keep_up(spark, job.options, upkeep, told)
        if moved:
            continue
        if interval_ms is None:
            return
        stop.wait(interval_ms / 1000)
        for job in jobs:
            _refresh(job, told)


def keep_up(spark: "SparkSession | None", options: LakeOptions, upkeep: Upkeep, told: Told) -> None:
    """A round for the job's table and for its dead letters. A table that upkeep fails at is as
    full as before, and the job goes on."""
    from strandline.pipeline.lake.writer import open_log

    for table in (options.table, options.dead_letters):
        log = None if table is None else open_log(spark, table)
        if table is None or log is None or not log.names():
            continue
        told.status(f"compacting {table}")
        try:
            line = upkeep.run(spark, table)
        except Exception as error:
            told.notice(f"{table}: upkeep failed: {summarize(str(error))}")
        else:
            if line:
                told.notice(line)


def _refresh(job: LakeJob, told: Told) -> None:
    """A follower outlives an outage of its cluster."""
    try:
        job.refresh()
    except StrandlineError as error:
        if not is_outage(error):
            raise
        told.notice(f"waiting for the cluster: {error}")


@contextmanager
def _interrupted(stop: Event) -> Iterator[None]:
    """A signal to all processes of a job ends Java too: an error after it is the interruption."""
    try:
        yield
    except OperatorError as error:
        if not stop.is_set():
            raise
        raise KeyboardInterrupt from error


@contextmanager
def _stop_signals() -> Iterator[Event]:
    """An event that SIGINT and SIGTERM set; a handler must not talk to Java, which may be busy."""
    stop = Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
