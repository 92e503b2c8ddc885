"""Explores all scopes, and walks through larger ones: `make explore`.

Why:    what the tests explore takes seconds; what is claimed took longer, and can be repeated.
How:    a row of a table for each scope: how many states and steps there are, how far the last
        state is, how long that took, and how often each kind of step was taken; or the breach, with
        a shortest way to it. A scope with more states than `--states` is explored to the depth that
        is named, and no further: that is no failure, and is said."""

import argparse
import gc
import sys
import time
from collections import Counter
from collections.abc import Mapping

from tests.raft.explorer.declaring import Declaring
from tests.raft.explorer.scope import Kind, Scope
from tests.raft.explorer.scopes import LARGE, LOST_LARGE, LOST_SMALL, SMALL, WALKED
from tests.raft.explorer.search import BreachError, Search
from tests.raft.explorer.space import Space
from tests.raft.explorer.walks import walk

STATES_MAX = 500_000
WALKS = 300
HEAD = "| scope | states | steps | depth | CPU s | steps by kind |\n|---|---|---|---|---|---|\n"


def main() -> int:
    """Explore them all; 1 where a property did not hold, or a kind of step was never taken."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--small", action="store_true", help="only what takes seconds")
    parser.add_argument("--scope", default="", help="only those with this in their names; no walks")
    parser.add_argument("--states", type=int, default=STATES_MAX, help="go no deeper above these")
    parser.add_argument("--walks", type=int, default=WALKS, help="of each of the larger scopes")
    parser.add_argument("--seed", type=int, default=1, help="of the first walk")
    chosen = parser.parse_args()
    small = *SMALL, *LOST_SMALL
    known = small if chosen.small else (*small, *LARGE, *LOST_LARGE)
    scopes = [scope for scope in known if chosen.scope in str(scope)]
    if not scopes:
        parser.error(f"no scope has {chosen.scope!r} in its name")
    gc.set_threshold(200_000, 20, 100)  # Millions of states, and nearly no garbage.
    sys.stdout.write(HEAD)
    failed = False
    for scope in scopes:
        failed |= not _explore(scope, chosen.states)
    if chosen.small or chosen.scope:
        return int(failed)
    sys.stdout.write(
        "\n| walked | walks | steps | CPU s | steps by kind |\n|---|---|---|---|---|\n"
    )
    for scope in WALKED:
        failed |= not _walk(scope, seed=chosen.seed, count=chosen.walks)
    return int(failed)


def _explore(scope: Scope, states_max: int) -> bool:
    begin = time.process_time()
    search = Search(Declaring(scope) if scope.declares else Space(scope))
    try:
        is_whole = search.explore(states_max)
    except BreachError as error:
        return _tell(f"{scope}: BREACH: {error}", is_well=False)
    depth = f"{search.depth}" if is_whole else f"all up to {search.depth}"
    _tell(
        f"| {scope} | {search.state_count:,} | {search.step_count:,} | {depth} "
        f"| {time.process_time() - begin:.0f} | {_counts(search.taken)} |"
    )
    missing = search.not_taken if is_whole else ()
    return not missing or _tell(f"{scope}: never taken: {', '.join(missing)}", is_well=False)


def _walk(scope: Scope, *, seed: int, count: int) -> bool:
    begin = time.process_time()
    try:
        done = walk(scope, seed=seed, count=count)
    except BreachError as error:
        return _tell(f"{scope}: BREACH: {error}", is_well=False)
    _tell(
        f"| {scope} | {done.count:,} | {done.step_count:,} | {time.process_time() - begin:.0f} "
        f"| {_counts(done.taken)} |"
    )
    missing = scope.kinds() - done.taken.keys()
    return not missing or _tell(f"{scope}: never taken: {', '.join(missing)}", is_well=False)


def _counts(taken: Mapping[Kind, int]) -> str:
    return ", ".join(f"{kind} {count:,}" for kind, count in Counter(taken).most_common())


def _tell(line: str, *, is_well: bool = True) -> bool:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
    return is_well


if __name__ == "__main__":
    sys.exit(main())
