"""Which removals of a bucket are due: their grace is over.

Why:    a reader may still be at an object that was retired, and an upload that was given up may
        still arrive. The grace is longer than both.
Source: decisions 0057 and 0059."""

from collections.abc import Iterable

from strandline.tiered.state.commands import Removal

DELETED_AT_ONCE_MAX = 500
"""Objects of one deletion, and names of one Forget."""


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
