"""What must hold of groups that continue without a majority, by a grant of the controller.

Why:    the earlier leader may live, serve clients, and know nothing of its successor.
How:    judges by elections and marks; see `simulation.invariants`.
Source: design section 6, 2; decisions 0016 and 0020."""

from strandline.model.ids import BrokerId, Epoch, GroupId, Index, first_epoch, grant_of
from strandline.simulation.invariants.facts import LeaderElected, MarksMoved, Subject
from strandline.simulation.invariants.invariants import Invariant

TAIL_COUNT = 1_000
"""How many of the last entries of an appointed leader's log this remembers, with their epochs."""


class AtMostOneSuccessor(Invariant):
    """By one grant the controller appoints at most one broker. A leader of an earlier grant commits
    nothing that the log of that broker lacked at its appointment.

    The earlier leader may commit late: voters acknowledged an entry before they were fenced, and
    the leader reads their answers after the appointment."""

    def __init__(self) -> None:
        self._appointed: dict[tuple[GroupId, int], BrokerId] = {}
        self._begun: dict[GroupId, dict[int, dict[Index, Epoch]]] = {}
        """{group: {grant: the last entries of its first leader, and their epochs}}"""
        self._led: dict[tuple[GroupId, BrokerId], Epoch] = {}
        """{(group, broker): the epoch that it was elected in last}"""
        self._commits: dict[tuple[GroupId, BrokerId], Index] = {}

    def on_leader_elected(self, fact: LeaderElected) -> None:
        """A broker was appointed, or elected."""
        grant = grant_of(fact.epoch)
        self._led[fact.group, fact.broker] = fact.epoch
        begun = self._begun.setdefault(fact.group, {})
        if grant not in begun:
            first = max(fact.start_index, fact.last_index - TAIL_COUNT + 1)
            tail = map(Index, range(first, fact.last_index + 1))
            begun[grant] = {index: fact.epoch_of(index) for index in tail}
        if grant and fact.epoch == first_epoch(grant):
            appointed = self._appointed.setdefault((fact.group, grant), fact.broker)
            if appointed != fact.broker:
                raise self.broken(
                    f"group {fact.group}: grant {grant} appoints {appointed} and {fact.broker}",
                    Subject(fact.group),
                )

    def on_marks_moved(self, fact: MarksMoved) -> None:
        """If a later grant has appointed a leader, that leader's log had the entry too."""
        key = fact.group, fact.broker
        before, self._commits[key] = self._commits.get(key), fact.commit
        if before is None or fact.commit <= before or self._led.get(key) != fact.epoch:
            return
        for grant, tail in self._begun[fact.group].items():
            is_known = not tail or fact.commit < min(tail)
            if grant_of(fact.epoch) >= grant or is_known:
                continue
            if tail.get(fact.commit) != fact.commit_epoch:
                raise self.broken(
                    f"group {fact.group}: broker {fact.broker} commits up to {fact.commit} in "
                    f"epoch {fact.epoch}, which grant {grant} began without",
                    Subject(fact.group, index=fact.commit),
                )
