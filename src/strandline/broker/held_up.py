"""Grants that cannot begin: for how long each is waited for, and whether that was said.

Why:    others take the place of one that cannot begin, and until then it is counted on in an
        outage; but what is withdrawn at once whenever who is to come is out of step for a moment
        may never begin.
How:    a grant is waited for `HELD_UP_MS`; for twice as long each time that the same one was
        wanted still, and withdrawn. Its turn ends when it begins.
Owns:   since when each group's last grant is held up here, and how often it was in vain.
Source: decision 0029."""

from dataclasses import dataclass

from strandline.base.clock import Clock
from strandline.model.cluster import Partition, Roles
from strandline.model.ids import GroupId

HELD_UP_MS = 2_000
"""So long a grant cannot be begun before another one is asked for in its place."""
DOUBLINGS_MAX = 6


@dataclass(slots=True)
class _Held:
    version: int
    since_ms: int
    is_told: bool = False


class HeldUp:
    """See the module; one per broker."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[GroupId, _Held] = {}
        # {group: (what was wanted still, how often its grant was withdrawn)}
        self._vain: dict[GroupId, tuple[Roles, int]] = {}

    def is_due(self, partition: Partition) -> bool:
        """Whether the last grant, which cannot be begun now, could not for long enough."""
        now, version = self._clock.monotonic_ms(), partition.last_version
        held = self._held.get(partition.group)
        if held is None or held.version != version:
            held = self._held[partition.group] = _Held(version, now)
        return now - held.since_ms >= HELD_UP_MS << min(self._times(partition), DOUBLINGS_MAX)

    def note_due(self, partition: Partition) -> bool:
        """Another grant is asked for in its place; whether that is so for the first time."""
        held = self._held[partition.group]
        if held.is_told:
            return False
        held.is_told = True
        if partition.granted.is_alike(partition.wanted):
            self._vain[partition.group] = partition.granted, self._times(partition) + 1
        return True

    def note_begun(self, partition: Partition) -> None:
        """The last grant has begun."""
        self._held.pop(partition.group, None)
        if self._times(partition):
            del self._vain[partition.group]

    def forget(self, group: GroupId) -> None:
        """It is not led here any more."""
        self._held.pop(group, None)
        self._vain.pop(group, None)

    def _times(self, partition: Partition) -> int:
        granted, count = self._vain.get(partition.group, (partition.granted, 0))
        return count if granted.is_alike(partition.granted) else 0
