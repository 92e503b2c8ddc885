"""A consumer group gets back the offsets that it committed.

Why:    the next owner of a partition begins at the committed offset. With an older one it reads
        records twice; with one that no member committed it may skip records.
How:    this numbers commits as they begin. A member that asks gets the last commit acknowledged
        before it asked, or one that began after that: acknowledged meanwhile, or of unknown
        outcome. It never gets an earlier one, nor a refused one.
Owns:   the commits of one run.
Source: design section 10; Kafka's group protocol: the generation fences members of the past."""

from dataclasses import dataclass

from strandline.model.ids import GroupId
from strandline.simulation.invariants.facts import CommitBegun, CommitEnded, OffsetFetched, Subject
from strandline.simulation.invariants.invariants import Invariant

NOTHING_COMMITTED = -1
NEVER = 1 << 62


@dataclass(slots=True)
class _Commit:
    """`acknowledged_at`: a moment, or NEVER so far."""

    offset: int
    acknowledged_at: int = NEVER
    is_refused: bool = False


class GroupOffsetsMonotonic(Invariant):
    """See the module."""

    def __init__(self) -> None:
        self.moment = 0
        self._commits: dict[GroupId, dict[int, _Commit]] = {}

    def on_begun(self, fact: CommitBegun) -> int:
        """A commit is sent; its number."""
        self.moment += 1
        self._commits.setdefault(fact.group, {})[self.moment] = _Commit(fact.offset)
        return self.moment

    def on_ended(self, fact: CommitEnded) -> None:
        """The group acknowledged the commit, or refused it."""
        self.moment += 1
        commit = self._commits[fact.group][fact.number]
        if fact.is_applied:
            commit.acknowledged_at = self.moment
        else:
            commit.is_refused = True

    def on_fetched(self, fact: OffsetFetched) -> None:
        """The answer is one of the possible offsets."""
        commits = self._commits.get(fact.group, {})
        last = max(
            (number for number, one in commits.items() if one.acknowledged_at <= fact.begun),
            default=0,
        )
        possible = {
            one.offset for number, one in commits.items() if number >= last and not one.is_refused
        }
        if not last:
            possible.add(NOTHING_COMMITTED)
        if fact.offset not in possible:
            raise self.broken(
                f"group {fact.group}: the consumers got offset {fact.offset}, where "
                f"{sorted(possible)} would be right",
                Subject(fact.group),
            )
