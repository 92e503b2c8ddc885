"""The groups of one partition of `__consumer_offsets`.

Why:    A broker coordinates all groups of the partitions it leads. This finds the group of each
        event. The first event that names a group creates it; an empty one is dropped.
How:    `load` once, with the groups of the log; then `step` with each event; `close` at the loss of
        leadership, which answers every open request. Queries answer at once.
Owns:   the group machines; the requests that wait for an answer. Each gets exactly one.
Source: design section 3; Kafka's group coordinator."""

from collections.abc import Callable, Mapping
from itertools import count
from uuid import UUID

from strandline.base.rng import Rng
from strandline.coordinator.answers import LeaveAnswer, LeftMember
from strandline.coordinator.descriptions import DescribedGroup, ListedGroup, describe, list_one
from strandline.coordinator.effects import Effect, Reply, Turn
from strandline.coordinator.group import Group, GroupState
from strandline.coordinator.log_records import CommittedOffset, TopicPartition
from strandline.coordinator.machine import GroupMachine, refuse
from strandline.coordinator.replay import OffsetsState
from strandline.coordinator.requests import (
    NO_MEMBER,
    CommitOffsets,
    DeleteGroup,
    DeleteOffsets,
    Event,
    ExpireOffsets,
    JoinGroup,
    LeaveGroup,
    Request,
    TopicsDeleted,
    lacks_group_id,
)
from strandline.coordinator.settings import GroupSettings
from strandline.protocol.errors import Error


class Coordinator:
    """See the module. `settings` may be replaced at any time."""

    def __init__(self, *, rng: Rng, settings: GroupSettings) -> None:
        self.settings = settings
        self._rng = rng
        self._new_ticket: Callable[[], int] = count(1).__next__
        self._machines: dict[str, GroupMachine] = {}
        self._owed: dict[int, Request] = {}
        """{token: request without an answer}"""

    def load(self, state: OffsetsState, *, now_ms: int) -> list[Effect]:
        """Begin with the groups of the log."""
        assert not self._machines
        effects: list[Effect] = []
        for group_id, loaded in state.groups.items():
            machine = self._machine(group_id)
            effects += machine.load(loaded, now_ms=now_ms, settings=self.settings)
        return effects

    def step(self, event: Event, *, now_ms: int) -> list[Effect]:
        """Handle one event; perform the effects in order. `now_ms` is wall clock time."""
        if isinstance(event, Request):
            assert event.token not in self._owed, event.token
            self._owed[event.token] = event
        effects = self._step(event, now_ms)
        for effect in effects:
            if type(effect) is Reply:
                del self._owed[effect.token]
        return effects

    def close(self, error: Error) -> list[Effect]:
        """Answer every open request, and drop all groups: another broker continues them."""
        turn = Turn(0, self.settings)
        for request in self._owed.values():
            refuse(request, error, turn)
        self._owed.clear()
        self._machines.clear()
        return turn.effects

    def expire(self, *, now_ms: int) -> list[Effect]:
        """Remove expired offsets from all groups."""
        events = [ExpireOffsets(group_id) for group_id in self._machines]
        return [effect for event in events for effect in self.step(event, now_ms=now_ms)]

    def on_topics_deleted(self, topics: Mapping[str, UUID], *, now_ms: int) -> list[Effect]:
        """These topics, {name: id}, are deleted."""
        events = [TopicsDeleted(group_id, dict(topics)) for group_id in self._machines]
        return [effect for event in events for effect in self.step(event, now_ms=now_ms)]

    # ---- queries --------------------------------------------------------------------------------

    def describe(self, group_id: str) -> DescribedGroup | None:
        """The full description of a group; None if there is no such group."""
        machine = self._machines.get(group_id)
        if machine is None or machine.group.state is GroupState.DEAD:
            return None
        return describe(machine.group)

    def list_groups(self) -> list[ListedGroup]:
        """All groups."""
        return [list_one(machine.group) for machine in self._machines.values()]

    def committed(self, group_id: str) -> dict[TopicPartition, CommittedOffset]:
        """The committed offsets of a group; empty if there is no such group."""
        machine = self._machines.get(group_id)
        return dict(machine.group.offsets) if machine is not None else {}

    # ---- inside ---------------------------------------------------------------------------------

    def _step(self, event: Event, now_ms: int) -> list[Effect]:
        if isinstance(event, Request) and lacks_group_id(event):
            return self._refuse(event, Error.INVALID_GROUP_ID)
        if event.group not in self._machines and isinstance(event, Request):
            error = _refusal_without_group(event)
            if error is not Error.NONE:
                return self._refuse(event, error)
        elif event.group not in self._machines:
            return []  # A timer or a sweep for a group that is gone.
        machine = self._machine(event.group)
        effects = machine.step(event, now_ms=now_ms, settings=self.settings)
        if machine.group.is_gone or machine.group.is_trivial:
            del self._machines[event.group]
        return effects

    def _refuse(self, request: Request, error: Error) -> list[Effect]:
        turn = Turn(0, self.settings)
        if isinstance(request, LeaveGroup) and error is Error.UNKNOWN_MEMBER_ID:
            members = tuple(
                LeftMember(one.member_id, one.instance_id, error) for one in request.members
            )
            turn.reply(request.token, LeaveAnswer(members=members))
        else:
            refuse(request, error, turn)
        return turn.effects

    def _machine(self, group_id: str) -> GroupMachine:
        machine = self._machines.get(group_id)
        if machine is None:
            group = Group(
                group_id, new_ticket=self._new_ticket, new_member_suffix=self._new_member_suffix
            )
            machine = self._machines[group_id] = GroupMachine(group)
        return machine

    def _new_member_suffix(self) -> str:
        return str(UUID(int=self._rng.getrandbits(128), version=4))


def _refusal_without_group(request: Request) -> Error:
    """The error for a request of an unknown group; NONE if it may create the group."""
    match request:
        case JoinGroup():
            known = request.member_id != NO_MEMBER
            return Error.UNKNOWN_MEMBER_ID if known else Error.NONE
        case CommitOffsets():
            # The generation of a group that is gone; without one it is a commit from outside.
            return Error.ILLEGAL_GENERATION if request.generation >= 0 else Error.NONE
        case DeleteGroup() | DeleteOffsets():
            return Error.GROUP_ID_NOT_FOUND
        case _:
            return Error.UNKNOWN_MEMBER_ID
