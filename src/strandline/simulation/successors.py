"""What must hold of groups that the controller lets go on without a majority.

Why:    who was left behind may live, serve clients that reach it, and know nothing of a successor.
How:    told of elections and of marks; see `simulation.invariants`.
Source: design section 6, 2; decisions 0016 and 0020."""

from strandline.model.ids import BrokerId, Epoch, GroupId, Index, first_epoch, grant_of
from strandline.simulation.facts import LeaderElected, MarksMoved, Subject
from strandline.simulation.invariants import Invariant


class AtMostOneSuccessor(Invariant):
    """One broker at most is seated by a grant, and from then on nobody who leads by an earlier one
    commits anything."""

    def __init__(self) -> None:
        self._seated: dict[tuple[GroupId, int], BrokerId] = {}
        self._grants: dict[GroupId, int] = {}
        """{group: the last grant by which somebody leads}"""
        self._led: dict[tuple[GroupId, BrokerId], Epoch] = {}
        """{(group, broker): the epoch that it was elected in last}"""
        self._commits: dict[tuple[GroupId, BrokerId], Index] = {}

    def on_leader_elected(self, fact: LeaderElected) -> None:
        """Somebody is seated, or elected."""
        grant = grant_of(fact.epoch)
        self._led[fact.group, fact.broker] = fact.epoch
        self._grants[fact.group] = max(self._grants.get(fact.group, 0), grant)
        if grant and fact.epoch == first_epoch(grant):
            seated = self._seated.setdefault((fact.group, grant), fact.broker)
            if seated != fact.broker:
                raise self.broken(
                    f"group {fact.group}: grant {grant} seats {seated} and {fact.broker}",
                    Subject(fact.group),
                )

    def on_marks_moved(self, fact: MarksMoved) -> None:
        """What a leader commits after another one was seated by a later grant was committed by
        nobody else."""
        key = fact.group, fact.broker
        before, self._commits[key] = self._commits.get(key), fact.commit
        grant = self._grants.get(fact.group, 0)
        if before is None or fact.commit <= before or self._led.get(key) != fact.epoch:
            return
        if grant_of(fact.epoch) < grant:
            raise self.broken(
                f"group {fact.group}: broker {fact.broker} commits up to {fact.commit} in epoch "
                f"{fact.epoch}, after grant {grant} was taken",
                Subject(fact.group),
            )
