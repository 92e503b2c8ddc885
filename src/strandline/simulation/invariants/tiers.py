"""The state of a partition's tier is one, and a log gives up only what it says is in buckets.

Why:    a replica with another state would serve the wrong objects, or remove records that are in
        none.
How:    replicas show their state before each round of retention, and when a log is about to begin
        later. Two states after one marker have one lineage. No log begins above what some state has
        live, or has given up by a Retire.
Owns:   the states seen so far; one set for each run.
Source: decision 0057."""

from strandline.model.ids import GroupId, Index, Offset
from strandline.simulation.invariants.facts import DeletionAsked, LogShortened, Subject, TierSeen
from strandline.simulation.invariants.invariants import Invariant


class NothingDeletedBeforeUploaded(Invariant):
    """See the module."""

    def __init__(self) -> None:
        self._lineages: dict[tuple[GroupId, Index], bytes] = {}
        self._covered: dict[GroupId, Offset] = {}
        self._asked: dict[GroupId, Offset] = {}
        """{group: a client has asked to delete the records below}"""
        self._expired: dict[GroupId, Offset] = {}
        """{group: the total retention has let some log give up the records below}"""

    def on_deletion_asked(self, fact: DeletionAsked) -> None:
        """From now on logs may begin there."""
        self._asked[fact.group] = max(fact.before, self._asked.get(fact.group, fact.before))

    def on_tier_seen(self, fact: TierSeen) -> None:
        """The state is that of all others after the same marker."""
        known = self._lineages.setdefault((fact.group, fact.index), fact.lineage)
        if known != fact.lineage:
            raise self.broken(
                f"group {fact.group}: broker {fact.broker} has another state of the tier after the "
                f"marker at index {fact.index} than a replica had before",
                Subject(fact.group, index=fact.index),
            )
        covered = self._covered.get(fact.group, fact.covered_end)
        self._covered[fact.group] = max(covered, fact.covered_end)

    def on_log_shortened(self, fact: LogShortened) -> None:
        """The records below the new start are in buckets, or given up."""
        covered = self._covered.get(fact.group)
        expired = max(fact.expired_before, self._expired.get(fact.group, fact.expired_before))
        self._expired[fact.group] = expired
        if covered is not None and fact.start_offset > max(
            covered, expired, self._asked.get(fact.group, covered)
        ):
            raise self.broken(
                f"group {fact.group}: broker {fact.broker} lets its log begin at "
                f"{fact.start_offset}; buckets have the records up to {covered}",
                Subject(fact.group, covered),
            )
