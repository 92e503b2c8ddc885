"""The command: `python -m strandline.simulation --seed N --runs M`.

Why:    one command finds a failing seed, and one command replays it.
How:    with one run the whole trace is written to standard output, and what the brokers log with
        it; with several only what they amount to, and of the first failure the end of its trace.
Source: design section 10."""

import logging
from typing import Annotated

import typer
from rich.console import Console

from strandline.simulation.swarm import Outcome, Total, command, run_seed

EXCERPT_LINES = 40


def main(
    seed: Annotated[int, typer.Option(help="The first seed.")] = 1,
    runs: Annotated[int, typer.Option(min=1, help="How many seeds, one after the other.")] = 1,
    trace: Annotated[
        bool | None, typer.Option(help="Write the whole trace; on by default for a single run.")
    ] = None,
) -> None:
    """Run simulated clusters; the exit code is 1 as soon as a promise is broken."""
    console = Console(highlight=False, soft_wrap=True, markup=False)
    total = Total()
    is_traced = runs == 1 if trace is None else trace
    for number in range(seed, seed + runs):
        outcome = run_seed(number, log_level=logging.INFO if is_traced else logging.WARNING)
        total.add(outcome.tally)
        if is_traced:
            console.print("\n".join(outcome.trace))
        if outcome.violation is not None:
            _report(console, outcome, is_traced=is_traced)
            raise typer.Exit(1)
    console.print("\n".join(total.lines()))


def _report(console: Console, outcome: Outcome, *, is_traced: bool) -> None:
    if not is_traced:
        console.print("\n".join(outcome.trace[-EXCERPT_LINES:]))
    console.print(f"seed {outcome.seed}: {outcome.violation}")
    console.print(f"replay: {command(outcome.seed)}")


if __name__ == "__main__":
    typer.run(main)
