"""The rules of arbitration, each broken once: what the explorer must find.

Why:    an explorer that finds nothing proves nothing, unless it finds what is there.
Source: design section 6 (R1 to R6); decision 0020 (what holds of a smaller write quorum)."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from unittest.mock import patch

import msgspec
from tests.raft.explorer.replicas import View
from tests.raft.explorer.scope import Scope
from tests.raft.explorer.space import Space

from strandline.controller.arbitration.arbiter import GroupVoters
from strandline.model.ids import BrokerId, Epoch
from strandline.raft import messages
from strandline.raft.election import election
from strandline.raft.events import ChangeConfiguration
from strandline.raft.group.configuration import Configuration
from strandline.raft.group.membership import Membership
from strandline.raft.group.quorums import Quorums
from strandline.raft.leader import configuration_change
from strandline.raft.leader.configuration_change import ConfigurationChanges
from strandline.raft.state import RaftState

Patch = Callable[[], AbstractContextManager[object]]


class Unannounced(Space):
    """R2 broken: a leader changes voters, and the controller does not know."""

    def request(
        self, register: GroupVoters, epoch: Epoch, wanted: Configuration
    ) -> GroupVoters | None:
        return register


class SupersededForgotten(Space):
    """R3 broken: what another grant has taken the place of is taken for never begun."""

    def request(
        self, register: GroupVoters, epoch: Epoch, wanted: Configuration
    ) -> GroupVoters | None:
        after = super().request(register, epoch, wanted)
        return after if after is None else replace(after, granted=(wanted,))


class StableAtOnce(Space):
    """R3 broken: what was granted is taken to be in force, and nothing before it."""

    def appoint(
        self,
        register: GroupVoters,
        leader: BrokerId,
        answer: messages.Fenced,
        successor: Configuration,
    ) -> tuple[GroupVoters, messages.Appoint]:
        after, appointment = super().appoint(register, leader, answer, successor)
        return replace(after, stable=after.granted[-1], granted=()), appointment


class AnyAppointment(Space):
    """R4 broken: whoever answered is appointed."""

    def choose(
        self, register: GroupVoters, answers: dict[BrokerId, messages.Fenced]
    ) -> list[BrokerId]:
        return list(answers) if super().choose(register, answers) else []


class ReportedUncommitted(Space):
    """R6 broken: what is in force is reported, though it may yet be lost."""

    def may_report(self, view: View) -> bool:
        return not view.configuration.is_joint


class NeverWithdrawn(Space):
    """The controller goes by a floor that is not in force any more."""

    def report(self, register: GroupVoters, view: View) -> GroupVoters | None:
        return register.report(view.epoch, view.configuration.version, self.scope.min_insync)


class CountedAsConfigured(Space):
    """The controller goes by a write quorum that a leader has made smaller, unknown to it."""

    def counted(self, configuration: Configuration) -> Configuration:
        return configuration


def _small_sets_elect() -> AbstractContextManager[object]:
    return patch.object(Configuration, "wins_election", Configuration.holds_commits)


def _anybody_stands() -> AbstractContextManager[object]:
    return patch.object(election, "grant_of", lambda epoch: 0)


def _one_is_enough() -> AbstractContextManager[object]:
    return patch.object(Configuration, "holds_commits", lambda self, holders: bool(holders))


def _less_than_a_majority() -> AbstractContextManager[object]:
    def write_quorum(self: Configuration, voters: tuple[BrokerId, ...]) -> int:
        return min(self.min_insync, len(voters))

    return patch.object(Configuration, "write_quorum", write_quorum)


def _promises_are_broken() -> AbstractContextManager[object]:
    return patch.object(configuration_change, "promised_quorum_of", lambda floor: 0)


def _lowering_ends_a_change() -> AbstractContextManager[object]:
    as_it_is = ConfigurationChanges.on_change

    def on_change(self: ConfigurationChanges, event: ChangeConfiguration) -> None:
        leader_state = self._state.leader_state
        present = self._state.configuration
        if leader_state is None or not self._only_lowers(event):
            as_it_is(self, event)
            return
        final = msgspec.structs.replace(present, old_voters=(), min_insync=event.min_insync)
        self._leading.append_marker(leader_state, final)

    return patch.object(ConfigurationChanges, "on_change", on_change)


def _one_entry_back() -> AbstractContextManager[object]:
    def voters_before(self: Membership) -> tuple[BrokerId, ...]:
        state = self._state
        entries = state.log.configurations
        previous = entries[-2][1] if len(entries) > 1 else state.start_configuration
        return previous.all_voters

    return patch.object(Membership, "_voters_before", voters_before)


def _written_is_enough() -> AbstractContextManager[object]:
    return patch.object(Quorums, "flushed", Quorums.written)


def _votes_are_forgotten() -> AbstractContextManager[object]:
    adopt = RaftState.adopt

    def forget(self: RaftState, epoch: Epoch, *, vote: BrokerId) -> None:
        adopt(self, epoch, vote=BrokerId(-1) if vote == self.self_id else vote)

    return patch.object(RaftState, "adopt", forget)


@dataclass(frozen=True)
class Broken:
    """A rule that does not hold, and a scope in which that shows, as the breach of `found`."""

    name: str
    scope: Scope
    found: str
    space: type[Space] = Space
    patch: Patch = nullcontext


LOST = "NoAcknowledgedWriteLost"
TWO = "OneSuccessor"
OLD = "OldSideNeverAcknowledges"
NOBODY = "SomebodyMayLead"
_TINY = Scope(observers=0, proposals=0, grants=0, late=0)

BROKEN = (
    Broken(
        "R1: few elect",
        replace(_TINY, min_insync=3, timeouts=2),
        TWO,
        patch=_small_sets_elect,
    ),
    Broken(
        "R2: changes unannounced",
        replace(_TINY, voters=2, proposals=1, changes=1, grants=1),
        LOST,
        Unannounced,
    ),
    Broken(
        "R3: superseded and forgotten",
        replace(_TINY, voters=2, proposals=1, withheld=2, grants=1),
        LOST,
        SupersededForgotten,
    ),
    Broken("R3: stable at once", replace(_TINY, proposals=1, grants=2), LOST, StableAtOnce),
    Broken("R3: one is enough", replace(_TINY, grants=1), LOST, patch=_one_is_enough),
    Broken("R4: anybody is appointed", replace(_TINY, proposals=1, grants=1), LOST, AnyAppointment),
    Broken(
        "R5: anybody stands",
        replace(_TINY, timeouts=2, proposals=1, grants=1),
        OLD,
        patch=_anybody_stands,
    ),
    Broken(
        "R6: reported though uncommitted",
        replace(_TINY, grants=2),
        LOST,
        ReportedUncommitted,
    ),
    Broken(
        "W: less than a majority",
        replace(_TINY, min_insync=3, timeouts=2, lowers=1),
        OLD,
        patch=_less_than_a_majority,
    ),
    Broken(
        "W: the controller counts what is lowered",
        replace(_TINY, min_insync=3, lowers=1, grants=1),
        LOST,
        CountedAsConfigured,
    ),
    Broken(
        "W: lower than was promised",
        replace(_TINY, min_insync=3, lowers=1, grants=1, promises=True, promised=True),
        LOST,
        patch=_promises_are_broken,
    ),
    Broken(
        "W: withdrawn unannounced",
        replace(_TINY, min_insync=3, lowers=1, grants=1, promises=True, promised=True),
        LOST,
        Unannounced,
    ),
    Broken(
        "W: never withdrawn",
        replace(_TINY, min_insync=3, lowers=1, grants=1, promises=True, promised=True),
        LOST,
        NeverWithdrawn,
    ),
    Broken(
        "W: lowering ends a change",
        replace(_TINY, observers=1, min_insync=3, timeouts=2, changes=1, lowers=1, together=2),
        OLD,
        patch=_lowering_ends_a_change,
    ),
    Broken(
        "W: who had a vote does not stand behind what is lowered",
        replace(_TINY, voters=4, min_insync=3, changes=1, lowers=1),
        NOBODY,
        patch=_one_entry_back,
    ),
    Broken(
        "what is written is acknowledged",
        replace(_TINY, timeouts=2, restarts=1, holds=1),
        LOST,
        patch=_written_is_enough,
    ),
    Broken(
        "a vote for itself is not durable",
        replace(_TINY, timeouts=2, restarts=1),
        TWO,
        patch=_votes_are_forgotten,
    ),
    Broken(
        "an appointment is taken again after a restart",
        replace(_TINY, voters=2, timeouts=1, restarts=1, grants=1, holds=1),
        TWO,
        patch=_votes_are_forgotten,
    ),
)
