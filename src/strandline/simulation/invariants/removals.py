"""No replica deletes data that may be needed, and none votes without a grant.

Why:    this is the one moment in which a cluster destroys data on purpose.
How:    the log orders the committed configurations of a group. A broker that removes its replica
        must not be a voter of the last one. Two configurations of one version have the same voters.
Owns:   the last known committed configuration of each group; one set for each run.
Source: docs/decisions/0009-moving-replicas.md; design section 6, rule R2."""

from strandline.model.ids import BrokerId, GroupId, Index, grant_of
from strandline.raft.group.configuration import Configuration
from strandline.simulation.invariants.facts import (
    ConfigurationCommitted,
    LossRecorded,
    MarksMoved,
    ReplicaRemoved,
    Subject,
)
from strandline.simulation.invariants.invariants import Invariant


class RemovedWhereStable(Invariant):
    """A broker removes its replica only once voters without it are committed, or once it was
    declared lost and has no new replica yet. A lost disk has no replica."""

    def __init__(self) -> None:
        self._last: dict[GroupId, tuple[Index, Configuration]] = {}
        self._given_up: dict[tuple[GroupId, BrokerId], int] = {}
        """{(group, broker declared lost that has had no replica since): the grant}"""
        self._before: dict[GroupId, int] = {}
        """{group: the last version of its voters from before a loss was declared}"""

    def on_loss_recorded(self, fact: LossRecorded) -> None:
        """Earlier configurations do not count any more; the lost replicas begin anew."""
        declared = fact.declaration
        for broker in declared.lost:
            self._given_up[declared.group, broker] = declared.grant
        self._before[declared.group] = fact.version

    def on_configuration_committed(self, fact: ConfigurationCommitted) -> None:
        """Remember the last configuration."""
        group, configuration = fact.group, fact.configuration
        before = self._before.get(group, -1)
        last, is_new = self._last.get(group), configuration.version > before
        if last is None or (is_new, fact.index) >= (last[1].version > before, last[0]):
            self._last[group] = fact.index, configuration

    def on_marks_moved(self, fact: MarksMoved) -> None:
        """A broker that takes part by the grant, or by a later one, has begun anew."""
        grant = self._given_up.get((fact.group, fact.broker)) if self._given_up else None
        if grant is not None and grant_of(fact.epoch) >= grant:
            del self._given_up[fact.group, fact.broker]

    def on_replica_removed(self, fact: ReplicaRemoved) -> None:
        """The broker must not be a voter, before or after a change under way."""
        if not fact.has_state or (fact.group, fact.broker) in self._given_up:
            return
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
        """Compare with the first one of this version."""
        voters = frozenset(fact.configuration.voters)
        granted = self._voters.setdefault((fact.group, fact.configuration.version), voters)
        if voters != granted:
            raise self.broken(
                f"group {fact.group}: {fact.configuration} at index {fact.index}, where "
                f"{sorted(granted)} were granted",
                Subject(fact.group),
            )
