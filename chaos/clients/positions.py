"""How far a member of a group has read, and how much of that is committed: in memory, and for good
in its ledger.

Why:    two libraries read by the same rules; the judge must read their ledgers in the same way.
Owns:   the positions of one life: from one assignment of partitions to the next."""

from collections.abc import Iterable

from chaos.ledger import CommitBegun, CommitDone, LedgerWriter, Read, Told, now_ns

Place = tuple[str, int]
"""Topic and partition."""


class Positions:
    """See the module."""

    def __init__(self, ledger: LedgerWriter) -> None:
        self._ledger = ledger
        self._life = 0
        self._commit_count = 0
        self._read: dict[Place, int] = {}
        self._committed: dict[Place, int] = {}

    def __contains__(self, place: Place) -> bool:
        """Whether it is this member's."""
        return place in self._read

    def begin_life(self) -> None:
        """Partitions are handed out anew; `begin` names each of this member's."""
        self._life += 1
        self.forget()

    def forget(self) -> None:
        """Nothing is this member's any more."""
        self._read, self._committed = {}, {}

    def begin(self, place: Place, told: int, *, asked_ns: int) -> None:
        """The coordinator was asked where the group is, and said `told`, -1 for nowhere yet."""
        self._ledger.add(Told(asked_ns, now_ns(), self._life, *place, told))
        self._read[place] = max(told, 0)

    def note(self, place: Place, records: list[tuple[int, str]]) -> None:
        """(offset, mark) of the records that came next."""
        self._ledger.add(Read(now_ns(), self._life, *place, self._read[place], records))
        self._read[place] = records[-1][0] + 1

    def begin_commit(self) -> dict[Place, int]:
        """What was read and is not committed, which is to be committed now."""
        due = {
            place: offset
            for place, offset in self._read.items()
            if offset > self._committed.get(place, -1)
        }
        if due:
            self._commit_count += 1
        for place, offset in due.items():
            self._ledger.add(CommitBegun(now_ns(), self._commit_count, *place, offset))
        return due

    def end_commit(self, due: dict[Place, int], places: Iterable[Place]) -> None:
        """These places of the last commit were acknowledged; they may be another's meanwhile."""
        for place in places:
            self._ledger.add(CommitDone(now_ns(), self._commit_count, *place))
            if place in self._read:
                self._committed[place] = due[place]
