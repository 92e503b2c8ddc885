"""Which configurations may be in force in a group, and which member may lead without a majority.
Pure.

Why:    A group with fewer than its write quorum W of N voters can change nothing by itself. The
        controller can, if it keeps track of every configuration under which a write may have been,
        or may yet be, acknowledged.
How:    a register for each group, changed by compare-and-set only:

            request   the leader requests other voters: one change at a time, by the grant in force.
                      It may replace the voters granted last; these stay on the list, because their
                      change may have begun
            report    the leader has committed the last of them, in an epoch of that grant, and
                      promises a write quorum: its floor
            begin     a new grant: its epoch fences all before it
            appoint   the best log among those fenced, if they hold what was committed under each
                      configuration since the last one reported
            declare   an operator gives voters up: a new grant, in which only the remaining voters,
                      all of them, may have been in force (decision 0027)

        Leaders decide the write quorum W. The controller assumes a majority, or the stable
        configuration's floor, below which no leader goes without a new version.
        The rules are numbered as in design section 6. R1 (elections need majorities) and R5 (which
        members may stand) are the group's own: `raft.election`.
Owns:   nothing.
Source: design section 6; decision 0016; Lamport, Malkhi, Zhou, "Vertical Paxos" (2009)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import msgspec

from strandline.model.cluster import Partition
from strandline.model.ids import BrokerId, Epoch, first_epoch, grant_of
from strandline.raft.group.configuration import Configuration
from strandline.raft.messages import Appoint, Fenced


@dataclass(frozen=True, slots=True)
class GroupVoters:
    """`stable` was reported; each of `granted`, in this order, may be in force since then. Their
    `min_insync` is the write quorum that they are known to keep."""

    stable: Configuration
    granted: tuple[Configuration, ...] = ()
    grant: int = 0
    is_appointed: bool = True
    """Whether the controller has appointed the leader of the grant's first epoch."""
    needs_all: bool = False
    """Whether the voters of `stable` are those that a declared loss has left. Then an appointment
    needs all of them: fewer may lack acknowledged records."""

    @property
    def possible(self) -> tuple[Configuration, ...]:
        """Every configuration that may be in force (R3)."""
        return (self.stable, *self.granted)

    @property
    def version(self) -> int:
        """The version of the last granted configuration."""
        return self.possible[-1].version

    def request(
        self, epoch: Epoch, wanted: Configuration, *, supersedes: bool = False
    ) -> "GroupVoters | None":
        """The leader of `epoch` requests the configuration `wanted`; None if it may not (R2).

        `supersedes`: it knows the last granted one, and wants this instead. Its change may have
        begun, so it stays possible (R3) until `wanted` is reported."""
        if grant_of(epoch) != self.grant or wanted.version != self.version + 1:
            return None
        if bool(self.granted) != supersedes:
            return None
        return replace(self, granted=(*self.granted, wanted))

    def report(self, epoch: Epoch, version: int, floor: int = 0) -> "GroupVoters | None":
        """The leader of `epoch` has committed, in that epoch, past the configuration of `version`
        (R6), which has this floor; None if that changes nothing."""
        if not self.granted or grant_of(epoch) != self.grant or version != self.version:
            return None
        stable = msgspec.structs.replace(self.granted[-1], min_insync=max(floor, 1))
        return replace(self, stable=stable, granted=(), needs_all=False)

    def begin(self) -> "GroupVoters":
        """A new grant, which no member knows yet."""
        return replace(self, grant=self.grant + 1, is_appointed=False)

    def declare(self, survivors: tuple[BrokerId, ...]) -> "GroupVoters":
        """A new grant, in which only these voters are left of those before."""
        stable = Configuration(survivors, version=self.version)
        return GroupVoters(stable, (), self.grant + 1, is_appointed=False, needs_all=True)

    @property
    def epoch(self) -> Epoch:
        """The epoch that the grant opens."""
        return first_epoch(self.grant)

    def may_appoint(self, holders: Collection[BrokerId]) -> bool:
        """Whether these members, once fenced, hold every acknowledged record, and no further record
        can be acknowledged without one of them."""
        if self.needs_all and not set(self.stable.voters).issubset(holders):
            return False
        return all(one.holds_commits(holders) for one in self.possible)

    def candidates(self, answers: Mapping[BrokerId, Fenced]) -> list[BrokerId]:
        """The members that may lead: those fenced by this grant with the best log (R4), in the
        order of the answers; empty while too few have answered."""
        fenced = {
            broker: (answer.last_epoch, answer.last_index)
            for broker, answer in answers.items()
            if answer.epoch == self.epoch and not answer.lost_state
        }
        if self.is_appointed or not self.may_appoint(fenced):
            return []
        best = max(fenced.values())
        return [broker for broker, end in fenced.items() if end == best]

    def appoint(
        self, leader: BrokerId, answer: Fenced, successor: Configuration
    ) -> "tuple[GroupVoters, Appoint]":
        """Appoint `leader` with `successor`; the new register, and the message to that member."""
        assert not self.is_appointed and leader in successor.voters and not successor.is_joint
        granted = msgspec.structs.replace(successor, version=self.version + 1)
        after = replace(self, granted=(*self.granted, granted), is_appointed=True)
        return after, Appoint(self.epoch, answer.last_epoch, answer.last_index, granted)


def register_of(partition: Partition) -> GroupVoters:
    """The register, as the controller's state has it.

    `min_insync` may change without a grant, down to the floor. Without a floor this assumes a
    majority: fewer voters can never acknowledge a record, and with a larger write quorum only more
    members hold it."""
    stable, *granted = (
        Configuration(voters, version=partition.version + number)
        for number, voters in enumerate(partition.possible)
    )
    return GroupVoters(
        msgspec.structs.replace(stable, min_insync=max(partition.floor, 1)),
        tuple(granted),
        partition.grant,
        is_appointed=not partition.is_fenced,
        needs_all=partition.is_declared,
    )
