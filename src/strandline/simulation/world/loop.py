"""An asyncio event loop in virtual time: the coroutines of one simulated process run on it.

Why:    handlers and calls between brokers are coroutines; in the simulation they must run in one
        deterministic order, without real time, threads or sockets.
How:    every handle becomes an event of the one scheduler, through the process' gate; while a
        callback of the process runs, this loop is the running loop. `time()` is the host's
        monotonic clock. Executors run their function as an event. Whatever needs a socket, a signal
        or a child process raises, as in the base class.
Owns:   the tasks of the process; `close` ends those that are left, in the order in which they were
        made.
Source: design section 10; `asyncio.BaseEventLoop`."""

import asyncio
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import Executor
from contextlib import suppress
from contextvars import Context
from functools import partial
from typing import TypeVar, TypeVarTuple, Unpack

from strandline.simulation.world.clock import HostClock
from strandline.simulation.world.process import Process
from strandline.simulation.world.scheduler import ScheduledEvent, Scheduler

US_PER_S = 1_000_000
RUN_LIMIT_US = 24 * 3600 * US_PER_S
"""`run_until_complete` gives up when this much virtual time has gone by."""

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")


class SimTimerHandle(asyncio.TimerHandle):
    """A timer that also leaves the scheduler's queue when it is cancelled."""

    event: ScheduledEvent | None = None

    def cancel(self) -> None:
        """See `asyncio.TimerHandle`."""
        if self.event is not None:
            self.event.cancel()
            self.event = None
        super().cancel()


class SimLoop(asyncio.BaseEventLoop):
    """See the module. `errors` collects what asyncio would have logged: a run fails on any."""

    def __init__(self, scheduler: Scheduler, process: Process, clock: HostClock) -> None:
        super().__init__()
        self.errors: list[str] = []
        self._scheduler = scheduler
        self._process = process
        self._clock = clock
        self._made_count = 0
        self._tasks: weakref.WeakValueDictionary[int, asyncio.Task[object]] = (
            weakref.WeakValueDictionary()
        )
        process.loop = self

    @property
    def name(self) -> str:
        """The process that runs on this loop."""
        return self._process.name

    def time(self) -> float:
        """The host's monotonic time, in seconds."""
        return self._clock.local_us() / US_PER_S

    def is_running(self) -> bool:
        """Whether a callback of the process is on the stack."""
        return asyncio._get_running_loop() is self

    def call_soon(
        self,
        callback: Callable[[Unpack[_Ts]], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """See `asyncio.AbstractEventLoop`."""
        handle = asyncio.Handle(callback, args, self, context)
        self._process.after(0, partial(_run_handle, handle))
        return handle

    def call_soon_threadsafe(
        self,
        callback: Callable[[Unpack[_Ts]], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """The same: there is one thread."""
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[_Ts]], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """See `asyncio.AbstractEventLoop`."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[_Ts]], object],
        *args: *_Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """See `asyncio.AbstractEventLoop`."""
        handle = SimTimerHandle(when, callback, args, self, context)
        due_us = self._clock.due_us(round(when * US_PER_S))
        handle.event = self._process.at(due_us, partial(_run_handle, handle))
        return handle

    def create_task(
        self,
        coro: Generator[object, None, _T] | Coroutine[object, object, _T],
        *,
        name: object = None,
        context: Context | None = None,
    ) -> asyncio.Task[_T]:
        """See `asyncio.AbstractEventLoop`; unnamed tasks are named after their number here."""
        self._made_count += 1
        name = name or f"{self._process.name}-task-{self._made_count}"
        task = super().create_task(coro, name=str(name), context=context)
        self._tasks[self._made_count] = task
        return task

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[_Ts]], _T], *args: *_Ts
    ) -> asyncio.Future[_T]:
        """Run the function as an event of its own: there are no threads."""
        future: asyncio.Future[_T] = self.create_future()
        self.call_soon(_run_into, future, partial(func, *args))
        return future

    def run_until_complete(self, future: Generator[object, None, _T] | Awaitable[_T]) -> _T:
        """Run the whole world until the future is done; for tests."""
        if isinstance(future, Generator):
            task: asyncio.Future[_T] = self.create_task(future)
        else:
            task = asyncio.ensure_future(future, loop=self)
        limit_us = self._scheduler.now_us + RUN_LIMIT_US
        if not self._scheduler.run_until_true(task.done, limit_us=limit_us):
            raise RuntimeError("nothing more can happen, and the future is not done")
        return task.result()

    def call_exception_handler(self, context: dict[str, object]) -> None:
        """Remember the error, unless the process is dead."""
        if self._process.is_usable:
            self.errors.append(f"{context.get('message')}: {context.get('exception')!r}")

    def close(self) -> None:
        """End every task that is left. Their `finally` clauses run, on seams that are dead."""
        if self.is_closed():
            return
        for _, task in sorted(self._tasks.items()):
            coroutine = task.get_coro()
            if not task.done() and isinstance(coroutine, Coroutine):
                # A coroutine that awaits in a `finally` clause complains: the dead do not wait.
                with suppress(RuntimeError):
                    coroutine.close()
        super().close()

    def __del__(self) -> None:
        """No descriptors, nothing to release: a world may simply be dropped."""


def _run_handle(handle: asyncio.Handle) -> None:
    if not handle.cancelled():
        handle._run()


def _run_into(future: asyncio.Future[_T], function: Callable[[], _T]) -> None:
    if future.cancelled():
        return
    try:
        future.set_result(function())
    except Exception as error:
        future.set_exception(error)
