"""One broker's process, and the supervisor's end of the link to it.

Why:    the supervisor asks for health, metrics and access over a link that no other process
        reaches, so it needs no port, no token and no certificate.
How:    the process is `python -m strandline.cli.machine.entry FD`, in a session of its own: Ctrl-C
        reaches the supervisor only. A pidfd tells its end.
            The process inherits its own end of the link and nothing else, so the link ends with
        the supervisor. It takes no module from the directory that the supervisor was started in
        (`-P`), where other users may write.
Owns:   the process, the link.
Source: decision 0071; pidfd_open(2)."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from strandline.cli.machine.wire import (
    ENDED,
    REASON_CHARACTERS_MAX,
    Ask,
    Order,
    Question,
    Told,
    encode,
    read_message,
)

ENTRY = "strandline.cli.machine.entry"
ASK_TIMEOUT_S = 2.0
_SIGNALS = {one.value: one.name for one in signal.Signals}
LAST_WORDS_S = 1.0
"""For what an ended process has written and the supervisor has not read yet."""


class NoAnswerError(Exception):
    """The process has ended, or takes too long."""


class RunningProcess(Protocol):
    """What a supervisor needs of a process; see `BrokerProcess`."""

    @property
    def pid(self) -> int: ...
    @property
    def is_linked(self) -> bool: ...
    @property
    def has_answered(self) -> bool: ...
    @property
    def is_unregistered(self) -> bool: ...
    async def wait(self) -> str: ...
    async def ask(self, question: Question, *, timeout_s: float = ...) -> Told: ...
    def end(self) -> None: ...
    def kill(self) -> None: ...


class BrokerProcess:
    """See the module. Runs from its construction; raises OSError if it cannot."""

    def __init__(self, order: Order) -> None:
        ours, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", ENTRY, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
            self._pidfd = _watched(self._process)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self.has_answered = False
        """Whether its loop has run: until then it starts."""
        self.is_unregistered = False
        """Whether it said as it ended that the cluster has forgotten its broker."""
        self._loop = asyncio.get_running_loop()
        self._asked: dict[int, asyncio.Future[Told]] = {}
        self._last_number = ENDED
        self._writer: asyncio.StreamWriter | None = None
        self._is_ending = False
        self._reason = ""
        self._ended = asyncio.Event()
        self._loop.add_reader(self._pidfd, self._on_ended)
        self._talking = self._loop.create_task(self._talk(ours, order))

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def is_linked(self) -> bool:
        """Whether it can be asked; it answers once its loop runs."""
        return self._writer is not None and not self._is_ending

    async def wait(self) -> str:
        """How it ended: `was killed by SIGKILL`, `ended with exit code 1: error: ...`."""
        await self._ended.wait()
        await asyncio.wait({self._talking}, timeout=LAST_WORDS_S)
        self._talking.cancel()
        code = self._process.returncode
        if code < 0:
            return f"was killed by {_SIGNALS.get(-code, f'signal {-code}')}"
        return f"ended with exit code {code}" + (f": {self._reason}" if self._reason else "")

    async def ask(self, question: Question, *, timeout_s: float = ASK_TIMEOUT_S) -> Told:
        """The answer to a question. Raises NoAnswerError.

        It asks nothing while the kernel's buffer is full: the process does not read."""
        if self._writer is None or self._is_ending:
            raise NoAnswerError
        if self._writer.transport.get_write_buffer_size():
            raise NoAnswerError
        self._last_number += 1
        number = self._last_number
        answer = self._asked[number] = self._loop.create_future()
        try:
            self._writer.write(encode(Ask(number, question)))
            return await asyncio.wait_for(answer, timeout_s)
        except (TimeoutError, OSError) as error:
            raise NoAnswerError from error
        finally:
            del self._asked[number]

    def end(self) -> None:
        """Have it end in order."""
        self._is_ending = True
        if self._writer is not None:
            self._writer.close()

    def kill(self) -> None:
        """SIGKILL."""
        with suppress(ProcessLookupError):
            self._process.kill()

    def _on_ended(self) -> None:
        self._process.wait()
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._ended.set()

    async def _talk(self, ours: socket.socket, order: Order) -> None:
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        try:
            writer.write(encode(order))
            if self._is_ending:
                return
            self._writer = writer
            while (told := await read_message(reader, Told)) is not None:
                if told.number == ENDED:
                    self._reason = told.body.decode(errors="replace")[:REASON_CHARACTERS_MAX]
                    self.is_unregistered = told.is_unregistered
                    continue
                self.has_answered = True
                if told.number in self._asked and not self._asked[told.number].done():
                    self._asked[told.number].set_result(told)
        finally:
            self._writer = None
            writer.close()
            for answer in self._asked.values():
                if not answer.done():
                    answer.set_exception(NoAnswerError())


def _watched(process: "subprocess.Popen[bytes]") -> int:
    """A pidfd of the process. Raises OSError, and ends the process, if there can be none."""
    try:
        return os.pidfd_open(process.pid)
    except OSError:
        process.kill()
        process.wait()
        raise


Spawn = Callable[[Order], RunningProcess]
