"""The command: `python -m strandline.simulation --seed N --runs M`.

Why:    one command finds a failing seed, and one command replays it.
How:    a single run prints its whole trace, with the brokers' logs; several runs print their sums.
        For the first failure the command prints a report on the record or the group concerned, and
        the command that repeats it. With --rotate each tree of files runs seeds of its own, and the
        same tree runs the same seeds. With --shrink the faults of a failure are reduced to those
        that matter, and written as a scenario that --scenario runs.
Source: design section 10."""

import logging
import os
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from strandline.base.errors import OperatorError
from strandline.simulation.scenarios.scenario import Scenario
from strandline.simulation.scenarios.scenario_file import load_scenario, with_faults
from strandline.simulation.swarm.failure_report import report_failure
from strandline.simulation.swarm.families import Swarm
from strandline.simulation.swarm.shrink import shrink as reduce_faults
from strandline.simulation.swarm.swarm import (
    Drawn,
    Outcome,
    Total,
    command,
    rotated,
    run_all,
    run_scenario,
)

RUNS_MIN = 100
"""A share of seeds that a slow machine makes smaller than this shows nothing."""


def main(
    seed: Annotated[int, typer.Option(help="The first seed.")] = 1,
    runs: Annotated[int, typer.Option(min=1, help="How many seeds.")] = 1,
    processes: Annotated[
        int | None, typer.Option(min=1, help="How many at a time; one for each core by default.")
    ] = None,
    swarm: Annotated[
        Swarm, typer.Option(help="Which family of seeds; see `swarm.families`.")
    ] = Swarm.USUAL,
    rotate: Annotated[
        str, typer.Option(help="Begin at a seed that this text stands for, as a tree's hash.")
    ] = "",
    seconds: Annotated[
        int | None,
        typer.Option(min=1, help=f"Wait for no more seeds after so long, and {RUNS_MIN} of them."),
    ] = None,
    scenario: Annotated[
        Path | None, typer.Option(help="Run the scenario of this TOML file instead of a seed.")
    ] = None,
    shrink: Annotated[
        Path | None, typer.Option(help="Reduce the faults of a failure, and write them here.")
    ] = None,
    trace: Annotated[
        bool | None, typer.Option(help="Write the whole trace; on by default for a single run.")
    ] = None,
) -> None:
    """Run simulated clusters; the exit code is 1 as soon as a promise is broken."""
    console = Console(highlight=False, soft_wrap=True, markup=False)
    total = Total()
    is_traced = runs == 1 if trace is None else trace
    if rotate:
        seed = rotated(rotate)
        console.print(f"seeds from {seed} on, of {rotate}")
    begin_s = time.monotonic()
    planned = _scenarios(console, scenario, range(seed, seed + runs), swarm)
    outcomes = run_all(
        planned,
        processes=min(len(planned), processes or os.cpu_count() or 1),
        log_level=logging.INFO if is_traced else logging.WARNING,
        keeps_traces=is_traced,
    )
    with closing(outcomes):
        for one, outcome in zip(planned, outcomes, strict=True):
            total.add(outcome.tally)
            if is_traced:
                console.print("\n".join(outcome.trace))
            if outcome.violation is not None:
                again = command(one.seed if scenario is None else scenario, swarm=swarm)
                _report(console, one, outcome, again=again)
                if shrink is not None:
                    text = f'seed = {one.seed}\nswarm = "{swarm}"'
                    text = text if scenario is None else scenario.read_text()
                    _shrink(console, one, outcome.violation, text=text, path=shrink)
                raise typer.Exit(1)
            is_over = seconds is not None and time.monotonic() - begin_s >= seconds
            if is_over and total.run_count >= RUNS_MIN:
                break
    if total.run_count < len(planned):
        console.print(f"{seconds} s are over after seed {seed + total.run_count - 1}")
    console.print("\n".join(total.lines()))


def _scenarios(
    console: Console, path: Path | None, seeds: range, swarm: Swarm
) -> Sequence[Scenario]:
    if path is None:
        return Drawn(seeds, swarm)
    try:
        return [load_scenario(path)]
    except OperatorError as error:
        console.print(f"error: {error}")
        raise typer.Exit(2) from error


def _shrink(console: Console, scenario: Scenario, violation: str, *, text: str, path: Path) -> None:
    reduced = reduce_faults(
        scenario,
        violation,
        lambda candidate: run_scenario(candidate).violation,
        on_progress=lambda left: console.print(f"still fails with {left} faults"),
    )
    path.write_text(with_faults(text, reduced.plan_faults()))
    console.print(f"written: {path}")
    console.print(f"replay: {command(path)}")


def _report(console: Console, scenario: Scenario, outcome: Outcome, *, again: str) -> None:
    console.print(f"seed {outcome.seed}: {outcome.violation}")
    console.print("What happened to it:")
    console.print("\n".join(report_failure(scenario, outcome.subject)))
    console.print(f"replay: {again}")


if __name__ == "__main__":
    typer.run(main)
