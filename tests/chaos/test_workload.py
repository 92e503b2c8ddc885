"""Client processes: one that dies of a signal is replaced, one that fails ends the run."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from chaos.hosts import ChaosError
from chaos.workload import PROGRAMS, Program, Workload, idempotent_names

from chaos import processes, workload

WAIT_S = 30.0


class Stage(Workload):
    """Clients that only sleep, or end with a code."""

    def __init__(self, work: Path) -> None:
        self.said: list[str] = []
        self.code = 0
        super().__init__(work, None, say=self.said.append)  # type: ignore[arg-type]

    def _start(self, program: Program) -> processes.Process:
        what = f"import sys, time; time.sleep(0 if {self.code} else 600); sys.exit({self.code})"
        return processes.start([sys.executable, "-c", what], log=self._directory / "log")

    def process(self, name: str) -> processes.Process:
        return next(process for program, process in self._running.items() if program.name == name)

    def names(self) -> list[str]:
        return [program.name for program in self._running]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setattr(workload, "PROGRAMS", PROGRAMS[:2])
    stage = Stage(tmp_path)
    yield stage
    stage.end()


def test_a_client_that_dies_of_a_signal_is_replaced_and_its_ledger_kept(stage: Stage) -> None:
    stage.start()
    process = stage.process("rd-east")
    os.kill(process.pid, signal.SIGSEGV)
    assert processes.wait_ended([process], timeout_s=WAIT_S)
    stage.check()
    assert stage.said == ["client rd-east died of SIGSEGV; rd-east-life-2 takes its place"]
    assert stage.names() == ["rd-west", "rd-east-life-2"]
    assert list(stage.ledgers) == ["rd-east", "rd-west", "rd-east-life-2"]
    assert len(stage.living("producer")) == 2
    assert "rd-east-life-2" in idempotent_names()


def test_a_client_that_fails_ends_the_run(stage: Stage) -> None:
    stage.code = 1
    stage.start()
    assert processes.wait_ended([stage.process("rd-east")], timeout_s=WAIT_S)
    with pytest.raises(ChaosError, match="rd-east ended with code 1"):
        stage.check()


def test_a_client_that_was_asked_to_end_has_to_end_well(stage: Stage) -> None:
    stage.start()
    os.kill(stage.process("rd-east").pid, signal.SIGTERM)
    stage.process("rd-east").wait()
    stage._ending.add("producer")
    with pytest.raises(ChaosError, match="ended with code -15"):
        stage.check()


def test_no_client_outlives_the_end(stage: Stage) -> None:
    stage.start()
    running = [stage.process(name) for name in stage.names()]
    stage.end()
    assert all(process.returncode == -signal.SIGKILL for process in running)
