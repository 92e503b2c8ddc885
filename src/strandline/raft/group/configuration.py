"""A group's configuration: its voters, joint while they change, and the arithmetic of quorums.

Why:    elections and commits ask only "is this set a quorum?"; the answer must be the same
        everywhere.
How:    an election needs a majority of the voters; a commit needs the write quorum
        W = max(majority, min(min_insync, N)); while joint, both of the old and of the new voters.
        With a promised quorum, W is known from the version: then N - W + 1 voters hold all that was
        acknowledged, which may be fewer than would elect a leader.
Source: Raft thesis 4.3 (joint consensus); design section 6."""

from collections.abc import Collection, Mapping

import msgspec

from strandline.model.ids import BrokerId, Index

PromisedQuorum = int | msgspec.UnsetType
"""A promised `min_insync`; unset where none is, and then it takes no room where it is written."""


class Configuration(msgspec.Struct, frozen=True):
    """One configuration. `old_voters` is empty unless it is joint; observers count in no quorum.

    `version`: the number of the controller's grant that led here; 0 before any."""

    voters: tuple[BrokerId, ...]
    old_voters: tuple[BrokerId, ...] = ()
    observers: tuple[BrokerId, ...] = ()
    min_insync: int = 1
    version: int = 0
    floor: PromisedQuorum = msgspec.UNSET
    """`min_insync` never goes below it under this version, and a lease needs as many as it makes a
    write quorum: so the controller may count on it. Never set while joint."""

    def __str__(self) -> str:
        """`voters 1, 2, 3, observers 4, min.insync 2, version 5`; of a joint one both sets."""
        voters = ", ".join(map(str, self.voters))
        if self.old_voters:
            voters = f"{', '.join(map(str, self.old_voters))} and {voters}"
        observers = ", ".join(map(str, self.observers))
        text = f"voters {voters}" + (f", observers {observers}" if observers else "")
        floor = "" if self.floor is msgspec.UNSET else f", promised {self.floor}"
        return f"{text}, min.insync {self.min_insync}{floor}, version {self.version}"

    @property
    def is_joint(self) -> bool:
        """Whether both sets must agree."""
        return bool(self.old_voters)

    @property
    def all_voters(self) -> tuple[BrokerId, ...]:
        """Old and new voters, each once."""
        if not self.old_voters:
            return self.voters
        return self.voters + tuple(b for b in self.old_voters if b not in self.voters)

    @property
    def members(self) -> tuple[BrokerId, ...]:
        """All members that receive the log, each once."""
        voters = self.all_voters
        if not self.observers:
            return voters
        return voters + tuple(b for b in self.observers if b not in voters)

    def wins_election(self, granted: Collection[BrokerId]) -> bool:
        """Whether these votes elect a leader."""
        return _has_majority(self.voters, granted) and (
            not self.old_voters or _has_majority(self.old_voters, granted)
        )

    def holds_lease(self, holders: Collection[BrokerId]) -> bool:
        """Whether, while these vote for no other replica, no other can come to lead: neither by
        an election nor by an appointment of the controller, which counts on the promised quorum."""
        if not self.wins_election(holders):
            return False
        least = promised_quorum_of(self.floor)
        return not least or msgspec.structs.replace(self, min_insync=least).can_commit(holders)

    def blocks_election(self, holders: Collection[BrokerId]) -> bool:
        """Whether no replica can be elected without the vote of one of `holders`."""
        return all(
            not _has_majority(voters, [voter for voter in voters if voter not in holders])
            for voters in (self.voters, self.old_voters)
        )

    def can_commit(self, holders: Collection[BrokerId]) -> bool:
        """Whether an entry flushed on `holders` is committed."""
        return self._has_write_quorum(self.voters, holders) and (
            not self.old_voters or self._has_write_quorum(self.old_voters, holders)
        )

    def holds_commits(self, holders: Collection[BrokerId]) -> bool:
        """Whether each entry committed under this configuration, at any time, is in the log of
        at least one of `holders`, and nothing can be committed without one of them."""
        return all(
            sum(1 for voter in voters if voter not in holders) < self.write_quorum(voters)
            for voters in (self.voters, self.old_voters)
            if voters
        )

    def quorum_index(self, match: Mapping[BrokerId, Index]) -> Index:
        """The highest index that a write quorum has reached; -1 where a voter is missing in
        `match`."""
        index = self._write_quorum_index(self.voters, match)
        if self.old_voters:
            index = min(index, self._write_quorum_index(self.old_voters, match))
        return index

    def write_quorum(self, voters: tuple[BrokerId, ...]) -> int:
        """W for one set of voters."""
        return max(len(voters) // 2 + 1, min(self.min_insync, len(voters)))

    def _has_write_quorum(
        self, voters: tuple[BrokerId, ...], holders: Collection[BrokerId]
    ) -> bool:
        return sum(1 for voter in voters if voter in holders) >= self.write_quorum(voters)

    def _write_quorum_index(
        self, voters: tuple[BrokerId, ...], match: Mapping[BrokerId, Index]
    ) -> Index:
        reached = sorted([match.get(voter, Index(-1)) for voter in voters], reverse=True)
        return reached[self.write_quorum(voters) - 1] if reached else Index(-1)


def _has_majority(voters: tuple[BrokerId, ...], granted: Collection[BrokerId]) -> bool:
    return sum(1 for voter in voters if voter in granted) > len(voters) // 2


def promised_quorum_of(floor: PromisedQuorum) -> int:
    """As a number: 0 if none is promised, and the write quorum is taken to be a majority."""
    return 0 if floor is msgspec.UNSET else floor
