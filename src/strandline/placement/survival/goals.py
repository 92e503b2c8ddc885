"""Whether `survive` holds for a placement; a goal that does not hold comes with the proof.

Source: decision 0008."""

from collections.abc import Iterable

import msgspec

from strandline.model.ids import BrokerId
from strandline.placement.policy.document import Goal
from strandline.placement.policy.goals import format_goal
from strandline.placement.survival.replicas import Placement


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
