"""Records messages between brokers: which entries went over which connection, and the answers.

Why:    "no entry is sent twice" is a promise about the wire, so it is checked there, and not in
        the memory of the sender.
How:    the network shows every message that is sent and every one that is delivered.
            an append, an order to serve a peer      `EntriesSent`, for each receiver that it names
            any message with entries                 `EntriesPassed`, whichever broker sends it
            a follower's answer                      `AnswerReceived`
        Entries for a broker on which the scenario did not place the partition are copies: the cost
        of moves and repair in bytes.
Owns:   how many bytes were copied.
Source: design section 5; `replication.wire`."""

from collections.abc import Collection, Mapping

from strandline.base.network import Lane
from strandline.model.ids import BrokerId, GroupId, Index
from strandline.raft.messages import NO_HINT, AppendRequest, AppendResponse
from strandline.replication.wire import (
    APPENDS,
    Kind,
    decode_append,
    decode_peer_catchup_order,
    decode_raft,
)
from strandline.simulation.invariants.checker import Checker
from strandline.simulation.invariants.facts import (
    AnswerReceived,
    EntriesPassed,
    EntriesSent,
    WayChanged,
)
from strandline.simulation.world.scheduler import Scheduler


class TrafficRecorder:
    """See the module."""

    def __init__(
        self,
        checker: Checker,
        scheduler: Scheduler,
        *,
        homes: Mapping[GroupId, Collection[BrokerId]],
    ) -> None:
        """`homes`: {group: the brokers with a replica from the start}; only these groups count."""
        self._checker = checker
        self._scheduler = scheduler
        self._homes = homes
        self.copied_bytes = 0

    def on_sent(
        self, sender: BrokerId, peer: BrokerId, lane: Lane, *, connection: int, data: bytes
    ) -> None:
        """`sender` gave a message to the connection with this number."""
        kind = data[0]
        if kind == Kind.PEER_CATCHUP_ORDER:
            order = decode_peer_catchup_order(memoryview(data)[1:])
            self._report_sent(sender, order.request.to, None, order.group, order.request.request)
        elif kind in APPENDS:
            head, payload = decode_append(memoryview(data))
            self._report_passed(sender, peer, head.group, head.request)
            if kind == Kind.APPEND:
                self._report_sent(sender, peer, connection, head.group, head.request)
                for other in head.to:
                    self._report_sent(sender, other, None, head.group, head.request)
            if head.group in self._homes and peer not in self._homes[head.group]:
                self.copied_bytes += len(payload)

    def _report_sent(
        self,
        leader: BrokerId,
        peer: BrokerId,
        connection: int | None,
        group: GroupId,
        request: AppendRequest,
    ) -> None:
        if request.runs:
            fact = EntriesSent(
                leader=leader,
                peer=peer,
                connection=connection,
                group=group,
                epoch=request.epoch,
                first_index=Index(request.prev_index + 1),
                last_index=request.runs[-1].last_index,
                at_us=self._scheduler.now_us,
            )
            self._checker.entries_sent(fact)

    def _report_passed(
        self, sender: BrokerId, receiver: BrokerId, group: GroupId, request: AppendRequest
    ) -> None:
        if request.runs:
            first_index = Index(request.prev_index + 1)
            last_index = request.runs[-1].last_index
            self._checker.entries_passed(
                EntriesPassed(sender, receiver, group, request.epoch, first_index, last_index)
            )

    def on_delivered(self, sender: BrokerId, receiver: BrokerId, lane: Lane, data: bytes) -> None:
        """A message of `sender` has reached `receiver`."""
        if data[0] != Kind.RAFT:
            return
        for group, message in decode_raft(memoryview(data)[1:]):
            if isinstance(message, AppendResponse) and message.hint != NO_HINT:
                fact = AnswerReceived(
                    leader=receiver,
                    peer=sender,
                    group=group,
                    epoch=message.epoch,
                    is_accepted=message.accepted,
                    at_us=self._scheduler.now_us,
                )
                self._checker.answer_received(fact)

    def on_way_changed(self, here: BrokerId, peer: BrokerId) -> None:
        """A connection from `here` to `peer` came up or broke."""
        self._checker.way_changed(WayChanged(here, peer, self._scheduler.now_us))
