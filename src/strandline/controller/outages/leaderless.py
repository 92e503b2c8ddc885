"""Which partitions have no leader, by the reports of all their hosts. Pure.

Why:    a leader that has lost its quorum lives on and stops leading; only the brokers with a
        replica know that.
How:    Brokers name those of their partitions of which they know no leader. A partition has none if
        each of its hosts has named it twice in a row or is silent. A host that is only cut off from
        the controller, or has not reported yet, may know a leader.
Owns:   each broker's last two reports; on the active controller.
Source: design section 8."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from strandline.model.cluster import Partition
from strandline.model.ids import BrokerId, GroupId

_NOTHING: frozenset[GroupId] = frozenset()


class _Reported(NamedTuple):
    at_ms: int
    last: frozenset[GroupId]
    twice: frozenset[GroupId]
    """The part of `last` that the report before named, too: an election takes less than that."""


class Leaderless:
    """See the module. `valid_ms`: for how long an answer counts."""

    def __init__(self, valid_ms: int) -> None:
        self._valid_ms = valid_ms
        self._reported: dict[BrokerId, _Reported] = {}
        # (version of the state, silent brokers), and the groups that only these host.
        self._dead_for: tuple[int, frozenset[BrokerId]] = -1, frozenset()
        self._dead: frozenset[GroupId] = _NOTHING

    @property
    def is_suspected(self) -> bool:
        """Whether a broker has named any."""
        return any(one.last for one in self._reported.values())

    def note(self, broker: BrokerId, now_ms: int, named: Collection[GroupId]) -> None:
        """Take a broker's report."""
        last = frozenset(named)
        before = self._reported.get(broker)
        is_next = before is not None and now_ms - before.at_ms < self._valid_ms
        twice = last & before.last if before is not None and is_next else _NOTHING
        self._reported[broker] = _Reported(now_ms, last, twice)

    def found(
        self,
        now_ms: int,
        groups: Mapping[GroupId, Partition],
        *,
        version: int,
        silent: frozenset[BrokerId],
    ) -> list[GroupId]:
        """Those without a leader. `groups`: those of the state of this `version`."""
        named = {
            broker: reported.twice
            for broker, reported in self._reported.items()
            if now_ms - reported.at_ms < self._valid_ms
        }
        suspects = _NOTHING.union(*named.values()) - self._dead_of(groups, version, silent)
        return sorted(self._dead) + [
            group
            for group in sorted(suspects)
            if group in groups
            and all(
                one in silent or group in named.get(one, _NOTHING) for one in groups[group].hosts
            )
        ]

    def _dead_of(
        self, groups: Mapping[GroupId, Partition], version: int, silent: frozenset[BrokerId]
    ) -> frozenset[GroupId]:
        """The groups that only these brokers host. Cached: there may be thousands."""
        if (version, silent) != self._dead_for:
            self._dead_for = version, silent
            self._dead = frozenset(
                group for group, one in groups.items() if silent and silent.issuperset(one.hosts)
            )
        return self._dead
