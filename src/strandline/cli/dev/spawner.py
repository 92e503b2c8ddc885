"""Starts each broker as a process: imports the broker's code once, then forks for each broker.

Why:    five Python processes that import the same modules take seconds on two cores and hold five
        copies in memory; a fork takes milliseconds and shares the pages.
How:        strandline dev start --exec--> spawner --imports serve, forks--> broker, broker, ...
        The spawner has no thread and no event loop. It reads the wanted brokers as JSON from
        standard input and ends when all are forked. Each broker gets a session of its own, its log
        file as standard output and error, and its pid file.
Owns:   nothing; it is gone once the brokers run.
Source: reference ecosystem 0.2 (measured: 5 imports 2.2 s, one import and 5 forks 0.7 s)."""

import gc
import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from strandline.base.errors import OperatorError
from strandline.cli.dev.processes import ProcessMark, write_mark

SPAWN_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Spawn:
    """One broker to start; all paths are absolute."""

    id: int
    config: str
    log: str
    pid: str


class Spawner:
    """Handle of the spawner's process, for the command that starts brokers. Serves one `spawn`.

    Create it early: it imports the broker's code while the command still decides what to start."""

    def __init__(self) -> None:
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "strandline.cli.dev.spawner"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except OSError as error:
            raise OperatorError(f"cannot start processes: {error.strerror}") from error

    def __enter__(self) -> "Spawner":
        return self

    def __exit__(self, *_: object) -> None:
        """Kill the spawner if `spawn` was not called; brokers that it started live on."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()

    def spawn(self, wanted: Sequence[Spawn]) -> None:
        """Start these brokers. Returns when their processes run; they may fail afterwards."""
        text = json.dumps([asdict(one) for one in wanted]).encode()
        try:
            _, errors = self._process.communicate(text, timeout=SPAWN_TIMEOUT_S)
        except BaseException as error:
            # Interrupted or too slow: it must not go on forking while others clean up.
            self._process.kill()
            self._process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise OperatorError(f"no broker started within {SPAWN_TIMEOUT_S} s") from error
            raise
        if self._process.returncode != 0:
            lines = errors.decode(errors="replace").strip().splitlines() or ["no reason given"]
            raise OperatorError(f"cannot start brokers: {lines[-1]}")


def spawn_brokers(wanted: Sequence[Spawn]) -> None:
    """Start these brokers with a new spawner."""
    with Spawner() as spawner:
        spawner.spawn(wanted)


def main() -> None:
    """Entry point of the spawner's process."""
    # Before the command sends its request: the import takes most of the time.
    importlib.import_module("strandline.cli.server.serve")
    gc.collect()
    gc.freeze()
    for one in json.load(sys.stdin):
        spawn = Spawn(**one)
        pid = os.fork()
        if pid == 0:
            _become_broker(spawn)
        mark = ProcessMark.of(pid)
        if mark is not None:
            write_mark(Path(spawn.pid), mark)


def _become_broker(spawn: Spawn) -> None:
    """In the fork: detach, run the broker, never return."""
    code = 1
    try:
        os.setsid()
        # What `top` and `ps -o comm` show.
        Path("/proc/self/comm").write_text(f"strandline-{spawn.id}")
        signal.signal(signal.SIGINT, signal.default_int_handler)
        log = os.open(spawn.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        silence = os.open(os.devnull, os.O_RDONLY)
        os.dup2(silence, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        os.close(silence)
        from strandline.cli.server.serve import serve_file

        # No environment: a STRANDLINE variable would override its key in all brokers alike.
        code = serve_file(Path(spawn.config), environment={})
    except Exception as error:  # A process boundary: the last line of the log says why it ended.
        os.write(2, f"error: {error!r}\n".encode())
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
