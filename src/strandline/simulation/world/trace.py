"""What happened, line by line: the record of a failing seed, and the proof that a run repeats.

Why:    a seed is worth something only if it gives the same history every time, byte for byte, and
        if a person can read that history.
How:    one line for each fault, election, acknowledgement and failure: virtual time, where, what.
        The brokers' own log lines are there too, from the level that was asked for.
Owns:   the lines of one run.
Source: design section 10; STYLE, "Tests" ("one seed, one trace, twice")."""

import asyncio
import hashlib
import logging
from types import TracebackType

from strandline.simulation.world.loop import SimLoop
from strandline.simulation.world.scheduler import Scheduler

WORLD = "world"


class Trace:
    """See the module."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.lines: list[str] = []
        self._scheduler = scheduler

    @property
    def now_us(self) -> int:
        """The present moment."""
        return self._scheduler.now_us

    def add(self, where: str, what: str) -> None:
        """One line, at the present moment."""
        self.lines.append(self.line(where, what))

    def line(self, where: str, what: str) -> str:
        """How a line of the present moment is written."""
        now_us = self._scheduler.now_us
        return f"{now_us // 1_000_000:4d}.{now_us % 1_000_000:06d} {where:>9}  {what}"

    def digest(self) -> str:
        """A fingerprint of all lines."""
        return hashlib.sha256("\n".join(self.lines).encode()).hexdigest()


class LogIntoTrace(logging.Handler):
    """While entered, what the product logs becomes lines of the trace, and nothing else sees it.

    `unexpected` collects records that carry an exception: a broker met an error it did not plan."""

    def __init__(self, trace: Trace, level: int) -> None:
        super().__init__(level)
        self.unexpected: list[str] = []
        self._trace = trace
        self._logger = logging.getLogger("strandline")
        self._before = (self._logger.level, self._logger.propagate)

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler`."""
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text = f"{text}: {record.exc_info[1]!r}"
            self.unexpected.append(text)
        loop = asyncio._get_running_loop()
        self._trace.add(loop.name if isinstance(loop, SimLoop) else WORLD, text)

    def __enter__(self) -> "LogIntoTrace":
        self._before = (self._logger.level, self._logger.propagate)
        self._logger.addHandler(self)
        self._logger.setLevel(self.level)
        self._logger.propagate = False
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._logger.removeHandler(self)
        level, self._logger.propagate = self._before
        self._logger.setLevel(level)
