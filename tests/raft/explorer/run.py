"""Explores scopes of growing size: `make explore`.

Why:    what the tests explore takes seconds; what is claimed took longer, and can be repeated.
How:    one line for each scope: how many states and steps there are, of how many states and steps
        of replicas; or the breach, with a shortest way to it."""

import argparse
import sys
import time

from tests.raft.explorer.space import BreachError, Scope, Space

SMALL = (
    Scope(voters=2, observers=0, timeouts=1, proposals=1, changes=1, grants=1, late=0),
    Scope(voters=2, observers=0, timeouts=2, proposals=1, restarts=1, grants=1, late=0),
    Scope(voters=2, observers=1, timeouts=1, proposals=0, changes=1, grants=1, late=0),
    Scope(voters=2, observers=1, timeouts=1, proposals=1, grants=1, late=0),
    Scope(voters=3, observers=0, timeouts=1, proposals=1, grants=1, late=0),
)
"""Within a minute together."""

LARGE = (
    Scope(voters=2, observers=0, timeouts=2, proposals=1, restarts=1, grants=1, late=1),
    Scope(voters=2, observers=1, timeouts=1, proposals=1, grants=1, late=1),
    Scope(voters=2, observers=1, timeouts=1, proposals=1, changes=1, grants=1, late=0),
    Scope(voters=2, observers=1, timeouts=2, proposals=0, changes=1, grants=1, late=0),
    Scope(voters=2, observers=1, timeouts=1, proposals=0, grants=2, late=0),
    Scope(voters=2, observers=2, timeouts=1, proposals=0, changes=1, grants=1, late=0),
    Scope(voters=3, observers=0, timeouts=2, proposals=0, grants=1, late=0),
    Scope(voters=3, observers=0, timeouts=1, proposals=0, changes=1, grants=1, late=0),
    Scope(voters=3, observers=0, timeouts=1, proposals=1, grants=1, late=1),
    Scope(voters=3, observers=0, timeouts=1, proposals=0, grants=2, late=0),
    Scope(voters=3, observers=0, min_insync=3, timeouts=2, proposals=0, grants=1, late=0),
    Scope(voters=3, observers=1, timeouts=1, proposals=0, grants=1, late=0),
    Scope(voters=4, observers=0, min_insync=3, timeouts=1, proposals=0, grants=1, late=0),
)

STATES_MAX = 20_000_000


def main() -> int:
    """Explore them all; 1 where a property did not hold or a scope was too large."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--small", action="store_true", help="only what takes seconds")
    parser.add_argument("--states", type=int, default=STATES_MAX, help="give a scope up above")
    chosen = parser.parse_args()
    failed = False
    for scope in SMALL if chosen.small else (*SMALL, *LARGE):
        begin = time.process_time()
        space = Space(scope)
        try:
            is_whole = space.explore(chosen.states)
            outcome = "every property holds" if is_whole else "not all of it"
        except BreachError as error:
            is_whole, outcome = False, f"BREACH: {error}"
        failed |= not is_whole
        sys.stdout.write(
            f"{scope}: {outcome}; {len(space.ways):,} states, {space.transition_count:,} steps, of "
            f"{len(space.replicas.views):,} states and {space.replicas.step_count:,} steps of "
            f"replicas; {time.process_time() - begin:.0f} CPU s\n"
        )
        sys.stdout.flush()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
