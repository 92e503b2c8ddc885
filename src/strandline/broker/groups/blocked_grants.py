"""Grants that cannot begin: for how long each is waited for, and whether that was said.

Why:    others take the place of one that cannot begin, and until then it is counted on in an
        outage; but what is withdrawn at once whenever who is to come is out of step for a moment
        may never begin.
How:    a grant is waited for `HELD_UP_MS`, where something else is wanted by now. One that is still
        wanted is waited for twice as long each time that it was withdrawn, until it begins, or was
        not withdrawn for a while.
Owns:   since when each group's last grant is held up here, and how often it was in vain.
Source: decision 0029."""

from dataclasses import dataclass

from strandline.base.clock import Clock
from strandline.model.cluster import Partition, Roles
from strandline.model.ids import GroupId

HELD_UP_MS = 2_000
"""So long a grant cannot be begun before another one is asked for in its place."""
DOUBLINGS_MAX = 6
CALM_MS = 600_000
"""Who was not withdrawn for so long is waited for as at first."""


@dataclass(slots=True)
class _Held:
    version: int
    since_ms: int
    is_told: bool = False


@dataclass(frozen=True, slots=True)
class _Vain:
    """Roles that were wanted still, and how often their grant was withdrawn until then."""

    roles: Roles
    count: int
    last_ms: int


class BlockedGrants:
    """See the module; one per broker."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[GroupId, _Held] = {}
        self._vain: dict[GroupId, _Vain] = {}

    def is_due(self, partition: Partition, *, is_still_wanted: bool = False) -> bool:
        """Whether the last grant, which cannot be begun now, could not for long enough."""
        now, version = self._clock.monotonic_ms(), partition.last_version
        held = self._held.get(partition.group)
        if held is None or held.version != version:
            held = self._held[partition.group] = _Held(version, now)
        doublings = min(self._times(partition), DOUBLINGS_MAX) if is_still_wanted else 0
        return now - held.since_ms >= HELD_UP_MS << doublings

    def note_due(self, partition: Partition, *, is_still_wanted: bool) -> bool:
        """Count that another one is asked for in its place; whether that is for the first time."""
        held = self._held[partition.group]
        if held.is_told:
            return False
        held.is_told = True
        if is_still_wanted:
            count, now = self._times(partition) + 1, self._clock.monotonic_ms()
            self._vain[partition.group] = _Vain(partition.granted, count, now)
        return True

    def note_begun(self, partition: Partition) -> None:
        """The last grant has begun."""
        self._held.pop(partition.group, None)
        if self._vain_of(partition) is not None:
            del self._vain[partition.group]

    def forget(self, group: GroupId) -> None:
        """It is not led here any more."""
        self._held.pop(group, None)
        self._vain.pop(group, None)

    def _times(self, partition: Partition) -> int:
        vain = self._vain_of(partition)
        if vain is None or self._clock.monotonic_ms() - vain.last_ms >= CALM_MS:
            return 0
        return vain.count

    def _vain_of(self, partition: Partition) -> _Vain | None:
        """What is known of its last grant."""
        vain = self._vain.get(partition.group)
        return vain if vain is not None and vain.roles.is_alike(partition.granted) else None
