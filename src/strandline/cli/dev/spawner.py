"""Starts brokers as processes of their own: imports the broker once, then forks it for each.

Why:    five Python processes that import the same modules take seconds on two cores and hold five
        copies in memory; a fork takes milliseconds and shares the pages.
How:        strandline dev start --exec--> spawner --imports serve, forks--> broker, broker, ...
        The spawner has no thread and no event loop. It reads the wanted brokers as JSON from
        standard input and writes {id: pid} as JSON to standard output when all are forked. Each
        broker gets a session of its own, its log file as standard output and error, and its pid
        file.
Owns:   nothing; it is gone once the brokers run.
Source: reference ecosystem 0.2 (measured: 5 imports 2.2 s, one import and 5 forks 0.7 s)."""

import gc
import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from strandline.base.errors import OperatorError
from strandline.cli.dev.processes import ProcessMark, write_mark

SPAWN_TIMEOUT_S = 60


class Spawn(msgspec.Struct, frozen=True):
    """One broker to start; all paths are absolute."""

    id: int
    config: str
    log: str
    pid: str


def spawn_brokers(wanted: Sequence[Spawn]) -> dict[int, int]:
    """Start these brokers; returns {broker id: pid} at once, whether or not they will live."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "strandline.cli.dev.spawner"],
            input=msgspec.json.encode(list(wanted)),
            capture_output=True,
            timeout=SPAWN_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OperatorError(f"cannot start processes: {error}") from error
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise OperatorError(f"cannot start brokers: {lines[-1]}")
    return msgspec.json.decode(done.stdout, type=dict[int, int])


def main() -> None:
    """The spawner's process."""
    wanted = msgspec.json.decode(sys.stdin.buffer.read(), type=list[Spawn])
    # Imported here, once for all: this is what takes the time.
    importlib.import_module("strandline.cli.serve")
    gc.collect()
    gc.freeze()
    pids: dict[int, int] = {}
    for spawn in wanted:
        pid = os.fork()
        if pid == 0:
            _become_broker(spawn)
        mark = ProcessMark.of(pid)
        if mark is not None:
            write_mark(Path(spawn.pid), mark)
        pids[spawn.id] = pid
    sys.stdout.buffer.write(msgspec.json.encode(pids))


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
        from strandline.cli.serve import serve_file

        # The environment belongs to whoever typed the command: it must not make five brokers one.
        code = serve_file(Path(spawn.config), environment={})
    except Exception as error:  # A process boundary: the last line of the log says why it ended.
        os.write(2, f"error: {error!r}\n".encode())
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
