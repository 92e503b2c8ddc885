"""Takes faults away from a failing run for as long as it still fails in the same way.

Why:    of a hundred faults two or three matter; only those explain it.
How:    halves are left out first, then quarters, down to single faults, again and again until none
        can go (Zeller's delta debugging, with the promise that was broken as the test).
Source: "Simplifying and Isolating Failure-Inducing Input" (TSE 2002)."""

from collections.abc import Callable
from dataclasses import replace

from strandline.simulation.scenarios.scenario import PlannedFault, Scenario


def shrink(
    scenario: Scenario,
    violation: str,
    run: Callable[[Scenario], str | None],
    *,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Scenario:
    """The scenario with as few faults as still break the promise named in `violation`.

    `run` gives the violation of a run; `on_progress` is told how many faults are left."""
    name = violation.partition(":")[0]

    def still_fails(faults: tuple[PlannedFault, ...]) -> bool:
        found = run(replace(scenario, faults=faults))
        return found is not None and found.partition(":")[0] == name

    faults = scenario.plan_faults()
    size = max(1, len(faults) // 2)
    while faults:
        for start in range(0, len(faults), size):
            fewer = faults[:start] + faults[start + size :]
            if still_fails(fewer):
                faults = fewer
                on_progress(len(faults))
                size = max(1, min(size, len(faults) // 2))
                break
        else:
            if size == 1:
                break
            size //= 2
    return replace(scenario, faults=faults)
