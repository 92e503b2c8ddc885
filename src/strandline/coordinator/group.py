"""One group: its state, its generation, its members, its committed offsets.

Why:    the phases of the protocol (joining, syncing, leaving, committing) all work on this one
        object. It has the transitions between states, and does not know the layout of requests.
How:    Empty -> PreparingRebalance -> CompletingRebalance -> Stable -> PreparingRebalance ...;
        PreparingRebalance -> Empty when no member is left; Empty -> Dead. `_MOVES` is the table.
Owns:   everything about the group. Committed records change `offsets`; members are in memory and,
        as of the last assignment, in the log.
Source: Kafka's classic group protocol."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from strandline.coordinator.effects import CancelTimer, LogRecord, Persist, SetTimer, Turn
from strandline.coordinator.log_records import CommittedOffset, TopicPartition
from strandline.coordinator.members import Member, Roster
from strandline.protocol.errors import Error

JOIN_TIMER = "join"
SYNC_TIMER = "sync"
SESSION_TIMER = "session:"


class GroupState(Enum):
    """The state of a group; the values are the words that Kafka's tools show."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


_MOVES = {
    GroupState.EMPTY: {GroupState.PREPARING, GroupState.DEAD},
    GroupState.PREPARING: {GroupState.COMPLETING, GroupState.EMPTY},
    GroupState.COMPLETING: {GroupState.STABLE, GroupState.PREPARING},
    GroupState.STABLE: {GroupState.PREPARING},
    GroupState.DEAD: {GroupState.EMPTY},
}
"""Dead to Empty: a deletion that could not be written."""


class Pending(Protocol):
    """How a request continues once its records are committed, or have failed."""

    def on_persisted(self, group: "Group", error: Error, turn: Turn) -> None:
        """`error` is NONE when they are committed."""


@dataclass(slots=True)
class InitialDelay:
    """The first join phase of a group waits for more members while new ones come in."""

    delay_ms: int
    remaining_ms: int
    has_new_member: bool = False


class Group:
    """See the module."""

    def __init__(
        self, group_id: str, *, new_ticket: Callable[[], int], new_member_suffix: Callable[[], str]
    ) -> None:
        self.id = group_id
        self.state = GroupState.EMPTY
        self.state_since_ms = -1
        """Wall clock time of the last change of state; -1: never."""
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.roster = Roster()
        self.pending_sync: set[str] = set()
        """Members of this generation that have not asked for their assignment yet."""
        self.initial_delay: InitialDelay | None = None
        self.offsets: dict[TopicPartition, CommittedOffset] = {}
        self.commits_in_flight: Counter[TopicPartition] = Counter()
        self.is_gone = False
        """The group is gone, here and from the log."""
        self.new_member_suffix = new_member_suffix
        self._new_ticket = new_ticket
        self._pending: dict[int, Pending] = {}
        """{ticket: what waits for it}, in log order"""

    # ---- state ----------------------------------------------------------------------------------

    def move(self, state: GroupState, turn: Turn) -> None:
        """Change state."""
        assert state in _MOVES[self.state], f"{self.state} -> {state}"
        self.state = state
        self.state_since_ms = turn.now_ms

    @property
    def can_rebalance(self) -> bool:
        """Whether a join phase can begin."""
        return self.state in (GroupState.EMPTY, GroupState.COMPLETING, GroupState.STABLE)

    @property
    def is_trivial(self) -> bool:
        """Whether it can be dropped: it is empty, here and in the log."""
        return (
            self.state is GroupState.EMPTY
            and self.generation == 0
            and not self.roster.pending
            and not self.offsets
            and not self._pending
        )

    # ---- membership -----------------------------------------------------------------------------

    def check_member(self, member_id: str, instance_id: str | None) -> Error:
        """Whether this is a member: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID or NONE."""
        if instance_id is None:
            known = self.roster.get(member_id) is not None
            return Error.NONE if known else Error.UNKNOWN_MEMBER_ID
        current = self.roster.static_member_id(instance_id)
        if current is None:
            return Error.UNKNOWN_MEMBER_ID
        return Error.NONE if current == member_id else Error.FENCED_INSTANCE_ID

    def supports(self, protocol_type: str, names: tuple[str, ...]) -> bool:
        """Whether the present members share a protocol with this one."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(names)
        return self.protocol_type == protocol_type and self.roster.supports_any(names)

    # ---- effects --------------------------------------------------------------------------------

    def set_timer(self, turn: Turn, name: str, delay_ms: int) -> None:
        """Start a timer of this group, or start it anew."""
        turn.effects.append(SetTimer(self.id, name, delay_ms))

    def cancel_timer(self, turn: Turn, name: str) -> None:
        """Stop a timer of this group."""
        turn.effects.append(CancelTimer(self.id, name))

    def restart_session(self, turn: Turn, member: Member, delay_ms: int | None = None) -> None:
        """Begin the member's session anew: it sent a request, or its wait is over."""
        delay = member.session_timeout_ms if delay_ms is None else delay_ms
        self.set_timer(turn, SESSION_TIMER + member.id, delay)

    def end_session(self, turn: Turn, member_id: str) -> None:
        """Watch this member no longer."""
        self.cancel_timer(turn, SESSION_TIMER + member_id)

    def persist(self, turn: Turn, records: tuple[LogRecord, ...], then: Pending) -> None:
        """Write records; `then` continues with the result."""
        ticket = self._new_ticket()
        self._pending[ticket] = then
        turn.effects.append(Persist(self.id, ticket, records))

    def on_persisted(self, ticket: int, error: Error, turn: Turn) -> None:
        """Continue with the result of a write."""
        self._pending.pop(ticket).on_persisted(self, error, turn)

    @property
    def waiting_writes(self) -> list[Pending]:
        """The continuations that wait for the log, in its order."""
        return list(self._pending.values())
