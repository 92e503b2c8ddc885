"""Runs many tasks: on threads of this process, or on the executors of a Spark cluster.

Why:    brokers work at the same time; a broker works on one request after the other.
How:    one line of tasks for each broker. A thread, or a Spark task, takes one line.
Owns:   nothing.
Source: decision 0052, "Threads by default"."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock
from typing import TYPE_CHECKING, Protocol

from strandline.pipeline.audit.tasks import BrokerLine, Task, TaskResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

THREADS_MAX = 64
OnResult = Callable[[TaskResult], None]


class Runner(Protocol):
    """What runs tasks."""

    def run(self, tasks: Sequence[Task], on_result: OnResult) -> None:
        """Run all of them; `on_result` gets each result, one at a time."""


class ThreadRunner:
    """A thread for each broker."""

    def run(self, tasks: Sequence[Task], on_result: OnResult) -> None:
        """See `Runner`."""
        lines = _lines(tasks)
        if not lines:
            return
        with ThreadPoolExecutor(min(len(lines), THREADS_MAX)) as threads:
            lock = Lock()

            def hand_over(result: TaskResult) -> None:
                with lock:
                    on_result(result)

            stopped = Event()
            waiting = [threads.submit(_run_line, line, hand_over, stopped) for line in lines]
            try:
                for one in waiting:
                    one.result()
            finally:  # After Ctrl-C, the other lines end with the request that they wait for.
                stopped.set()


class SparkRunner:
    """A Spark task for each broker's line, or several where there are many tasks.

    No executor is nearer than another: a digest has some bytes, so it does not matter where it is
    asked from."""

    def __init__(self, spark: "SparkSession", *, tasks_per_line_max: int = 512) -> None:
        self._spark = spark
        self._tasks_per_line_max = tasks_per_line_max

    def run(self, tasks: Sequence[Task], on_result: OnResult) -> None:
        """See `Runner`. Results come when a Spark task ends."""
        size = self._tasks_per_line_max
        lines = [line[at : at + size] for line in _lines(tasks) for at in range(0, len(line), size)]
        if not lines:
            return
        context = self._spark.sparkContext
        work = context.parallelize(lines, numSlices=len(lines)).mapPartitions(_run_lines)
        for result in work.collect():
            on_result(result)


def _lines(tasks: Iterable[Task]) -> list[list[Task]]:
    """The tasks of each broker, in their order."""
    lines: dict[int, list[Task]] = {}
    for task in tasks:
        lines.setdefault(task.target.broker, []).append(task)
    return list(lines.values())


def _run_line(tasks: Sequence[Task], on_result: OnResult, stopped: Event | None = None) -> None:
    """Once a broker does not answer for its whole time-out, its other tasks do not wait again."""
    line = BrokerLine()
    silent: TaskResult | None = None
    try:
        for task in tasks:
            if stopped is not None and stopped.is_set():
                return
            if silent is None:
                result = line.run(task)
            else:
                result = TaskResult(task, problem=silent.problem, is_silent=True)
            if result.is_silent:
                silent = result
            on_result(result)
    finally:
        line.close()


def _run_lines(lines: Iterable[list[Task]]) -> Iterator[TaskResult]:
    """On an executor."""
    for line in lines:
        found: list[TaskResult] = []
        _run_line(line, found.append)
        yield from found
