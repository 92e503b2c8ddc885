"""Commands of an operator, one after the other, each until it succeeds.

Why:    a command that ends without an answer may have done its work or not, so it is run again;
        and the order in which a right is taken and given back decides what holds in the end.
Owns:   the queue, and the process of the command that runs."""

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from chaos import processes
from chaos.brokers import STRANDLINE
from chaos.hosts import ChaosError, Host
from chaos.network import Network

COMMAND_TIMEOUT_S = 15
PAUSE_S = 0.3


class Command(NamedTuple):
    """`then` is called once it has succeeded."""

    arguments: tuple[str, ...]
    then: Callable[[], None] = lambda: None


class Commands:
    """See the module."""

    def __init__(self, network: Network, host: Host, config: Path, log: Path) -> None:
        self.done_count = 0
        self.failed_count = 0
        self._network = network
        self._host = host
        self._config = config
        self._log = log
        self._waiting: deque[Command] = deque()
        self._running: processes.Process | None = None
        self._again_s = 0.0

    def add(self, *arguments: str, then: Callable[[], None] = lambda: None) -> None:
        """Run a command of `strandline` when its turn comes."""
        self._waiting.append(Command(arguments, then))

    @property
    def are_done(self) -> bool:
        """Whether none is left."""
        return not self._waiting

    def look(self) -> None:
        """Begin the next command, or take in how one ended."""
        if not self._waiting:
            return
        if self._running is None:
            if time.monotonic() >= self._again_s:
                self._running = self._start(self._waiting[0])
            return
        code = self._running.poll()
        if code is None:
            return
        self._running = None
        if code:
            self.failed_count += 1
            self._again_s = time.monotonic() + PAUSE_S
            return
        self.done_count += 1
        self._waiting.popleft().then()

    def finish(self, timeout_s: float) -> None:
        """Run all that are left. Raises ChaosError if they do not succeed in time."""
        until = time.monotonic() + timeout_s
        while not self.are_done:
            if time.monotonic() > until:
                what = " ".join(self._waiting[0].arguments)
                raise ChaosError(f"no success within {timeout_s:.0f} s: {what}; see {self._log}")
            self.look()
            time.sleep(0.05)

    def end(self) -> None:
        """None is left."""
        self._waiting.clear()
        if self._running is not None:
            processes.kill([self._running])
            self._running = None

    def _start(self, command: Command) -> processes.Process:
        return processes.start(
            [
                *self._network.command(self._host),
                *(STRANDLINE, *command.arguments, "--timeout", str(COMMAND_TIMEOUT_S)),
                *("--client-config", str(self._config)),
            ],
            log=self._log,
        )
