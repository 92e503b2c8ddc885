"""Hands every fact to every invariant, and keeps the first one that is broken.

Why:    facts arise deep inside of the code under test, which must not see the verdict: raised
        there, it might be caught, or change what happens.
Owns:   the verdict of one run.
Source: design section 10."""

from collections.abc import Callable, Sequence

from strandline.simulation.committed_offsets import GroupOffsetsMonotonic
from strandline.simulation.compacted import CompactedPrefixEqual, CompactedTablesEqual
from strandline.simulation.facts import (
    Acknowledged,
    CommitBegun,
    CommitEnded,
    IdlePassed,
    LeaderElected,
    LeaderKnown,
    LogAudited,
    MarksMoved,
    OffsetFetched,
    RecordsRead,
)
from strandline.simulation.invariants import (
    CommittedPrefixEqual,
    HeartbeatsCoalesced,
    HighWatermarkMonotonic,
    Invariant,
    InvariantError,
    LeaderCompleteness,
    LogMatching,
    NoAcknowledgedRecordLost,
    NoDuplicateFromIdempotentProducer,
    NoReadOfWhatDisappeared,
    NoStaleLeaderRead,
    NothingShownTooEarly,
    OffsetsDense,
    SingleLeaderPerEpoch,
)
from strandline.simulation.superseding import Superseding


class Checker:
    """See the module. `violation` is one line, or None while every promise holds."""

    def __init__(
        self,
        *,
        idempotent_producers: Sequence[str],
        power_fails: bool,
        has_relaxed: bool,
        key_count: int = 0,
    ) -> None:
        superseding = Superseding(key_count)
        self.violation: str | None = None
        self.on_violation: Callable[[], None] | None = None
        self.election_count = 0
        self._invariants: list[Invariant] = [
            SingleLeaderPerEpoch(),
            LeaderCompleteness(),
            *self._equality(superseding),
            OffsetsDense(superseding),
            HighWatermarkMonotonic(may_lose_relaxed=power_fails and has_relaxed),
            NothingShownTooEarly(),
            NoAcknowledgedRecordLost(superseding),
            NoReadOfWhatDisappeared(superseding, power_fails=power_fails),
            NoStaleLeaderRead(),
            NoDuplicateFromIdempotentProducer(idempotent_producers),
            HeartbeatsCoalesced(),
        ]
        self._offsets = GroupOffsetsMonotonic()

    @staticmethod
    def _equality(superseding: Superseding) -> list[Invariant]:
        """In which sense two logs of a group must be equal."""
        if superseding.is_possible:
            return [CompactedPrefixEqual(), CompactedTablesEqual(superseding)]
        return [LogMatching(), CommittedPrefixEqual()]

    def leader_known(self, fact: LeaderKnown) -> None:
        """See `facts.LeaderKnown`."""
        self._judge(lambda invariant: invariant.on_leader_known(fact))

    def leader_elected(self, fact: LeaderElected) -> None:
        """See `facts.LeaderElected`."""
        self.election_count += 1
        self._judge(lambda invariant: invariant.on_leader_elected(fact))

    def marks_moved(self, fact: MarksMoved) -> None:
        """See `facts.MarksMoved`."""
        self._judge(lambda invariant: invariant.on_marks_moved(fact))

    def acknowledged(self, fact: Acknowledged) -> None:
        """See `facts.Acknowledged`."""
        self._judge(lambda invariant: invariant.on_acknowledged(fact))

    def records_read(self, fact: RecordsRead) -> None:
        """See `facts.RecordsRead`."""
        self._judge(lambda invariant: invariant.on_records_read(fact))

    def log_audited(self, fact: LogAudited) -> None:
        """See `facts.LogAudited`."""
        self._judge(lambda invariant: invariant.on_log_audited(fact))

    def idle_passed(self, fact: IdlePassed) -> None:
        """See `facts.IdlePassed`."""
        self._judge(lambda invariant: invariant.on_idle_passed(fact))

    def moment(self) -> int:
        """Counts commits that begin or end: tells what was before what."""
        return self._offsets.moment

    def commit_begun(self, fact: CommitBegun) -> int:
        """See `facts.CommitBegun`; the number of this commit."""
        return self._offsets.on_begun(fact)

    def commit_ended(self, fact: CommitEnded) -> None:
        """See `facts.CommitEnded`."""
        self._offsets.on_ended(fact)

    def offset_fetched(self, fact: OffsetFetched) -> None:
        """See `facts.OffsetFetched`."""
        try:
            self._offsets.on_fetched(fact)
        except InvariantError as error:
            self.fail(str(error))

    def fail(self, message: str) -> None:
        """Something else went wrong that must not."""
        if self.violation is None:
            self.violation = message
            if self.on_violation is not None:
                self.on_violation()

    def _judge(self, judge: Callable[[Invariant], None]) -> None:
        for invariant in self._invariants:
            try:
                judge(invariant)
            except InvariantError as error:
                self.fail(str(error))
                return
