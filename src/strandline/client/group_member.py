"""The only member of a consumer group: owns every partition of one topic, and commits.

How:    as the only member it is the group's leader and assigns all partitions to itself. If the
        coordinator reports that it is not a member, or that the group rebalances, it joins again.
        It looks the coordinator up again after a failed request. Commits are absolute, so that a
        repeated one does no harm.
Owns:   its member id and generation, as the coordinator gave them.
Source: kafka-protocol reference 8.2; KIP-394 (member id first)."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from strandline.client.admin import find_coordinator
from strandline.client.cluster import Client
from strandline.client.errors import CannotConnectError, refusal
from strandline.model.ids import BrokerId
from strandline.protocol.consumer import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    encode_assignment,
    encode_subscription,
)
from strandline.protocol.errors import Error
from strandline.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from strandline.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from strandline.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from strandline.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from strandline.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from strandline.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from strandline.protocol.table import Message

PROTOCOL_TYPE = "consumer"
PROTOCOL_NAME = "range"
SESSION_MS = 30_000
NO_GENERATION = -1
REJOIN = frozenset((Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION, Error.REBALANCE_IN_PROGRESS))

R = TypeVar("R", bound=Message)
_Ask = Callable[[int], int]
"""Given a deadline, the code that was answered; 0 for none."""


class GroupMember:
    """See the module. Each operation joins first where that is needed."""

    def __init__(self, client: Client, group: str, topic: str, partitions: int) -> None:
        self._client = client
        self._group = group
        self._topic = topic
        self._partitions = partitions
        self._coordinator: BrokerId | None = None
        self._id = ""
        self._generation = NO_GENERATION
        self.join_count = 0
        """How often it has joined."""

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Returns when the coordinator has noted {partition: next offset}. Raises StrandlineError
        where it has not within the client's deadline."""
        rows = [OffsetCommitRequestPartition(one, offset) for one, offset in offsets.items()]

        def ask(until: int) -> int:
            request = OffsetCommitRequest(
                group_id=self._group,
                generation_id_or_member_epoch=self._generation,
                member_id=self._id,
                topics=[OffsetCommitRequestTopic(name=self._topic, partitions=rows)],
            )
            answer = self._ask(request, OffsetCommitResponse, until)
            return next(
                (each.error_code for one in answer.topics for each in one.partitions
                 if each.error_code), 0,
            )  # fmt: skip

        self._client.attempt(lambda until: self._as_member(ask, until))

    def heartbeat(self) -> None:
        """Send a heartbeat to the coordinator."""

        def ask(until: int) -> int:
            request = HeartbeatRequest(
                group_id=self._group, generation_id=self._generation, member_id=self._id
            )
            return self._ask(request, HeartbeatResponse, until).error_code

        self._client.attempt(lambda until: self._as_member(ask, until))

    def leave(self, deadline_ms: int | None = None) -> None:
        """Leave, and have the group deleted with its offsets."""

        def leave(until: int) -> None:
            if self._generation != NO_GENERATION:
                request = LeaveGroupRequest(
                    group_id=self._group, members=[MemberIdentity(member_id=self._id)]
                )
                code = self._ask(request, LeaveGroupResponse, until).error_code
                if code not in REJOIN:
                    self._expect(code)
                self._generation = NO_GENERATION
            deletion = DeleteGroupsRequest(groups_names=[self._group])
            (found,) = self._ask(deletion, DeleteGroupsResponse, until).results
            if found.error_code != Error.GROUP_ID_NOT_FOUND:
                self._expect(found.error_code)

        self._client.attempt(leave, deadline_ms)

    # ---- asking ----------------------------------------------------------------------------------

    def _as_member(self, ask: _Ask, until: int) -> None:
        if self._generation == NO_GENERATION:
            self._join(until)
        code = ask(until)
        while code in REJOIN and self._client.transport.monotonic_ms() < until:
            self._forget(code)
            self._join(until)
            code = ask(until)
        self._expect(code)

    def _join(self, until: int) -> None:
        """Until it is the member that it was, or another one, with everything given to it."""
        code = self._join_once(until)
        while code in (*REJOIN, Error.MEMBER_ID_REQUIRED):
            if self._client.transport.monotonic_ms() >= until:
                break
            self._forget(code)
            code = self._join_once(until)
        self._expect(code)
        self.join_count += 1

    def _join_once(self, until: int) -> int:
        wanted = encode_subscription(ConsumerProtocolSubscription(topics=[self._topic]))
        joined = self._ask(
            JoinGroupRequest(
                group_id=self._group,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=SESSION_MS,
                member_id=self._id,
                protocol_type=PROTOCOL_TYPE,
                protocols=[JoinGroupRequestProtocol(PROTOCOL_NAME, wanted)],
            ),
            JoinGroupResponse,
            until,
        )
        if joined.member_id:
            self._id = joined.member_id
        if joined.error_code:
            return joined.error_code
        mine = TopicPartition(self._topic, list(range(self._partitions)))
        given = encode_assignment(ConsumerProtocolAssignment([mine]))
        code = self._ask(
            SyncGroupRequest(
                group_id=self._group,
                generation_id=joined.generation_id,
                member_id=self._id,
                protocol_type=PROTOCOL_TYPE,
                protocol_name=PROTOCOL_NAME,
                assignments=[SyncGroupRequestAssignment(self._id, given)],
            ),
            SyncGroupResponse,
            until,
        ).error_code
        if not code:
            self._generation = joined.generation_id
        return code

    def _forget(self, code: int) -> None:
        self._generation = NO_GENERATION
        if code == Error.UNKNOWN_MEMBER_ID:
            self._id = ""

    def _ask(self, request: Message, response: type[R], until: int) -> R:
        if self._coordinator is None:
            self._coordinator = find_coordinator(self._client, self._group, until)
        try:
            return self._client.ask(self._coordinator, request, response, deadline_ms=until)
        except CannotConnectError:
            self._coordinator = None
            raise

    def _expect(self, code: int) -> None:
        if code:
            self._coordinator = None
            raise refusal(code, f"group {self._group}")
