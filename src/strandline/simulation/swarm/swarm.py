"""Runs many seeds, adds up what happened, and prints the command that repeats a failure.

Why:    a single history proves little; thousands of new ones find what no person thought of.
How:    each seed is a scenario, a world and a verdict. Runs share nothing, so they use as many
        processes as there are cores. Outcomes come in the order of the scenarios. Garbage is
        collected between two runs: a run has few cycles, and collecting all the time costs a tenth.
Source: design section 10."""

import gc
import hashlib
import logging
import multiprocessing
import shlex
import signal
import sys
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.pool import Pool
from pathlib import Path
from typing import overload

from strandline.simulation.invariants.facts import Subject
from strandline.simulation.invariants.role_changes import KINDS
from strandline.simulation.scenarios.scenario import Scenario
from strandline.simulation.swarm.families import DRAWS, Swarm
from strandline.simulation.swarm.variations import draw
from strandline.simulation.world.tally import Tally
from strandline.simulation.world.trace import LogIntoTrace
from strandline.simulation.world.world import World

US_PER_HOUR = 3_600_000_000
ROTATED_BLOCKS = 100_000
ROTATED_BLOCK_SEEDS = 1_000
"""A share begins at one of so many blocks of seeds, so far apart."""


def rotated(text: str) -> int:
    """The seed at which the share of a tree of files begins; the same for the same text, always."""
    block = int(hashlib.sha256(text.encode()).hexdigest()[:12], 16) % ROTATED_BLOCKS
    return 1 + block * ROTATED_BLOCK_SEEDS


class Drawn(Sequence[Scenario]):
    """The scenarios of seeds, each drawn when it is asked for: there may be a hundred thousand."""

    def __init__(self, seeds: range, swarm: Swarm) -> None:
        self._seeds = seeds
        self._draw = DRAWS[swarm]

    def __len__(self) -> int:
        return len(self._seeds)

    @overload
    def __getitem__(self, at: int) -> Scenario: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Scenario]: ...

    def __getitem__(self, at: int | slice) -> Scenario | Sequence[Scenario]:
        seeds = self._seeds[at]
        return self._draw(seeds) if isinstance(seeds, int) else [*map(self._draw, seeds)]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one seed ended. `violation` is one line, or None; `subject` what it is about."""

    seed: int
    violation: str | None
    trace: list[str]
    digest: str
    tally: Tally
    subject: Subject


@dataclass(slots=True)
class Total:
    """The sum over many runs."""

    run_count: int = 0
    tally: Tally = field(default_factory=Tally)

    def add(self, tally: Tally) -> None:
        """Add one run."""
        self.run_count += 1
        for name in Tally.__slots__:
            total, one = getattr(self.tally, name), getattr(tally, name)
            if not isinstance(one, dict):
                setattr(self.tally, name, total + one)
                continue
            for kind, count in one.items():
                total[kind] = total.get(kind, 0) + count

    def _roles(self) -> list[str]:
        """What became of voters and observers, where any may change."""
        counts = self.tally.role_counts
        return [", ".join(f"{counts.get(kind, 0)} {kind}" for kind in KINDS)] if counts else []

    def lines(self) -> list[str]:
        """For people."""
        tally = self.tally
        faults = sorted(tally.fault_counts.items(), key=lambda item: (-item[1], item[0]))
        return [
            f"{self.run_count} runs, {tally.virtual_us / US_PER_HOUR:.2f} simulated hours, "
            f"{tally.event_count} events, {tally.message_count} messages",
            f"{tally.acknowledged_count} batches acknowledged, {tally.read_count} records read, "
            f"{tally.near_count} of them from who is near, "
            f"{tally.election_count} elections, {tally.start_count} starts, "
            f"{tally.commit_count} offsets committed, {tally.generation_count} shares of a "
            f"group, {tally.lost_write_count} writes lost or torn, "
            f"{tally.superseded_count} records superseded, {tally.table_count} tables read, "
            f"{tally.deletion_count} deletions, "
            f"{tally.move_count} moves, {tally.balance_count} by the balancer, "
            f"{tally.ruling_count} rulings of zones, "
            f"{tally.declared_count} losses declared, by which {tally.given_up_count} records "
            "that were acknowledged are gone, "
            f"{tally.damage_count} damaged logs found",
            *self._roles(),
            f"{sum(tally.fault_counts.values())} faults: "
            + ", ".join(f"{count} {kind}" for kind, count in faults)
            + f"; {tally.void_fault_count} more found nothing to strike",
        ]


def run_seed(seed: int, *, log_level: int = logging.WARNING) -> Outcome:
    """Run one seed from beginning to verdict. `log_level`: what of the product's log is traced."""
    return run_scenario(draw(seed), log_level=log_level)


def run_scenario(scenario: Scenario, *, log_level: int = logging.WARNING) -> Outcome:
    """Run a scenario from beginning to verdict."""
    world = World(scenario)
    with LogIntoTrace(world.trace, log_level) as log:
        violation = world.run()
    if violation is None and log.unexpected:
        violation = f"NoUnexpectedError: {log.unexpected[0]}"
    trace = world.trace
    return Outcome(
        scenario.seed, violation, trace.lines, trace.digest(), world.tally, world.checker.subject
    )


def run_all(
    scenarios: Iterable[Scenario], *, processes: int, log_level: int, keeps_traces: bool
) -> Generator[Outcome, None, None]:
    """Run scenarios side by side; their outcomes in order. Traces of runs that keep every promise
    are dropped unless `keeps_traces`.

    Who needs no more of them closes the iterator: what is under way ends then."""
    run = partial(_run_one, log_level=log_level, keeps_traces=keeps_traces)
    gc.freeze()  # Else the collection after each run goes through all modules: a sixth of its time.
    try:
        if processes == 1:
            yield from map(run, scenarios)
            return
        with _pool(processes) as pool:
            yield from pool.imap(run, scenarios)
    finally:
        gc.unfreeze()


def _pool(processes: int) -> Pool:
    """It ends its processes by SIGTERM, and waits for them: it would for ever, where what they
    inherit ignores it, or raises where Python drops errors."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        return multiprocessing.get_context("fork").Pool(processes, _end_on_sigterm)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_on_sigterm() -> None:
    """Also by one that came before this."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _run_one(scenario: Scenario, *, log_level: int, keeps_traces: bool) -> Outcome:
    gc.disable()
    try:
        outcome = run_scenario(scenario, log_level=log_level)
    finally:
        gc.enable()
        gc.collect()
    if outcome.violation is None and not keeps_traces:
        return replace(outcome, trace=[])
    return outcome


def command(what: int | Path, *, swarm: Swarm = Swarm.USUAL) -> str:
    """What repeats the run of a seed, or of a scenario's file, as it is typed here: with the
    interpreter that runs now, which need not be the shell's `python`."""
    interpreter = Path(sys.executable)
    if interpreter.is_relative_to(Path.cwd()):
        interpreter = interpreter.relative_to(Path.cwd())
    option = "--seed" if isinstance(what, int) else "--scenario"
    is_usual = swarm is Swarm.USUAL or not isinstance(what, int)
    family = [] if is_usual else ["--swarm", swarm.value]
    module = "strandline.simulation"
    return shlex.join([str(interpreter), "-m", module, *family, option, str(what)])
