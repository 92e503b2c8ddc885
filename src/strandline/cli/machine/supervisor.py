"""Keeps the processes of a machine's brokers running, and ends them together.

How:    each broker by itself:

            RUNNING --it ends--> PAUSED --after a pause that grows--> RUNNING
            RUNNING --it ends, for it was unregistered--> UNREGISTERED
            any --end--> ENDED, once its process is gone
        A broker that was unregistered would join anew, as a new broker, if it were started again:
        only a person may want that. The other brokers run on.
        All end at the same time, each in order: it hands over what it leads. A process that still
        runs after `STOP_MS` is killed.
Owns:   the state of each broker's process.
Source: decision 0071."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

import msgspec

from strandline.base.clock import Clock
from strandline.cli.machine.broker_process import BrokerProcess, RunningProcess, Spawn
from strandline.cli.machine.restart_pause import RestartPause
from strandline.cli.machine.wire import Order

STOP_MS = 60_000

_log = logging.getLogger("strandline.machine")


class ProcessState(Enum):
    """What a broker's process does."""

    RUNNING = "running"
    PAUSED = "paused"
    UNREGISTERED = "unregistered"
    ENDED = "ended"


@dataclass
class Supervised:
    """A broker's process. `starts`: how often it was started; `last_end`: how it ended last, empty
    if it never has; `next_start_ms`: of the clock, while it is paused."""

    broker: int
    order: Order
    state: ProcessState = ProcessState.PAUSED
    process: RunningProcess | None = None
    starts: int = 0
    last_end: str = ""
    next_start_ms: int = 0
    pause: RestartPause = field(default_factory=RestartPause)


class Supervisor:
    """See the module. `orders`: {broker: the order for its process}."""

    def __init__(
        self, orders: dict[int, Order], *, clock: Clock, spawn: Spawn = BrokerProcess
    ) -> None:
        self.processes: Sequence[Supervised] = [
            Supervised(broker, order) for broker, order in orders.items()
        ]
        self._clock = clock
        self._spawn = spawn
        self._is_ending = asyncio.Event()
        self._keeping: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start all processes."""
        loop = asyncio.get_running_loop()
        self._keeping = [loop.create_task(self._keep(one)) for one in self.processes]

    async def end(self) -> None:
        """End all processes in order; returns once they are gone."""
        self._is_ending.set()
        for one in self.processes:
            if one.process is not None:
                one.process.end()
        timer = self._clock.call_later(STOP_MS, self._kill_late)
        try:
            await asyncio.gather(*self._keeping)
        finally:
            timer.cancel()

    def kill(self) -> None:
        """End all processes at once."""
        self._is_ending.set()
        for one in self.processes:
            if one.process is not None:
                one.process.kill()

    def _kill_late(self) -> None:
        for one in self.processes:
            if one.process is not None:
                text = "broker %d has not ended within %d s: it is killed"
                _log.error(text, one.broker, STOP_MS // 1000)
                one.process.kill()

    async def _keep(self, one: Supervised) -> None:
        while not self._is_ending.is_set():
            began_ms = self._clock.monotonic_ms()
            one.last_end = await self._run(one)
            if self._is_ending.is_set():
                _log.info("broker %d %s", one.broker, one.last_end)
                break
            if one.state is ProcessState.UNREGISTERED:
                text = (
                    "broker %d %s; this supervisor does not start it again: end the supervisor, or "
                    "start it anew if the broker shall join as a new one"
                )
                _log.error(text, one.broker, one.last_end)
                return
            ran_ms = self._clock.monotonic_ms() - began_ms
            pause_ms = one.pause.after(ran_ms)
            one.state = ProcessState.PAUSED
            one.next_start_ms = self._clock.monotonic_ms() + pause_ms
            text = "broker %d %s; it ran for %.1f s, and starts again in %.1f s"
            _log.warning(text, one.broker, one.last_end, ran_ms / 1000, pause_ms / 1000)
            await self._wait(pause_ms)
        one.state = ProcessState.ENDED

    async def _run(self, one: Supervised) -> str:
        """Run a process to its end; returns how it ended."""
        order = msgspec.structs.replace(one.order, is_restart=one.starts > 0)
        try:
            process = one.process = self._spawn(order)
        except OSError as error:
            return f"could not start: {error.strerror}"
        one.state = ProcessState.RUNNING
        one.starts += 1
        _log.info("broker %d is process %d", one.broker, process.pid)
        try:
            return await process.wait()
        finally:
            one.process = None
            if process.is_unregistered:
                one.state = ProcessState.UNREGISTERED

    async def _wait(self, duration_ms: int) -> None:
        """Returns after this time, or when all are to end."""
        timer = self._clock.call_later(duration_ms, (passed := asyncio.Event()).set)
        waits = [asyncio.ensure_future(one.wait()) for one in (passed, self._is_ending)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            for one in waits:
                one.cancel()
