"""How large a space is, and which kinds of steps it has to have.

Why:    a scope that never takes a step says nothing about it, whatever its bounds are called.
Owns:   the budgets; the names of the kinds of steps."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """Of a step. What is not replicated, or does not arrive, is a cut; nothing has to happen."""

    STAND = "stand"
    STAND_BESIDE = "stand beside another"
    """While another one is a candidate or leads: concurrent elections."""
    VOTE = "vote"
    ORDERED = "stand as ordered"
    PROPOSE = "propose"
    REPLICATE = "replicate"
    CUT_THERE = "cut, request late"
    """A round of replication is cut: it does not reach the peer now, and may never."""
    CUT_BACK = "cut, answer late"
    """The peer has it, and whoever asked does not know; it may hear of it later, or never."""
    LATE = "late message"
    HOLD = "disk holds"
    FLUSH = "disk flushes"
    RESTART = "restart"
    CRASH = "crash, losing writes"
    SHRINK = "shrink"
    RETURN = "return"
    PROMOTE = "promote"
    DEMOTE = "demote"
    WITHHOLD = "grant voters, not begun"
    BEGIN = "begin what was granted"
    KEEP = "keep the voters"
    """Under a new version, in the place of what was granted and is not wanted any more."""
    EXCHANGE = "exchange"
    """Some come and some go in one change."""
    LOWER = "lower W"
    RAISE = "raise W"
    PROMISE = "promise W"
    """Under a new version, that has a floor."""
    WITHDRAW = "withdraw what was promised"
    """Under a new version, that has none; and lower W with it."""
    REPORT = "report"
    GRANT = "grant"
    FENCE = "fence"
    CHOOSE = "choose"
    APPOINT = "appoint"
    DECLARE = "declare lost"
    DECLARE_OBSERVER = "declare lost, an observer goes on"
    COME_BACK = "come back"
    """Of who was declared lost: as one that has lost its log."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Voters are 1 .. `voters`, observers follow. The other numbers say how often at most."""

    voters: int = 3
    observers: int = 1
    min_insync: int = 2
    timeouts: int = 1
    proposals: int = 1
    restarts: int = 0
    changes: int = 0
    grants: int = 1
    late: int = 1
    """So many messages are late, or lost though the step that they belong to was taken."""
    lowers: int = 0
    """So often the write quorum is lowered or raised, or promised."""
    promises: bool = False
    """Whether leaders promise it."""
    promised: bool = False
    """Whether that was done at the beginning."""
    holds: int = 0
    """So often a disk begins to hold what is written."""
    withheld: int = 0
    """So many changes are granted and not begun then; another may be granted in their place, and
    they may be begun at any time, by any leader of that grant."""
    declares: int = 0
    """So often somebody may be declared lost (`declaring`)."""
    together: int = 1
    """So many voters come or go in one change."""
    appoints_observers: bool = True
    """Whether who never voted is fenced, and may be appointed, and vote in the successor: design
    section 6 adds observers there, the product does not."""

    def __str__(self) -> str:
        budgets = ", ".join(
            f"{name} {getattr(self, name)}" for name in BUDGETS if getattr(self, name)
        )
        together = f", {self.together} together" if self.together > 1 else ""
        together += ", W promised" if self.promised else ""
        together += ", promises" if self.promises else ""
        voters_only = "" if self.appoints_observers else ", voters appointed"
        sizes = f"{self.voters} + {self.observers}, min.insync {self.min_insync}"
        return f"{sizes}: {budgets}{together}{voters_only}"

    def kinds(self) -> frozenset[Kind]:
        """Those that must be taken somewhere in it."""
        return frozenset(self._kinds())

    def _kinds(self) -> Iterator[Kind]:
        yield from (Kind.STAND, Kind.VOTE, Kind.REPLICATE)
        if self.timeouts > 1:
            yield Kind.STAND_BESIDE
        if self.proposals:
            yield Kind.PROPOSE
        if self.late:
            yield from (Kind.CUT_THERE, Kind.CUT_BACK, Kind.LATE)
        if self.holds:
            yield from (Kind.HOLD, Kind.FLUSH)
        if self.restarts:
            yield Kind.CRASH if self.holds else Kind.RESTART
        if self.changes:
            yield Kind.SHRINK
            if self.observers:
                yield Kind.PROMOTE
        if self.changes > 1:
            yield Kind.RETURN
            if self.observers:
                yield Kind.DEMOTE
        if self.changes and self.together > 1 and self.observers:
            yield Kind.EXCHANGE
        if self.withheld:
            yield from (Kind.WITHHOLD, Kind.BEGIN)
        if self.lowers:
            yield Kind.WITHDRAW if self.promised else Kind.LOWER
        if self.lowers > 1:
            yield Kind.RAISE
        if self.lowers and self.promises and (self.lowers > 2 or not self.promised):
            yield Kind.PROMISE
        if self.grants:
            yield Kind.GRANT
        if self.declares:
            yield Kind.COME_BACK
            if self.voters > 2:  # Of two either one has all that was acknowledged.
                yield Kind.DECLARE
            if self.observers:
                yield Kind.DECLARE_OBSERVER
        if self.grants or self.declares:
            yield from (Kind.FENCE, Kind.CHOOSE, Kind.APPOINT, Kind.REPORT)


BUDGETS = (
    "timeouts",
    "proposals",
    "restarts",
    "changes",
    "grants",
    "late",
    "lowers",
    "holds",
    "withheld",
    "declares",
)
(
    TIMEOUTS,
    PROPOSALS,
    RESTARTS,
    CHANGES,
    GRANTS,
    LATE,
    LOWERS,
    HOLDS,
    WITHHELD,
    DECLARES,
) = range(len(BUDGETS))
