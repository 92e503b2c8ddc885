"""Which scopes are explored, and which are walked through at random.

Why:    what is claimed is a list that can be run again.
How:    SMALL in the tests, LARGE by `make explore`; so are LOST_SMALL and LOST_LARGE, in which some
        are declared lost. Each names one thing that the others lack. WALKED are larger than any
        that ends."""

from tests.raft.explorer.scope import Scope

SMALL = (
    Scope(voters=2, observers=0, timeouts=1, proposals=1, restarts=1, late=0, holds=1),
    Scope(voters=2, observers=0, timeouts=1, proposals=0, changes=2, grants=1, late=1),
    Scope(voters=2, observers=0, timeouts=1, proposals=0, late=0, withheld=1),
    Scope(voters=2, observers=1, timeouts=1, proposals=0, changes=1, late=0),
    Scope(voters=3, observers=0, timeouts=1, proposals=1, late=0),
    Scope(
        voters=3,
        observers=0,
        min_insync=3,
        timeouts=2,
        proposals=0,
        grants=0,
        late=0,
        lowers=2,
    ),
    Scope(
        voters=3,
        observers=0,
        min_insync=3,
        timeouts=1,
        proposals=0,
        restarts=1,
        late=0,
        lowers=1,
    ),
    Scope(voters=4, observers=0, min_insync=3, timeouts=1, proposals=0, late=0),
    Scope(
        voters=4,
        observers=0,
        min_insync=4,
        timeouts=1,
        proposals=0,
        changes=1,
        grants=0,
        late=0,
        lowers=1,
    ),
)
"""Less than a minute together."""

LARGE = (
    Scope(voters=2, observers=0, timeouts=2, proposals=1, restarts=1, late=0, holds=1),
    Scope(voters=2, observers=0, timeouts=2, proposals=0, restarts=1, late=1),
    Scope(voters=2, observers=0, timeouts=1, proposals=1, late=0, withheld=2),
    Scope(voters=2, observers=1, timeouts=1, proposals=0, late=0, withheld=2),
    Scope(voters=2, observers=1, timeouts=1, proposals=1, late=1),
    Scope(voters=2, observers=1, timeouts=1, proposals=1, changes=1, late=0),
    Scope(voters=2, observers=1, timeouts=1, proposals=0, changes=2, late=0),
    Scope(voters=2, observers=1, timeouts=1, proposals=0, grants=2, late=0),
    Scope(voters=2, observers=2, timeouts=1, proposals=0, changes=1, late=0),
    Scope(voters=3, observers=0, timeouts=2, proposals=0, late=0),
    Scope(voters=3, observers=0, timeouts=1, proposals=1, late=1),
    Scope(voters=3, observers=0, timeouts=1, proposals=0, changes=1, late=0),
    Scope(voters=3, observers=0, timeouts=1, proposals=0, grants=2, late=0),
    Scope(voters=3, observers=0, timeouts=1, proposals=0, restarts=1, late=0, holds=1),
    Scope(voters=3, observers=0, min_insync=3, timeouts=1, proposals=1, late=0, lowers=2),
    Scope(voters=3, observers=1, timeouts=1, proposals=0, late=0),
    Scope(
        voters=3,
        observers=1,
        min_insync=3,
        timeouts=2,
        proposals=0,
        changes=1,
        grants=0,
        late=0,
        lowers=1,
        together=2,
    ),
    Scope(voters=3, observers=2, timeouts=1, proposals=0, late=0, seats_observers=False),
    Scope(voters=4, observers=0, timeouts=1, proposals=1, late=0),
    Scope(voters=4, observers=0, timeouts=1, proposals=0, changes=1, late=0),
    Scope(voters=4, observers=0, min_insync=4, timeouts=1, proposals=0, late=0, lowers=1),
    Scope(voters=4, observers=0, timeouts=2, proposals=0, grants=0, late=1),
    Scope(voters=4, observers=1, timeouts=1, proposals=0, late=0, seats_observers=False),
    Scope(voters=4, observers=2, timeouts=1, proposals=0, changes=1, grants=0, late=0),
    Scope(voters=4, observers=2, timeouts=1, proposals=0, changes=2, grants=0, late=0),
    Scope(voters=4, observers=2, min_insync=4, timeouts=1, proposals=0, grants=0, late=0, lowers=2),
    Scope(voters=4, observers=2, timeouts=1, proposals=0, late=0, seats_observers=False),
    Scope(voters=4, observers=2, timeouts=1, proposals=0, changes=1, late=0, seats_observers=False),
)
"""An hour together."""

LOST_SMALL = (
    Scope(voters=3, observers=0, timeouts=1, proposals=1, grants=0, late=0, declares=1),
    Scope(voters=3, observers=0, timeouts=2, proposals=0, grants=0, late=0, declares=1),
    Scope(
        voters=2,
        observers=1,
        timeouts=1,
        proposals=1,
        grants=0,
        late=0,
        declares=1,
        seats_observers=False,
    ),
    Scope(
        voters=3,
        observers=1,
        timeouts=1,
        proposals=0,
        grants=0,
        late=0,
        declares=1,
        seats_observers=False,
    ),
)
"""Some are declared lost (`declaring`). In the tests, as SMALL."""

LOST_LARGE = (
    Scope(voters=3, observers=0, timeouts=2, proposals=1, grants=0, late=0, declares=1),
    Scope(voters=3, observers=0, timeouts=1, proposals=0, changes=1, grants=0, late=0, declares=1),
    Scope(voters=3, observers=0, timeouts=1, proposals=1, grants=0, late=1, declares=1),
    Scope(voters=3, observers=0, timeouts=1, proposals=0, grants=1, late=0, declares=1),
    Scope(
        voters=4,
        observers=0,
        min_insync=3,
        timeouts=1,
        proposals=1,
        grants=0,
        late=0,
        declares=1,
    ),
    Scope(
        voters=5,
        observers=0,
        min_insync=3,
        timeouts=1,
        proposals=0,
        grants=0,
        late=0,
        declares=1,
    ),
)

WALKED = (
    Scope(
        voters=3,
        observers=2,
        min_insync=3,
        timeouts=6,
        proposals=4,
        restarts=3,
        changes=4,
        grants=3,
        late=8,
        lowers=3,
        holds=3,
        withheld=2,
        together=2,
    ),
    Scope(
        voters=4,
        observers=2,
        min_insync=4,
        timeouts=6,
        proposals=4,
        restarts=3,
        changes=4,
        grants=3,
        late=8,
        lowers=3,
        holds=3,
        withheld=2,
        together=2,
    ),
)
