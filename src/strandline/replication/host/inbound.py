"""Dispatches each incoming message to its replica or component.

Why:    groups share connections: one place checks the sender and the format for all of them.
How:    by its kind (wire.py), on whichever lane it arrives: batches arrive on the bulk lane, and so
        do acknowledgements, as replies; everything else arrives on the control lane. Any message
        shows that its sender is alive. An unreadable message is logged and dropped. A message for a
        group that is not open is noted for its sender (early_appends.py).
Owns:   which lanes were connected: only those can be lost.
Source: design section 5; `base.network.PeerEvents`."""

import logging
from collections.abc import Mapping

from strandline.base.errors import ApiError, ProtocolError
from strandline.base.network import Lane, PeerEvents
from strandline.model.ids import BrokerId, GroupId
from strandline.network.calls import Calls
from strandline.raft.messages import NO_HINT, AppendResponse
from strandline.replication.catchup.peer_sender import PeerSender
from strandline.replication.host.bootstrap import GroupBootstrap
from strandline.replication.host.early_appends import EarlyAppends
from strandline.replication.host.leaders import Leaders
from strandline.replication.host.led_groups import LedGroups
from strandline.replication.liveness.heartbeat_exchanges import HeartbeatExchanges
from strandline.replication.relay.forwarding import Relaying
from strandline.replication.replica.entries import Entries
from strandline.replication.replica.replica import Replica
from strandline.replication.shared import Shared
from strandline.replication.wire import (
    APPENDS,
    Heartbeat,
    HeartbeatAnswer,
    Kind,
    LeaderEntry,
    decode_append,
    decode_exchange,
    decode_heartbeat,
    decode_heartbeat_answer,
    decode_history_answer,
    decode_history_question,
    decode_leaders,
    decode_not_relayed,
    decode_opened,
    decode_peer_catchup_order,
    decode_raft,
)

_APPEND, _RAFT = int(Kind.APPEND), int(Kind.RAFT)
_log = logging.getLogger("strandline.replication")


