"""Members of a consumer group: they join, share the topics, read, and commit their offsets.

Why:    a group takes more turns than any other part of a broker: rebalances, generations, a
        coordinator that moves. Its promise is one: the next owner begins at the committed offset.
How:    FINDING the coordinator -> JOINING -> SYNCING -> FETCHING the committed offsets -> WORKING
        (read, commit, heartbeat, one request at a time). Every error leads back to joining or to
        finding. Now and then a member leaves without a word. The leader shares the topics among
        the members in turns.
Owns:   the position of one member.
Source: Kafka's classic group protocol (ConsumerCoordinator, AbstractCoordinator)."""

import json
import random
from collections.abc import Callable
from typing import TypeVar

from strandline.base.errors import ApiError
from strandline.model.ids import NO_BROKER, BrokerId, GroupId, Offset
from strandline.protocol.errors import Error
from strandline.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from strandline.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from strandline.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from strandline.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from strandline.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from strandline.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from strandline.protocol.table import Message
from strandline.records.batch import iterate_headers
from strandline.simulation.clients.clients import Client
from strandline.simulation.clients.connections import Exchange
from strandline.simulation.clients.lookups import EARLIEST, NO_OFFSET, ask_offset
from strandline.simulation.invariants.facts import CommitBegun, CommitEnded, OffsetFetched
from strandline.simulation.world.broker_member import BrokerMember
from strandline.simulation.world.cluster import SimCluster
from strandline.simulation.world.member import Member
from strandline.simulation.world.scheduler import US_PER_MS, ScheduledEvent

GROUP = "readers"
PROTOCOL = "turns"
SESSION_TIMEOUT_MS = 6_000
REBALANCE_TIMEOUT_MS = 1_500
REQUEST_TIMEOUT_MS = 3_000
COMMIT_ATTEMPTS = 2
RETRY_MS = (10, 200)
WORK_MS = (20, 200)
READ_BYTES = (200, 4_000)
DISAPPEARANCE = 0.01
"""How likely a member that works forgets who it is, before each step."""

FIND_VERSION, JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION = 3, 5, 3, 3
COMMIT_VERSION, OFFSET_FETCH_VERSION = 7, 7

NOT_APPLIED = {
    Error.ILLEGAL_GENERATION,
    Error.UNKNOWN_MEMBER_ID,
    Error.REBALANCE_IN_PROGRESS,
    Error.COORDINATOR_LOAD_IN_PROGRESS,
}
"""Codes of a commit that certainly left nothing behind."""

A = TypeVar("A", bound=Message)


