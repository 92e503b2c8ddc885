"""Nobody lets its data go while it may be needed, and nobody votes unless it was granted.

Why:    the one moment in which a cluster destroys data on purpose.
How:    committed configurations of a group are in one order, that of their places in the log. Who
        removes its replica is in none that is the last; and two that have one version have the same
        voters.
Owns:   the last committed configuration of each group that anybody told of; one set for each run.
Source: docs/decisions/0009-moving-replicas.md; design section 6, rule R2."""

from strandline.model.ids import BrokerId, GroupId, Index
from strandline.raft.configuration import Configuration
from strandline.simulation.facts import ConfigurationCommitted, ReplicaRemoved, Subject
from strandline.simulation.invariants import Invariant


class RemovedWhereStable(Invariant):
    """A broker removes its replica only once voters without it are committed."""

    def __init__(self) -> None:
        self._last: dict[GroupId, tuple[Index, Configuration]] = {}

    def on_configuration_committed(self, fact: ConfigurationCommitted) -> None:
        """Remember the last."""
        if fact.group not in self._last or fact.index >= self._last[fact.group][0]:
            self._last[fact.group] = fact.index, fact.configuration

    def on_replica_removed(self, fact: ReplicaRemoved) -> None:
        """It must not be among the voters, before or after a change under way."""
        last = self._last.get(fact.group)
        voters = fact.first_voters if last is None else last[1].all_voters
        if fact.broker in voters:
            raise self.broken(
                f"group {fact.group}: broker {fact.broker} removes its replica, a voter in {last}",
                Subject(fact.group),
            )


class OneGrantPerVersion(Invariant):
    """Where one version is committed twice, the voters are the same."""

    def __init__(self) -> None:
        self._voters: dict[tuple[GroupId, int], frozenset[BrokerId]] = {}

    def on_configuration_committed(self, fact: ConfigurationCommitted) -> None:
        """As it was seen first."""
        voters = frozenset(fact.configuration.voters)
        granted = self._voters.setdefault((fact.group, fact.configuration.version), voters)
        if voters != granted:
            raise self.broken(
                f"group {fact.group}: {fact.configuration} at index {fact.index}, where "
                f"{sorted(granted)} were granted",
                Subject(fact.group),
            )
