"""Dispatches each incoming message to its replica or component.

Why:    groups share connections: one place checks the sender and the format for all of them.
How:    batches arrive on the bulk lane, everything else on the control lane, by its kind (wire.py).
        Any message shows that its sender is alive. An unreadable message is logged and dropped. A
        message for a group that is not open is noted for its sender (early_appends.py).
Owns:   which lanes were connected: only those can be lost.
Source: design section 5; `base.network.PeerEvents`."""

import logging
from typing import TYPE_CHECKING

from strandline.base.errors import ApiError, ProtocolError
from strandline.base.network import Lane, PeerEvents
from strandline.model.ids import BrokerId, Epoch, Index
from strandline.raft.messages import NO_HINT, AppendResponse, LeaderContact
from strandline.replication.replica.entries import Entries
from strandline.replication.replica.replica import Replica
from strandline.replication.wire import (
    Kind,
    LeaderEntry,
    decode_append,
    decode_heartbeat,
    decode_heartbeat_answer,
    decode_history_answer,
    decode_history_question,
    decode_leaders,
    decode_lend_order,
    decode_not_relayed,
    decode_opened,
    decode_raft,
)

if TYPE_CHECKING:
    from strandline.replication.host.replication import Replication

_log = logging.getLogger("strandline.replication")


class Inbound(PeerEvents):
    """See the module."""

    def __init__(self, host: "Replication") -> None:
        self._host = host
        self._connected: set[tuple[BrokerId, Lane]] = set()
        self._is_stopped = False

    def stop(self) -> None:
        """Ignore everything from now on."""
        self._is_stopped = True

    def on_message(self, peer: BrokerId, lane: Lane, message: memoryview) -> None:
        """See `base.network.PeerEvents`."""
        if self._is_stopped or not len(message):
            return
        host = self._host
        if host.liveness.heard_from(peer):
            host.led.ask_returned(peer)
        try:
            if lane is Lane.BULK:
                self._on_append(peer, message)
            else:
                self._on_control(peer, message[0], message[1:])
        except (ProtocolError, ApiError, ValueError) as error:
            _log.warning("dropped a message from broker %d: %s", peer, error)

    def on_peer_connected(self, peer: BrokerId, lane: Lane) -> None:
        """See `base.network.PeerEvents`."""
        if self._is_stopped:
            return
        host = self._host
        self._connected.add((peer, lane))
        if lane is Lane.CONTROL:
            host.liveness.on_connected(peer)
            host.send_heartbeat(peer)
            host.group_bootstrap.on_peer_connected(peer)
            leaders = host.leaders
            entries = [*leaders.led_by(host.self_id), *leaders.led_by(peer), *leaders.own_over]
            if entries:
                host.send_control(peer, Kind.LEADERS, entries)
        if lane is Lane.BULK:
            host.led.reset(peer)
            host.peer_catchup.on_connected(peer)
        else:
            host.led.on_untold(peer)

    def on_peer_lost(self, peer: BrokerId, lane: Lane) -> None:
        """See `base.network.PeerEvents`."""
        if self._is_stopped:
            return
        host = self._host
        if lane is Lane.CONTROL:
            host.liveness.on_lost(peer)
            host.calls.on_peer_lost(peer)
        if (peer, lane) in self._connected:  # Otherwise one more attempt to connect has failed.
            self._connected.discard((peer, lane))
            if lane is Lane.BULK:
                host.led.reset(peer)

    def _on_append(self, peer: BrokerId, message: memoryview) -> None:
        host = self._host
        head, payload = decode_append(message)
        replica = host.replicas.get(head.group)
        if message[0] == Kind.LENT:
            host.peer_catchup.on_lent(peer, head, payload)
        elif message[0] == Kind.RELAYED:
            host.relaying.on_relayed(peer, head, payload)
        elif replica is None:
            host.early_appends.on_missed(peer, head.group)
            if head.to:
                host.relaying.refuse(peer, head.group, head.request.epoch, list(head.to))
        else:
            entries = Entries.checked(payload, head.request, may_wait=head.may_wait)
            if head.to and head.request.epoch >= replica.epoch:
                host.relaying.hand_on(peer, head, payload)
            if head.request.epoch >= replica.epoch:
                replica.hear_outlived(head.outlived)
            replica.on_message(peer, head.request, entries)
            host.relaying.release(replica)

    def _on_leaders(self, peer: BrokerId, entries: list[LeaderEntry]) -> None:
        """Learn leaders from `peer`, and correct those that this broker no longer is."""
        host = self._host
        over: list[LeaderEntry] = []
        for entry in entries:
            if entry.leader != host.self_id:
                host.leaders.learn(entry)
            elif not host.leads(entry.group, entry.epoch):
                over.append(host.leaders.end(entry.group, entry.epoch))
        if over:
            host.send_control(peer, Kind.LEADERS, over)

    def _on_control(self, peer: BrokerId, kind: int, body: memoryview) -> None:
        host = self._host
        if kind == Kind.RAFT:
            for group, message in decode_raft(body):
                replica = host.replicas.get(group)
                if replica is None:
                    host.early_appends.on_missed(peer, group)
                else:
                    replica.on_message(peer, message)
        elif kind == Kind.HEARTBEAT:
            heartbeat = decode_heartbeat(body)
            announced = host.liveness.on_heartbeat(peer, heartbeat)
            for replica, epoch in announced:
                meet_leader(replica, peer, epoch)
            session = host.liveness.follow_session(peer)
            if session.is_answered(heartbeat):
                host.send_control(peer, Kind.HEARTBEAT_ANSWER, session.answer(heartbeat))
        elif kind == Kind.HEARTBEAT_ANSWER:
            answer = decode_heartbeat_answer(body)
            for group, epoch in host.liveness.on_heartbeat_answer(peer, answer):
                replica = host.replicas.get(group)
                if replica is not None and epoch > replica.epoch:
                    replica.on_message(peer, AppendResponse(epoch, False, hint=NO_HINT))
        elif kind == Kind.LEADERS:
            self._on_leaders(peer, decode_leaders(body))
        elif kind == Kind.LEND:
            host.peer_catchup.on_order(peer, decode_lend_order(body))
        elif kind == Kind.NOT_RELAYED:
            host.relaying.on_refused(peer, decode_not_relayed(body))
        elif kind == Kind.OPENED:
            host.early_appends.on_told(peer, decode_opened(body))
        elif kind == Kind.HISTORY_QUESTION:
            host.group_bootstrap.on_question(peer, decode_history_question(body))
        elif kind == Kind.HISTORY_ANSWER:
            host.group_bootstrap.on_answer(peer, decode_history_answer(body))
        elif kind == Kind.CALL:
            host.calls.on_message(peer, body)
        else:
            raise ProtocolError(f"unknown message kind {kind}")


def meet_leader(replica: Replica, leader: BrokerId, epoch: Epoch) -> None:
    """Tell `replica` that `leader` leads in `epoch`."""
    replica.on_message(leader, LeaderContact(epoch, Index(-1), Index(-1)))