class GroupConsumer(Client):
    """See the module. `commit_count`: commits that were acknowledged."""

    def __init__(self, name: str, cluster: SimCluster, rng: random.Random) -> None:
        super().__init__(name, cluster, rng)
        self.commit_count = 0
        self.generation_count = 0
        self._coordinator: BrokerId = NO_BROKER
        self._member_id = ""
        self._generation = -1
        self._roster: list[str] = []
        """All members, where this one is the leader."""
        self._assigned: list[GroupId] | None = None
        self._positions: dict[GroupId, Offset] | None = None
        self._turn = 0
        """Counts requests: an answer to an earlier one comes too late."""
        self._timeout: ScheduledEvent | None = None

    def start(self) -> None:
        """Join, and work from now on."""
        self._step()

    @property
    def is_working(self) -> bool:
        """Whether it has its share."""
        return self._positions is not None

    # ---- one step after the other --------------------------------------------------------------

    def _step(self) -> None:
        if self.is_stopped:
            return
        if self._coordinator == NO_BROKER:
            self._find()
        elif self._generation < 0:
            self._join()
        elif self._assigned is None:
            self._sync()
        elif self._positions is None:
            self._fetch_offsets(self._assigned)
        else:
            self._work(self._assigned, self._positions)

    def _step_later(self, delay_ms: tuple[int, int]) -> None:
        self.scheduler.after(self.rng.randint(*delay_ms) * US_PER_MS, self._step)

    def _restart(self, *, keeps_id: bool = True, finds: bool = False) -> None:
        self._generation = -1
        self._assigned = self._positions = None
        if not keeps_id:
            self._member_id = ""
        if finds:
            self._coordinator = NO_BROKER

    def _on_code(self, code: int) -> None:
        """A refusal: what has to be done again."""
        self._restart(
            keeps_id=code != Error.UNKNOWN_MEMBER_ID,
            finds=code
            not in (Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID, Error.REBALANCE_IN_PROGRESS),
        )
        self._step_later(RETRY_MS)

    def _request(
        self,
        broker: BrokerId,
        request: Message,
        answer: type[A],
        version: int,
        *,
        inside: Callable[[A], None] | None = None,
        done: Callable[[A], None],
        again: Callable[[], None] | None = None,
    ) -> None:
        """Ask `broker`: `inside` runs within the broker as it answers, `done` when the answer is
        here. No answer in time, or none at all, leads to `again`, without it back to finding the
        coordinator."""
        self._turn += 1
        turn, connection = self._turn, self.connection

        def lost() -> None:
            if self._turn == turn:
                self._turn += 1
                self._cancel_timeout()
                self.reconnect(broker)
                if again is not None:
                    again()
                    return
                self._restart(finds=True)
                self._step_later(RETRY_MS)

        def deliver(message: A) -> None:
            if self._turn == turn:
                self._turn += 1
                self._cancel_timeout()
                done(message)

        def run(member: Member, exchange: Exchange) -> None:
            assert isinstance(member, BrokerMember)

            def on_answer(message: A) -> None:
                if inside is not None:
                    inside(message)
                exchange.answer(lambda: deliver(message))

            member.ask(
                request,
                answer,
                version,
                on_answer=on_answer,
                on_closed=lambda _: exchange.answer(lost),
                connection=connection,
            )

        self._timeout = self.scheduler.after(REQUEST_TIMEOUT_MS * US_PER_MS, lost)
        self.ask(broker, run, lost)

    def _cancel_timeout(self) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None

    # ---- joining -------------------------------------------------------------------------------

    def _find(self) -> None:
        def done(answer: FindCoordinatorResponse) -> None:
            if answer.error_code == Error.NONE:
                self._coordinator = BrokerId(answer.node_id)
                self._step()
            else:
                self._step_later(RETRY_MS)

        self._request(
            self.rng.choice(self.cluster.scenario.brokers),
            FindCoordinatorRequest(key=GROUP),
            FindCoordinatorResponse,
            FIND_VERSION,
            done=done,
        )

    def _join(self) -> None:
        def done(answer: JoinGroupResponse) -> None:
            if answer.error_code == Error.MEMBER_ID_REQUIRED:
                self._member_id = answer.member_id
                self._step()
            elif answer.error_code != Error.NONE:
                self._on_code(answer.error_code)
            else:
                self._member_id = answer.member_id
                self._generation = answer.generation_id
                self._roster = sorted(one.member_id for one in answer.members)
                self._step()

        self._request(
            self._coordinator,
            JoinGroupRequest(
                group_id=GROUP,
                session_timeout_ms=SESSION_TIMEOUT_MS,
                rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
                member_id=self._member_id,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(PROTOCOL, b"")],
            ),
            JoinGroupResponse,
            JOIN_VERSION,
            done=done,
        )

    def _sync(self) -> None:
        def done(answer: SyncGroupResponse) -> None:
            if answer.error_code != Error.NONE:
                self._on_code(answer.error_code)
                return
            self.generation_count += 1
            assigned = json.loads(bytes(answer.assignment) or b"[]")
            self._assigned = [GroupId(one) for one in assigned]
            self._step()

        self._request(
            self._coordinator,
            SyncGroupRequest(
                group_id=GROUP,
                generation_id=self._generation,
                member_id=self._member_id,
                assignments=self._share(),
            ),
            SyncGroupResponse,
            SYNC_VERSION,
            done=done,
        )

    def _share(self) -> list[SyncGroupRequestAssignment]:
        """Every topic to one member, by turns; empty where this one does not lead."""
        topics = [plan.group for plan in self.cluster.scenario.groups]
        count = len(self._roster)
        return [
            SyncGroupRequestAssignment(member, json.dumps(topics[at::count]).encode())
            for at, member in enumerate(self._roster)
        ]

    def _fetch_offsets(self, assigned: list[GroupId]) -> None:
        names = {self.cluster.plan(group).name: group for group in assigned}
        if not names:
            self._positions = {}
            self._step_later(WORK_MS)
            return
        begun = self.cluster.checker.moment()

        def inside(answer: OffsetFetchResponse) -> None:
            if answer.error_code == Error.NONE:
                for topic in answer.topics:
                    for one in topic.partitions:
                        if one.error_code == Error.NONE:
                            self.cluster.checker.offset_fetched(
                                OffsetFetched(names[topic.name], one.committed_offset, begun)
                            )

        def done(answer: OffsetFetchResponse) -> None:
            rows = [(topic.name, one) for topic in answer.topics for one in topic.partitions]
            codes = [answer.error_code, *(one.error_code for _, one in rows)]
            if any(codes):
                self._on_code(next(code for code in codes if code))
                return
            self._positions = {
                names[name]: Offset(max(0, one.committed_offset)) for name, one in rows
            }
            self._step()

        self._request(
            self._coordinator,
            OffsetFetchRequest(
                group_id=GROUP, topics=[OffsetFetchRequestTopic(name, [0]) for name in names]
            ),
            OffsetFetchResponse,
            OFFSET_FETCH_VERSION,
            inside=inside,
            done=done,
        )

    # ---- working -------------------------------------------------------------------------------

    def _work(self, assigned: list[GroupId], positions: dict[GroupId, Offset]) -> None:
        if self.rng.random() < DISAPPEARANCE:
            self.cluster.trace.add(self.name, "forgets who it is")
            self._restart(keeps_id=False)
            self._step_later(RETRY_MS)
        elif not assigned or self.rng.random() < 0.2:
            self._beat()
        elif self.rng.random() < 0.4:
            self._commit(self.rng.choice(assigned), positions)
        else:
            self._read(self.rng.choice(assigned), positions)

    def _beat(self) -> None:
        def done(answer: HeartbeatResponse) -> None:
            if answer.error_code == Error.NONE:
                self._step_later(WORK_MS)
            else:
                self._on_code(answer.error_code)

        self._request(
            self._coordinator,
            HeartbeatRequest(
                group_id=GROUP, generation_id=self._generation, member_id=self._member_id
            ),
            HeartbeatResponse,
            HEARTBEAT_VERSION,
            done=done,
        )

    def _commit(
        self, group: GroupId, positions: dict[GroupId, Offset], *, attempts: int = COMMIT_ATTEMPTS
    ) -> None:
        """Say how far it is; what is not answered is sent once more, over a new connection."""
        offset = positions[group]
        number = self.cluster.checker.commit_begun(CommitBegun(group, offset))

        def code_of(answer: OffsetCommitResponse) -> int:
            return answer.topics[0].partitions[0].error_code

        def inside(answer: OffsetCommitResponse) -> None:
            code = code_of(answer)
            if code == Error.NONE or code in NOT_APPLIED:
                self.cluster.checker.commit_ended(CommitEnded(group, number, code == Error.NONE))

        def done(answer: OffsetCommitResponse) -> None:
            if code_of(answer) == Error.NONE:
                self.commit_count += 1
                self._step_later(WORK_MS)
            else:
                self._on_code(code_of(answer))

        def again() -> None:
            self._commit(group, positions, attempts=attempts - 1)

        row = OffsetCommitRequestPartition(0, offset)
        self._request(
            self._coordinator,
            OffsetCommitRequest(
                group_id=GROUP,
                generation_id_or_member_epoch=self._generation,
                member_id=self._member_id,
                topics=[
                    OffsetCommitRequestTopic(name=self.cluster.plan(group).name, partitions=[row])
                ],
            ),
            OffsetCommitResponse,
            COMMIT_VERSION,
            inside=inside,
            done=done,
            again=again if attempts > 1 else None,
        )

    def _read(self, group: GroupId, positions: dict[GroupId, Offset]) -> None:
        """Read on where this member is. What comes is judged elsewhere: see `consumers`."""
        self._step_later(WORK_MS)
        self.seek_leader(group, lambda leader: self._read_from(leader, group, positions))

    def _read_from(
        self, broker: BrokerId, group: GroupId, positions: dict[GroupId, Offset]
    ) -> None:
        if broker == NO_BROKER:
            return

        def run(member: Member, exchange: Exchange) -> None:
            def done(data: bytes, error: ApiError | None) -> None:
                exchange.answer(lambda: self._on_read(broker, group, positions, data, error))

            replica = member.replication.replicas.get(group)
            if replica is not None and replica.failed is None:
                member.read(replica, positions[group], self.rng.choice(READ_BYTES), done)

        self.ask(broker, run, lambda: None)

    def _on_read(
        self,
        broker: BrokerId,
        group: GroupId,
        positions: dict[GroupId, Offset],
        data: bytes,
        error: ApiError | None,
    ) -> None:
        if error is not None and error.code == Error.OFFSET_OUT_OF_RANGE:
            self._seek_beginning(broker, group, positions)
        for header in iterate_headers(data):
            positions[group] = max(positions[group], header.next_offset)

    def _seek_beginning(
        self, broker: BrokerId, group: GroupId, positions: dict[GroupId, Offset]
    ) -> None:
        """Go to where the topic begins, as a consumer that resets to the earliest."""
        topic = self.cluster.plan(group).name

        def done(start: Offset | None) -> None:
            if start is not None and start != NO_OFFSET:
                positions[group] = start

        self.lookup(
            broker,
            lambda member, found, closed: ask_offset(member, topic, EARLIEST, found, closed),
            done,
        )
