"""The rules of arbitration, each broken once: what the explorer must find.

Why:    an explorer that finds nothing proves nothing, unless it finds what is there.
Source: design section 6 (R1 to R6); the random-schedule model of the same rules."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from unittest.mock import patch

from tests.raft.explorer.space import Scope, Space

from strandline.controller.arbiter import GroupVoters
from strandline.model.ids import BrokerId, Epoch
from strandline.raft import election, messages
from strandline.raft.configuration import Configuration


class Unannounced(Space):
    """R2 broken: a leader changes voters, and the controller does not know."""

    def request(
        self, register: GroupVoters, epoch: Epoch, wanted: Configuration
    ) -> GroupVoters | None:
        return register


class StableAtOnce(Space):
    """R3 broken: what was granted is taken to be in force, and nothing before it."""

    def seat(
        self,
        register: GroupVoters,
        leader: BrokerId,
        answer: messages.Fenced,
        successor: Configuration,
    ) -> tuple[GroupVoters, messages.Seat]:
        after, seat = super().seat(register, leader, answer, successor)
        return replace(after, stable=after.granted[-1], granted=()), seat


class AnySeat(Space):
    """R4 broken: whoever answered is seated."""

    def choose(
        self, register: GroupVoters, answers: dict[BrokerId, messages.Fenced]
    ) -> list[BrokerId]:
        return list(answers) if super().choose(register, answers) else []


def _small_sets_elect() -> AbstractContextManager[object]:
    return patch.object(Configuration, "wins_election", Configuration.holds_commits)


def _anybody_stands() -> AbstractContextManager[object]:
    return patch.object(election, "grant_of", lambda epoch: 0)


@dataclass(frozen=True)
class Broken:
    """A rule that does not hold, and a scope in which that shows."""

    name: str
    scope: Scope
    space: type[Space] = Space
    patch: Callable[[], AbstractContextManager[object]] = nullcontext


BROKEN = (
    Broken(
        "R1: few elect",
        Scope(observers=0, min_insync=3, timeouts=2, proposals=0, grants=0, late=0),
        patch=_small_sets_elect,
    ),
    Broken(
        "R2: changes unannounced",
        Scope(voters=2, observers=0, timeouts=1, proposals=1, changes=1, grants=1, late=0),
        space=Unannounced,
    ),
    Broken(
        "R3: stable at once",
        Scope(observers=0, timeouts=1, proposals=1, grants=2, late=0),
        space=StableAtOnce,
    ),
    Broken(
        "R4: anybody is seated",
        Scope(observers=0, timeouts=1, proposals=1, grants=1, late=0),
        space=AnySeat,
    ),
    Broken(
        "R5: anybody stands",
        Scope(observers=0, timeouts=2, proposals=1, grants=1, late=0),
        patch=_anybody_stands,
    ),
)
