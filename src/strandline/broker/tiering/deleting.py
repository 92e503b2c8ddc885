"""Which removals of a bucket are due: their grace is over.

Why:    a reader may still be at an object that was retired, and an upload that was given up may
        still arrive. The grace is longer than both.
How:    The time of a removal is that of its leader's wall clock, which may be wrong by hours. So
        the present leader waits, too: for the grace since it saw the removal first, by its own
        monotonic clock. A new leader begins the grace anew.
Source: decisions 0057 and 0059."""

from collections.abc import Collection, Iterable

from strandline.tiered.state.commands import Removal

DELETED_AT_ONCE_MAX = 500
"""Objects of one deletion, and names of one Forget."""


class SeenRemovals:
    """Since when, by its monotonic clock, a leader knows the removals of a bucket."""

    def __init__(self) -> None:
        self._since_ms: dict[str, int] = {}

    def note(self, names: Collection[str], *, now_ms: int) -> None:
        """These are all that there are now."""
        self._since_ms = {one: self._since_ms.get(one, now_ms) for one in names}

    def settled(self, names: Iterable[str], *, before_ms: int) -> list[str]:
        """Those that were known at that time."""
        return [one for one in names if self._since_ms[one] <= before_ms]


def due_removals(
    removals: Iterable[Removal], *, now_ms: int, grace_ms: int
) -> tuple[list[str], int | None]:
    """(the names whose grace is over, when the next one's is; None for none). Wall times."""
    names: list[str] = []
    next_ms: int | None = None
    for removal in removals:
        due_ms = removal.at_ms + grace_ms
        if due_ms <= now_ms and len(names) < DELETED_AT_ONCE_MAX:
            names.append(removal.name)
        elif next_ms is None or due_ms < next_ms:
            next_ms = max(due_ms, now_ms)
    return names, next_ms
