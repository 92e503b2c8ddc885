"""A client's program as a process: its four steps and what it prints.

How:    admin BOOTSTRAP TOPIC             makes TOPIC (4 partitions, 3 replicas) and TOPIC-gone,
                                          sets retention.ms, prints `partitions` and
                                          `retention.ms`
                                          as described afterwards, deletes TOPIC-gone
        produce BOOTSTRAP TOPIC COUNT KIND...   writes COUNT records to TOPIC-KIND; a kind is a
                                          codec, or `idempotent`
        consume BOOTSTRAP TOPIC COUNT     assigns all partitions, prints COUNT records
        member BOOTSTRAP TOPIC GROUP      prints and commits records until SIGTERM

        Those of `clients.access`, which read how to come in from the file that CLIENT_ACCESS names:

        writer BOOTSTRAP TOPIC            writes records idempotently until SIGTERM, prints `acked`
        survey BOOTSTRAP TOPIC GROUP      prints the log's `end` of each partition, each `group`
                                          that it sees, and what GROUP has `committed`
        attempt BOOTSTRAP NAME WHAT       tries WHAT, prints `done`, or `refused` with the error

        Exit code 0 if all went well; the reason is the last line of standard error otherwise."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from clients.records import CellError, Found, parse

STEP_TIMEOUT_S = 90
STOP_TIMEOUT_S = 30
LINE_MAX = 200
NOT_TELLING = ("at ", "goroutine", "^", "File ", "code: ", "}", "Node.js v")


class Program:
    """Runs the steps of one client. `environment` adds to that of this process."""

    def __init__(
        self, argv: Sequence[str], *, environment: Mapping[str, str] | None = None
    ) -> None:
        self._argv = list(argv)
        self._environment = {**os.environ, **(environment or {})}

    def run(self, step: str, *arguments: str) -> list[str]:
        """Run a step to its end; the lines that it printed."""
        try:
            done = subprocess.run(
                [*self._argv, step, *arguments],
                capture_output=True,
                text=True,
                timeout=STEP_TIMEOUT_S,
                env=self._environment,
            )
        except subprocess.TimeoutExpired as expired:
            raise CellError(f"{step}: not done within {STEP_TIMEOUT_S} s") from expired
        if done.returncode != 0:
            raise CellError(f"{step}: exit {done.returncode}: {reason(done.stderr)}")
        return done.stdout.splitlines()

    def member(self, *arguments: str) -> AbstractContextManager["Member"]:
        """A member of a group."""
        return self.running("member", *arguments)

    @contextmanager
    def running(self, step: str, *arguments: str) -> Iterator["Member"]:
        """A step that runs until it is asked to stop; killed at the end if it did not before."""
        member = Member([*self._argv, step, *arguments], self._environment)
        try:
            yield member
        finally:
            member.kill()


class Member:
    """A process that runs until it is asked to stop. `lines`: what it printed so far."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        self.lines: list[str] = []
        self._errors: list[str] = []
        self._process = subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._readers = [
            threading.Thread(target=_gather, args=(stream, lines), daemon=True)
            for stream, lines in (
                (self._process.stdout, self.lines),
                (self._process.stderr, self._errors),
            )
        ]
        for reader in self._readers:
            reader.start()

    @property
    def records(self) -> list[Found]:
        """What it read so far."""
        return [parse(line) for line in list(self.lines) if line.startswith("record\t")]

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    @property
    def acknowledged(self) -> set[int]:
        """The numbers of the records that it wrote and that were acknowledged so far."""
        lines = [line for line in list(self.lines) if line.startswith("acked\t")]
        return {int(line.split("\t")[1]) for line in lines}

    def check(self) -> None:
        """Raise if it has ended by itself."""
        if self._process.poll() is not None:
            self._join()
            errors = reason("".join(self._errors))
            raise CellError(f"a member ended with {self._process.returncode}: {errors}")

    def stop(self, *, code: int = 0) -> None:
        """SIGTERM; it has to leave its group and exit with this code."""
        self.check()
        self._process.send_signal(signal.SIGTERM)
        try:
            ended = self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired as expired:
            raise CellError(f"a member did not stop within {STOP_TIMEOUT_S} s") from expired
        self._join()
        if ended != code:
            raise CellError(f"a member stopped with {ended}: {reason(''.join(self._errors))}")

    def kill(self) -> None:
        """End it now."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._join()

    def _join(self) -> None:
        for reader in self._readers:
            reader.join()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()


def _gather(stream: Iterator[str], lines: list[str]) -> None:
    for line in stream:
        lines.append(line.rstrip("\n") if line.startswith("record\t") else line)


def reason(errors: str) -> str:
    """The last line that says something, without what some languages print after it: the stack,
    and Node.js its version."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(NOT_TELLING)]
    return (telling or lines or ["no word"])[-1][:LINE_MAX]


def temporary(directory: Path, name: str) -> Path:
    """A folder for the state of one process."""
    path = directory / name
    path.mkdir(parents=True, exist_ok=True)
    return path
