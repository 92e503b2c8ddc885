"""How processes of a run begin and end: each by its id, none outlives the run.

How:    each has a session of its own, so that Ctrl-C reaches the run alone, and is killed by the
        kernel should the run itself be killed."""

import ctypes
import os
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from chaos.hosts import ChaosError

Process = subprocess.Popen[bytes]
ROOT = Path(__file__).resolve().parents[1]
_PR_SET_PDEATHSIG = 1
_prctl = ctypes.CDLL(None).prctl


def start(
    command: Sequence[str],
    *,
    log: Path,
    stdin: int | None = None,
    stdout: int | None = None,
    environment: Mapping[str, str] | None = None,
) -> Process:
    """Start a process that writes its complaints to `log`. `environment`: more than the run's."""
    with log.open("ab") as file:
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=file if stdout is None else stdout,
            stderr=file,
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )


def _end_with_parent() -> None:
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def run_tool(*command: str) -> str:
    """Run a tool of the system; its complaint as a ChaosError."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ChaosError(f"{command[0]}: {error.strerror}") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        raise ChaosError(f"{' '.join(command)}: {lines[-1]}")
    return done.stdout


def ask_to_end(processes: Iterable[Process]) -> None:
    """SIGTERM to those that run."""
    for process in processes:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGTERM)


def kill(processes: Iterable[Process]) -> None:
    """SIGKILL to those that run; returns when they are gone."""
    for process in processes:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()


def wait_ended(processes: Iterable[Process], *, timeout_s: float) -> bool:
    """Whether all end within the time."""
    try:
        for process in processes:
            process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return False
    return True
