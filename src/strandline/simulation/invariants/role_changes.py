"""Counts how often votes and roles have changed in a run.

Why:    a swarm that never promotes, fences or appoints a replica would find nothing, and look
        green.
How:    the checker reports each record of the controller's log once.
Owns:   the counts of one run.
Source: docs/decisions/0016, 0020, 0025 and 0027."""

from collections import Counter

from strandline.model.ids import BrokerId, Epoch, GroupId, Index, first_epoch, grant_of
from strandline.simulation.invariants.facts import ConfigurationCommitted, VotersRecorded
from strandline.simulation.scenarios.scenario import Scenario

KINDS = (
    "promotions",
    "demotions",
    "leavings",
    "returns",
    "grants",
    "fences",
    "appointments",
    "lowerings",
    "declarations",
)


def above_majority(scenario: Scenario) -> frozenset[GroupId]:
    """Groups whose `min.insync.replicas` is above a majority in the whole run."""
    changed = {one.group for one in scenario.changes if one.min_insync}
    return frozenset(
        plan.group
        for plan in scenario.groups
        if plan.min_insync > len(plan.voters) // 2 + 1 and plan.group not in changed
    )


class RoleChanges:
    """See the module. `counts`: {one of `KINDS`: how often}."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._fenced: set[tuple[GroupId, BrokerId, Epoch]] = set()
        self._lowered: set[tuple[GroupId, Index]] = set()
        self.above_majority: frozenset[GroupId] = frozenset()
        """Groups whose write quorum is above a majority while no broker is lost; the world sets
        this."""

    def note(self, fact: VotersRecorded) -> None:
        """Count the changes of this record."""
        if fact.what == "grant":
            self.counts["grants"] += 1
        elif fact.what == "appointed":
            self.counts["appointments"] += 1
        elif fact.what == "declared":
            self.counts["declarations"] += 1
        if fact.what != "granted":
            return
        before, after = set(fact.possible[-2]), set(fact.possible[-1])
        for broker in after - before:
            self.counts["returns" if broker in fact.own else "promotions"] += 1
        for broker in before - after:
            self.counts["leavings" if broker in fact.own else "demotions"] += 1

    def note_configuration(self, fact: ConfigurationCommitted) -> None:
        """Count a write quorum that was lowered to a majority."""
        key = fact.group, fact.index
        if fact.group in self.above_majority and fact.configuration.min_insync == 1:
            self.counts["lowerings"] += key not in self._lowered
            self._lowered.add(key)

    def note_epoch(self, broker: BrokerId, group: GroupId, epoch: Epoch) -> None:
        """A replica is in this epoch; if it is the first one of a grant, the replica is fenced."""
        key = group, broker, epoch
        if grant_of(epoch) and epoch == first_epoch(grant_of(epoch)) and key not in self._fenced:
            self._fenced.add(key)
            self.counts["fences"] += 1
