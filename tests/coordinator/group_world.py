"""A coordinator with a virtual clock and a log that commits when the test says so."""

import random
from collections.abc import Sequence
from dataclasses import replace

from strandline.coordinator.answers import (
    Answer,
    CommitAnswer,
    DeleteAnswer,
    HeartbeatAnswer,
    JoinAnswer,
    LeaveAnswer,
    SyncAnswer,
)
from strandline.coordinator.coordinator import Coordinator
from strandline.coordinator.effects import CancelTimer, Effect, LogRecord, Persist, Reply, SetTimer
from strandline.coordinator.replay import OffsetsState
from strandline.coordinator.requests import (
    CommitOffsets,
    DeleteGroup,
    Event,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    OffsetToCommit,
    Persisted,
    SyncGroup,
    TimerFired,
)
from strandline.coordinator.settings import DEFAULT_GROUP_SETTINGS
from strandline.protocol.errors import Error

GROUP = "flights-readers"
RANGE = (("range", b"wants"),)
START_MS = 1_700_000_000_000


class World:
    """See the module. With `holds_writes`, writes wait for `settle`."""

    def __init__(self, *, holds_writes: bool = False, seed: int = 1) -> None:
        self.settings = replace(DEFAULT_GROUP_SETTINGS, initial_rebalance_delay_ms=3_000)
        self.now_ms = START_MS
        self.log: list[LogRecord] = []
        self.answers: dict[int, Answer] = {}
        self.timers: dict[tuple[str, str], int] = {}
        self.writes: list[Persist] = []
        self.holds_writes = holds_writes
        self.events: list[Event] = []
        self._token = 0
        self._seed = seed
        self.coordinator = self._new()

    def _new(self) -> Coordinator:
        return Coordinator(rng=random.Random(self._seed), settings=self.settings)

    # ---- the world ------------------------------------------------------------------------------

    def feed(self, event: Event) -> None:
        self.events.append(event)
        self.perform(self.coordinator.step(event, now_ms=self.now_ms))

    def perform(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Reply(token=token, answer=answer):
                    assert token not in self.answers, f"request {token} is answered twice"
                    self.answers[token] = answer
                case SetTimer(group=group, name=name, delay_ms=delay_ms):
                    self.timers[group, name] = self.now_ms + delay_ms
                case CancelTimer(group=group, name=name):
                    self.timers.pop((group, name), None)
                case Persist():
                    self.writes.append(effect)
        if not self.holds_writes:
            self.settle()

    def settle(self, error: Error = Error.NONE, *, count: int | None = None) -> None:
        """Commit what waits to be written, or fail it."""
        for _ in range(len(self.writes) if count is None else count):
            write = self.writes.pop(0)
            if error is Error.NONE:
                self.log += write.records
            self.feed(Persisted(write.group, write.ticket, error))

    def advance(self, delay_ms: int) -> None:
        """Let time go by; timers fire in order."""
        end_ms = self.now_ms + delay_ms
        while True:
            due = min(self.timers.items(), key=lambda item: item[1], default=None)
            if due is None or due[1] > end_ms:
                break
            (group, name), self.now_ms = due
            del self.timers[group, name]
            self.feed(TimerFired(group, name))
        self.now_ms = end_ms

    def finish_join(self) -> None:
        """Let time go by until the join phase has ended."""
        for _ in range(120):
            self.advance(1_000)
            if self.state != "PreparingRebalance":
                return
        raise AssertionError("the join phase does not end")

    def restart(self) -> None:
        """Another broker takes over: what is not in the log is lost."""
        self.perform(self.coordinator.close(Error.NOT_COORDINATOR))
        self.timers.clear()
        self.writes.clear()
        state = OffsetsState()
        for key, value in self.log:
            state.replay(key, value)
        self._seed += 1000
        self.coordinator = self._new()
        self.perform(self.coordinator.load(state, now_ms=self.now_ms))

    @property
    def state(self) -> str:
        described = self.coordinator.describe(GROUP)
        return described.state if described is not None else "none"

    def answer_of(self, token: int) -> Answer | None:
        return self.answers.get(token)

    def next_token(self) -> int:
        self._token += 1
        return self._token

    # ---- requests -------------------------------------------------------------------------------

    def join(
        self,
        member_id: str = "",
        *,
        group: str = GROUP,
        instance_id: str | None = None,
        protocols: tuple[tuple[str, bytes], ...] = RANGE,
        protocol_type: str = "consumer",
        session_timeout_ms: int = 10_000,
        rebalance_timeout_ms: int = 60_000,
        knows_member_ids: bool = True,
        may_skip_assignment: bool = True,
    ) -> int:
        """Ask to join; the token of the request."""
        token = self.next_token()
        self.feed(
            JoinGroup(
                token=token,
                group=group,
                member_id=member_id,
                instance_id=instance_id,
                client_id="client",
                client_host="/127.0.0.1",
                session_timeout_ms=session_timeout_ms,
                rebalance_timeout_ms=rebalance_timeout_ms,
                protocol_type=protocol_type,
                protocols=protocols,
                knows_member_ids=knows_member_ids,
                may_skip_assignment=may_skip_assignment,
            )
        )
        return token

    def new_id(self) -> str:
        """The id that a new member is told to join with."""
        answer = self.joined(self.join())
        assert answer.error_code == Error.MEMBER_ID_REQUIRED
        return answer.member_id

    def joined(self, token: int) -> JoinAnswer:
        answer = self.answers[token]
        assert isinstance(answer, JoinAnswer)
        return answer

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
    ) -> int:
        token = self.next_token()
        self.feed(
            SyncGroup(
                token=token,
                group=GROUP,
                generation=generation,
                member_id=member_id,
                instance_id=instance_id,
                protocol_type=protocol_type,
                protocol_name=protocol_name,
                assignments=tuple((assignments or {}).items()),
            )
        )
        return token

    def synced(self, token: int) -> SyncAnswer:
        answer = self.answers[token]
        assert isinstance(answer, SyncAnswer)
        return answer

    def heartbeat(self, member_id: str, generation: int, instance_id: str | None = None) -> int:
        """The error code of the answer."""
        token = self.next_token()
        self.feed(
            Heartbeat(
                token=token,
                group=GROUP,
                generation=generation,
                member_id=member_id,
                instance_id=instance_id,
            )
        )
        answer = self.answers[token]
        assert isinstance(answer, HeartbeatAnswer)
        return answer.error_code

    def leave(self, *members: LeavingMember, group: str = GROUP) -> LeaveAnswer:
        token = self.next_token()
        self.feed(LeaveGroup(token=token, group=group, members=members))
        answer = self.answers[token]
        assert isinstance(answer, LeaveAnswer)
        return answer

    def commit(
        self,
        *offsets: OffsetToCommit,
        member_id: str = "",
        generation: int = -1,
        instance_id: str | None = None,
        retention_ms: int = -1,
        group: str = GROUP,
        connection: int = 1,
    ) -> int:
        token = self.next_token()
        self.feed(
            CommitOffsets(
                token=token,
                group=group,
                offsets=offsets,
                generation=generation,
                member_id=member_id,
                instance_id=instance_id,
                retention_ms=retention_ms,
                connection=connection,
            )
        )
        return token

    def commit_errors(self, token: int) -> list[int]:
        answer = self.answers[token]
        assert isinstance(answer, CommitAnswer)
        return [partition.error_code for partition in answer.partitions]

    def delete(self, group: str = GROUP) -> int:
        token = self.next_token()
        self.feed(DeleteGroup(token=token, group=group))
        return token

    def deleted(self, token: int) -> int:
        answer = self.answers[token]
        assert isinstance(answer, DeleteAnswer)
        return answer.error_code

    # ---- whole stories --------------------------------------------------------------------------

    def stable(self, count: int = 2) -> "StableGroup":
        """A stable group of dynamic members in generation 1, the leader first."""
        ids = [self.new_id() for _ in range(count)]
        tokens = {member_id: self.join(member_id) for member_id in ids}
        self.finish_join()
        answers = {member_id: self.joined(token) for member_id, token in tokens.items()}
        leader = answers[ids[0]].leader
        generation = answers[ids[0]].generation
        order = [leader, *(member_id for member_id in ids if member_id != leader)]
        assignments = {member_id: f"work of {member_id}".encode() for member_id in ids}
        for member_id in order:
            self.sync(member_id, generation, assignments if member_id == leader else None)
        assert self.state == "Stable"
        return StableGroup(order, generation, assignments)


class StableGroup:
    """Who is in a group, in which generation, with which work."""

    def __init__(self, ids: list[str], generation: int, assignments: dict[str, bytes]) -> None:
        self.ids = ids
        self.leader = ids[0]
        self.followers = ids[1:]
        self.generation = generation
        self.assignments = assignments
