"""Whether `survive` holds for a placement; what does not hold is refused with the proof.

Source: decision 0008."""

from collections.abc import Iterable

import msgspec

from strandline.base.errors import OperatorError
from strandline.model.ids import BrokerId
from strandline.placement.policy.document import Goal, goal_levels
from strandline.placement.policy.goals import format_goal
from strandline.placement.survival.replicas import Placement
from strandline.placement.topology.labels import MissingLabel, tell_missing


class BrokenGoal(msgspec.Struct, frozen=True):
    """A goal that a placement does not meet."""

    goal: Goal
    lost: tuple[BrokerId, ...]
    """The voters that one choice of such losses takes."""
    voters: int
    write_quorum: int

    def __str__(self) -> str:
        brokers = ", ".join(str(broker) for broker in self.lost)
        return (
            f"survive {format_goal(self.goal)} does not hold: it can take the voters {brokers}, "
            f"and writes need {self.write_quorum} of {self.voters}"
        )


def broken_goals(goals: Iterable[Goal], placement: Placement) -> list[BrokenGoal]:
    """The goals that do not hold: some such loss leaves fewer voters than a write needs.

    That also keeps the data: a write quorum that is left holds every acknowledged write."""
    quorum = placement.quorum
    broken = []
    for goal in goals:
        mask = placement.lost_by(goal)
        if mask.bit_count() >= quorum.stops_at:
            lost = tuple(one.broker for bit, one in enumerate(placement.voters) if mask >> bit & 1)
            broken.append(BrokenGoal(goal, lost, quorum.voters, quorum.write_quorum))
    return broken


def require_goals(goals: Iterable[Goal], placement: Placement) -> None:
    """Refuse a placement that does not survive what it should; raises OperatorError, one line.

    For replicas that were chosen by hand; the solver's survive by construction."""
    goals = tuple(goals)
    for level, brokers in levels_without_labels(goals, placement).items():
        (text,) = tell_missing(MissingLabel(one, level) for one in brokers)
        raise OperatorError(text)
    broken = broken_goals(goals, placement)
    if broken:
        raise OperatorError(f"{broken[0]}: choose other replicas, or ask for less")


def levels_without_labels(goals: Iterable[Goal], placement: Placement) -> dict[str, list[BrokerId]]:
    """{level: voters' brokers that do not say where they are}, for the levels of the goals."""
    levels = dict.fromkeys(level for goal in goals for level in goal_levels(goal))
    found = {level: list(placement.unlabelled(level)) for level in levels}
    return {level: brokers for level, brokers in found.items() if brokers}
