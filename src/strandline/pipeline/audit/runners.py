"""Runs many tasks: on threads of this process, or on the executors of a Spark cluster.

Why:    brokers and buckets work at the same time; a broker works on one request after the other.
How:    one line of tasks for each broker, several for each bucket. A thread, or a Spark task, takes
        one line.
Owns:   nothing.
Source: decision 0052, "Threads by default"."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event, Lock
from typing import TYPE_CHECKING, Protocol, TypeVar

from strandline.client.access import Access
from strandline.pipeline.audit.buckets.objects import ObjectResult, ObjectTask
from strandline.pipeline.audit.buckets.reading import ObjectLine
from strandline.pipeline.audit.tasks import BrokerLine, Task, TaskResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

THREADS_MAX = 64
LINES_OF_BUCKET = 2
"""Objects of a bucket that are read at one time here; each has two ranges in flight."""
OnResult = Callable[[TaskResult], None]
OnObject = Callable[[ObjectResult], None]
_T_contra = TypeVar("_T_contra", contravariant=True)
_R = TypeVar("_R", bound="_Result")
_S = TypeVar("_S")


class _Result(Protocol):
    @property
    def is_silent(self) -> bool: ...


class _Line(Protocol[_T_contra, _R]):
    """Runs the tasks of one line, in order."""

    def run(self, task: _T_contra) -> _R: ...

    def skip(self, task: _T_contra, silent: _R) -> _R:
        """The result of a task that was not tried, because another had no answer."""

    def close(self) -> None: ...


class Runner(Protocol):
    """What runs tasks."""

    def run(self, tasks: Sequence[Task], on_result: OnResult) -> None:
        """Run all of them; `on_result` gets each result, one at a time."""

    def run_objects(self, tasks: Sequence[ObjectTask], on_result: OnObject) -> None:
        """The same for objects of buckets."""


class _LineRunner(ABC):
    """A runner of lines: one for each broker, or some for each bucket."""

    def __init__(self, access: Access | None = None) -> None:
        self._access = access

    def run(self, tasks: Sequence[Task], on_result: OnResult) -> None:
        """See `Runner`."""
        self._run(_broker_lines(tasks), on_result, partial(BrokerLine, self._access))

    def run_objects(self, tasks: Sequence[ObjectTask], on_result: OnObject) -> None:
        """See `Runner`."""
        self._run(_object_lines(tasks), on_result, ObjectLine)

    @abstractmethod
    def _run(
        self,
        lines: Sequence[Sequence[_S]],
        on_result: Callable[[_R], None],
        open_line: "Callable[[], _Line[_S, _R]]",
    ) -> None: ...


class ThreadRunner(_LineRunner):
    """A thread for each line."""

    def _run(
        self,
        lines: Sequence[Sequence[_S]],
        on_result: Callable[[_R], None],
        open_line: "Callable[[], _Line[_S, _R]]",
    ) -> None:
        if not lines:
            return
        with ThreadPoolExecutor(min(len(lines), THREADS_MAX)) as threads:
            lock = Lock()

            def hand_over(result: _R) -> None:
                with lock:
                    on_result(result)

            stopped = Event()
            waiting = [
                threads.submit(_run_line, line, hand_over, open_line, stopped) for line in lines
            ]
            try:
                for one in waiting:
                    one.result()
            finally:  # After Ctrl-C, the other lines end with the request that they wait for.
                stopped.set()


class SparkRunner(_LineRunner):
    """A Spark task for each line, or several where there are many tasks.

    No executor is nearer to a broker than another: a digest has some bytes, so it does not matter
    where it is asked from. Objects are read by the executors, and only digests come back. Results
    come when a Spark task ends."""

    def __init__(
        self,
        spark: "SparkSession",
        access: Access | None = None,
        *,
        tasks_per_line_max: int = 512,
    ) -> None:
        super().__init__(access)
        self._spark = spark
        self._tasks_per_line_max = tasks_per_line_max

    def _run(
        self,
        lines: Sequence[Sequence[_S]],
        on_result: Callable[[_R], None],
        open_line: "Callable[[], _Line[_S, _R]]",
    ) -> None:
        size = self._tasks_per_line_max
        parts = [line[at : at + size] for line in lines for at in range(0, len(line), size)]
        if not parts:
            return

        def run_parts(chosen: Iterable[Sequence[_S]]) -> Iterator[_R]:
            for part in chosen:
                found: list[_R] = []
                _run_line(part, found.append, open_line)
                yield from found

        context = self._spark.sparkContext
        work = context.parallelize(parts, numSlices=len(parts)).mapPartitions(run_parts)
        for result in work.collect():
            on_result(result)


def _broker_lines(tasks: Sequence[Task]) -> list[list[Task]]:
    """The tasks of each broker, in their order."""
    return _lines(tasks, [one.target.broker for one in tasks])


def _object_lines(tasks: Sequence[ObjectTask]) -> list[list[ObjectTask]]:
    """The tasks of each bucket, dealt out to its lines."""
    return _lines(tasks, [(one.bucket, at % LINES_OF_BUCKET) for at, one in enumerate(tasks)])


def _lines(tasks: Sequence[_S], names: Sequence[Hashable]) -> list[list[_S]]:
    lines: dict[Hashable, list[_S]] = {}
    for task, name in zip(tasks, names, strict=True):
        lines.setdefault(name, []).append(task)
    return list(lines.values())


def _run_line(
    tasks: Sequence[_S],
    on_result: Callable[[_R], None],
    open_line: "Callable[[], _Line[_S, _R]]",
    stopped: Event | None = None,
) -> None:
    """Once a broker or a bucket does not answer for its whole time-out, its other tasks do not wait
    again."""
    line = open_line()
    silent: _R | None = None
    try:
        for task in tasks:
            if stopped is not None and stopped.is_set():
                return
            result = line.run(task) if silent is None else line.skip(task, silent)
            if result.is_silent:
                silent = result
            on_result(result)
    finally:
        line.close()