class Inbound(PeerEvents):
    """See the module."""

    def __init__(
        self,
        replicas: Mapping[GroupId, Replica],
        shared: Shared,
        *,
        led: LedGroups,
        leaders: Leaders,
        calls: Calls,
        peer_sender: PeerSender,
        relaying: Relaying,
        early_appends: EarlyAppends,
        group_bootstrap: GroupBootstrap,
        exchanges: HeartbeatExchanges,
    ) -> None:
        self._self_id = shared.self_id
        self._replicas = replicas
        self._led = led
        self._leaders = leaders
        self._liveness = shared.liveness
        self._contacts = shared.contacts
        self._outbox = shared.outbox
        self._calls = calls
        self._peer_sender = peer_sender
        self._relaying = relaying
        self._early_appends = early_appends
        self._group_bootstrap = group_bootstrap
        self._exchanges = exchanges
        self._connected: set[tuple[BrokerId, Lane]] = set()
        self._is_stopped = False

    def stop(self) -> None:
        """Ignore everything from now on."""
        self._is_stopped = True

    def on_message(self, peer: BrokerId, lane: Lane, message: memoryview) -> None:
        """See `base.network.PeerEvents`."""
        if self._is_stopped or not len(message):
            return
        if self._contacts.on_received(peer):
            self._led.probe_returned(peer)
        try:
            kind = message[0]
            if kind in APPENDS:
                self._on_append(peer, message)
            else:
                self._on_control(peer, kind, message[1:])
        except (ProtocolError, ApiError, ValueError) as error:
            _log.warning("dropped a message from broker %d: %s", peer, error)

    def on_peer_connected(self, peer: BrokerId, lane: Lane) -> None:
        """See `base.network.PeerEvents`."""
        if self._is_stopped:
            return
        self._connected.add((peer, lane))
        if lane is Lane.CONTROL:
            self._contacts.on_connected(peer)
            self._exchanges.on_connected(peer)
            self._group_bootstrap.on_peer_connected(peer)
            known = self._leaders
            entries = [*known.led_by(self._self_id), *known.led_by(peer), *known.own_ended]
            if entries:
                self._outbox.send_now(peer, Kind.LEADERS, entries)
        if lane is Lane.BULK:
            self._led.reset(peer)
            self._peer_sender.on_connected(peer)
        else:
            self._led.on_marks_lost(peer)

    def on_peer_lost(self, peer: BrokerId, lane: Lane) -> None:
        """See `base.network.PeerEvents`."""
        if self._is_stopped:
            return
        if lane is Lane.CONTROL:
            self._liveness.on_lost(peer)
            self._calls.on_peer_lost(peer)
        if (peer, lane) in self._connected:  # Otherwise one more attempt to connect has failed.
            self._connected.discard((peer, lane))
            if lane is Lane.BULK:
                self._led.reset(peer)

    def _on_append(self, peer: BrokerId, message: memoryview) -> None:
        head, payload = decode_append(message)
        if message[0] != _APPEND:
            if message[0] == Kind.PEER_APPEND:
                self._peer_sender.on_peer_append(peer, head, payload)
            else:
                self._relaying.on_relayed(peer, head, payload)
            return
        replica = self._replicas.get(head.group)
        if replica is None:
            self._early_appends.on_missed(peer, head.group)
            if head.to:
                self._relaying.refuse(peer, head.group, head.request.epoch, list(head.to))
        else:
            entries = Entries.checked(payload, head.request, may_wait=head.may_wait)
            if head.request.epoch >= replica.raft.state.epoch:
                if head.to:
                    self._relaying.hand_on(peer, head, payload)
                if head.outlived != -1 or replica.leader_outlived != -1:
                    replica.on_outlived(head.outlived)
            replica.on_append(peer, head.request, entries)
            if self._relaying.held:
                self._relaying.release(replica)

    def _on_leaders(self, peer: BrokerId, entries: list[LeaderEntry]) -> None:
        """Learn leaders from `peer`, and correct those that this broker no longer is."""
        over: list[LeaderEntry] = []
        for entry in entries:
            if entry.leader != self._self_id:
                self._leaders.learn(entry)
            elif not self._led.leads(entry.group, entry.epoch):
                over.append(self._leaders.end(entry.group, entry.epoch))
        if over:
            self._outbox.send_now(peer, Kind.LEADERS, over)

    def _apply_heartbeat(self, peer: BrokerId, heartbeat: Heartbeat) -> None:
        for state, epoch in self._liveness.on_heartbeat(peer, heartbeat):
            replica = self._replicas.get(state.group)
            if replica is not None:
                replica.on_leader_found(peer, epoch)

    def _apply_answer(self, peer: BrokerId, answer: HeartbeatAnswer, held_ms: int = 0) -> None:
        for group, epoch in self._contacts.on_heartbeat_answer(peer, answer, held_ms=held_ms):
            replica = self._replicas.get(group)
            if replica is not None and epoch > replica.epoch:
                replica.on_append_response(peer, AppendResponse(epoch, False, hint=NO_HINT))

    def _on_exchange(self, peer: BrokerId, body: memoryview) -> None:
        exchange = decode_exchange(body)
        if exchange.came_back:
            self._exchanges.on_came_back(peer)
        if exchange.answer is not None:
            self._apply_answer(peer, exchange.answer, exchange.held_ms)
        if exchange.heartbeat is not None:
            self._apply_heartbeat(peer, exchange.heartbeat)
            self._exchanges.on_heartbeat(
                peer,
                exchange.heartbeat,
                begins=exchange.begins,
                came_back=exchange.came_back,
            )

    def _on_control(self, peer: BrokerId, kind: int, body: memoryview) -> None:
        if kind == _RAFT:
            for group, message in decode_raft(body):
                replica = self._replicas.get(group)
                if replica is None:
                    self._early_appends.on_missed(peer, group)
                else:
                    replica.on_message(peer, message)
        elif kind == Kind.HEARTBEAT:
            heartbeat = decode_heartbeat(body)
            self._apply_heartbeat(peer, heartbeat)
            self._exchanges.on_heartbeat(peer, heartbeat)
        elif kind == Kind.HEARTBEAT_ANSWER:
            self._apply_answer(peer, decode_heartbeat_answer(body))
        elif kind == Kind.EXCHANGE:
            self._on_exchange(peer, body)
        elif kind == Kind.LEADERS:
            self._on_leaders(peer, decode_leaders(body))
        elif kind == Kind.PEER_CATCHUP_ORDER:
            self._peer_sender.on_order(peer, decode_peer_catchup_order(body))
        elif kind == Kind.NOT_RELAYED:
            self._relaying.on_refused(peer, decode_not_relayed(body))
        elif kind == Kind.OPENED:
            self._early_appends.on_peer_opened(peer, decode_opened(body))
        elif kind == Kind.HISTORY_QUESTION:
            self._group_bootstrap.on_question(peer, decode_history_question(body))
        elif kind == Kind.HISTORY_ANSWER:
            self._group_bootstrap.on_answer(peer, decode_history_answer(body))
        elif kind == Kind.CALL:
            self._calls.on_message(peer, body)
        else:
            raise ProtocolError(f"unknown message kind {kind}")
