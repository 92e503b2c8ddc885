"""Retries grants that cannot begin yet, with exponential back-off, and logs each one once.

Why:    until other voters take the place of a blocked grant, the controller counts on it in an
        outage. But a grant that is withdrawn at once, whenever an added broker is out of step for a
        moment, may never begin.
How:    If other voters are wanted by now, a blocked grant is replaced after `BLOCKED_MS`. If it is
        still wanted, the leader waits twice as long after each withdrawal, until the grant begins,
        or was not withdrawn for `CALM_MS`.
Owns:   since when each group's last grant is blocked here, and how often it was withdrawn.
Source: decision 0029."""

from dataclasses import dataclass

from strandline.base.clock import Clock
from strandline.model.cluster import Partition, Roles
from strandline.model.ids import GroupId

BLOCKED_MS = 2_000
"""A grant is blocked for so long before the leader asks for another one in its place."""
DOUBLINGS_MAX = 6
CALM_MS = 600_000
"""A group without a withdrawal for so long starts at `BLOCKED_MS` again."""


@dataclass(slots=True)
class _Blocked:
    version: int
    since_ms: int
    is_logged: bool = False


@dataclass(frozen=True, slots=True)
class _Withdrawn:
    """Roles that are still wanted, and how often their grant has been withdrawn."""

    roles: Roles
    count: int
    last_ms: int


class BlockedGrants:
    """See the module; one per broker."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._blocked: dict[GroupId, _Blocked] = {}
        self._withdrawn: dict[GroupId, _Withdrawn] = {}

    def is_due(self, partition: Partition, *, is_still_wanted: bool = False) -> bool:
        """Whether the last grant, which is blocked, has been so for long enough."""
        now, version = self._clock.monotonic_ms(), partition.last_version
        blocked = self._blocked.get(partition.group)
        if blocked is None or blocked.version != version:
            blocked = self._blocked[partition.group] = _Blocked(version, now)
        doublings = min(self._times(partition), DOUBLINGS_MAX) if is_still_wanted else 0
        return now - blocked.since_ms >= BLOCKED_MS << doublings

    def note_due(self, partition: Partition, *, is_still_wanted: bool) -> bool:
        """Count that the leader asks for another grant in its place; whether it does so for the
        first time."""
        blocked = self._blocked[partition.group]
        if blocked.is_logged:
            return False
        blocked.is_logged = True
        if is_still_wanted:
            count, now = self._times(partition) + 1, self._clock.monotonic_ms()
            self._withdrawn[partition.group] = _Withdrawn(partition.granted, count, now)
        return True

    def note_begun(self, partition: Partition) -> None:
        """The last grant has begun."""
        self._blocked.pop(partition.group, None)
        if self._withdrawn_of(partition) is not None:
            del self._withdrawn[partition.group]

    def forget(self, group: GroupId) -> None:
        """Another broker leads the group."""
        self._blocked.pop(group, None)
        self._withdrawn.pop(group, None)

    def _times(self, partition: Partition) -> int:
        withdrawn = self._withdrawn_of(partition)
        if withdrawn is None or self._clock.monotonic_ms() - withdrawn.last_ms >= CALM_MS:
            return 0
        return withdrawn.count

    def _withdrawn_of(self, partition: Partition) -> _Withdrawn | None:
        """The withdrawals of its last grant, if that has the same roles."""
        withdrawn = self._withdrawn.get(partition.group)
        if withdrawn is None or not withdrawn.roles.is_alike(partition.granted):
            return None
        return withdrawn
