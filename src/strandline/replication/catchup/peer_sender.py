"""Sends entries of this broker's logs to other followers, on their leaders' orders.

Why:    see `fetch_sources`; this is the source's side.
How:    orders for one follower of one group form a queue. The first one proceeds once the lane has
        room and, unless a write quorum waits for the entries, the throttle admits it. Then this
        broker asks its core again whether it may send them.
            A compacted log's bytes may differ from the leader's: this broker sends its own, in
        several appends if one would be too large.
            An order that cannot be obeyed drops the whole queue: the leader notices, after
        `ORDER_MS_MAX` more than for its own appends.
Owns:   the waiting orders; one per broker.
Source: design section 5; decision 0022."""

import logging
from collections import deque
from collections.abc import Mapping
from functools import partial

import msgspec

from strandline.base.disk import Buffer
from strandline.base.errors import StorageError
from strandline.base.network import Lane
from strandline.model.ids import BrokerId, GroupId, Index
from strandline.raft.messages import AppendRequest, PeerAppend, PeerCatchupRequest, Run
from strandline.replication.leader.follower_stream import ORDER_MS_MAX
from strandline.replication.replica.entries import Entries, cut_before
from strandline.replication.replica.replica import Replica
from strandline.replication.shared import Shared
from strandline.replication.wire import AppendHead, Kind, PeerCatchupOrder, encode_append_head

ORDERS_MAX = 256
"""Orders that may wait for one follower of one group; a leader's window holds no more."""

_Reader = tuple[GroupId, BrokerId]

_log = logging.getLogger("strandline.replication")


class PeerSender:
    """See the module."""

    def __init__(self, replicas: Mapping[GroupId, Replica], shared: Shared) -> None:
        self._replicas = replicas
        self._clock = shared.clock
        self._network = shared.network
        self._queues = shared.queues
        self._throttle = shared.throttle
        self._append_bytes_max = shared.settings.append_bytes_max
        # {(group, follower): [(order, when it came)]}
        self._orders: dict[_Reader, deque[tuple[PeerCatchupRequest, int]]] = {}
        self.peer_sent_bytes = 0

    def on_order(self, leader: BrokerId, order: PeerCatchupOrder) -> None:
        """The leader of a group orders this broker's replica to send entries to another one."""
        replica = self._replicas.get(order.group)
        if replica is not None:
            replica.on_message(leader, order.request)

    def on_peer_append(self, fetch_source: BrokerId, head: AppendHead, payload: memoryview) -> None:
        """Another follower has sent entries. Raises ProtocolError if they differ from the leader's
        description."""
        replica = self._replicas.get(head.group)
        if replica is not None:
            entries = Entries.checked(payload, head.request)
            replica.on_append(fetch_source, PeerAppend(head.request), entries)

    def add(self, replica: Replica, order: PeerCatchupRequest) -> None:
        """Queue an order, and obeys it now if it is the only one."""
        reader = replica.group, order.to
        orders = self._orders.setdefault(reader, deque())
        now = self._clock.monotonic_ms()
        if orders and now - orders[0][1] > ORDER_MS_MAX:
            orders.clear()  # Nothing resumed them: this broker has led the group meanwhile.
        if orders and orders[-1][0].request.runs[-1].last_index != order.request.prev_index:
            orders.clear()  # The leader has started over: it knows better what the follower has.
        if len(orders) < ORDERS_MAX:
            orders.append((order, now))
        assert len(orders) <= ORDERS_MAX
        if len(orders) == 1:
            self._go_on(reader)

    @property
    def order_count(self) -> int:
        """How many orders wait."""
        return sum(map(len, self._orders.values()))

    def on_connected(self, peer: BrokerId) -> None:
        """Go on with the orders for `peer`."""
        for reader in [one for one in self._orders if one[1] == peer]:
            self._go_on(reader)

    def stop(self) -> None:
        """Drop all orders."""
        self._orders.clear()

    def _go_on(self, reader: _Reader) -> None:
        group, peer = reader
        orders = self._orders.get(reader)
        go_on = partial(self._go_on, reader)
        while orders:
            replica = self._replicas.get(group)
            order, came_ms = orders[0]
            is_late = self._clock.monotonic_ms() - came_ms > ORDER_MS_MAX
            if replica is None or is_late or not _may_send(replica, order):
                break
            if not self._network.is_connected(peer, Lane.BULK):
                return
            if not self._queues.has_room(peer):
                self._queues.wait(peer, group, go_on)
                return
            if order.is_throttled and not self._throttle.admits(reader, go_on):
                return
            sent = self._send(replica, order)
            if sent is None:
                break
            if order.is_throttled:
                self._throttle.spend(peer, sent.size_bytes)
            orders.popleft()
            if sent.rest is not None:
                orders.appendleft((sent.rest, self._clock.monotonic_ms()))
        if orders:
            _log.info("group %d: dropped %d orders to serve broker %d", group, len(orders), peer)
        self._orders.pop(reader, None)

    def _send(self, replica: Replica, order: PeerCatchupRequest) -> "_PreparedAppend | None":
        try:
            if order.may_differ:
                append = _read_compacted(replica, order, self._append_bytes_max)
            else:
                append = _read(replica, order)
        except (OSError, StorageError) as error:
            replica.on_unreadable(error)
            return None
        if append is None:
            return None
        head = encode_append_head(AppendHead(replica.group, append.request), Kind.PEER_APPEND)
        size = len(head) + append.size_bytes
        on_handed = partial(self._queues.on_handed, order.to, size)
        if not self._network.send(order.to, Lane.BULK, (head, *append.parts), on_handed):
            return None
        self._queues.add(order.to, size)
        self.peer_sent_bytes += size
        return append


class _PreparedAppend(msgspec.Struct, frozen=True, gc=False):
    """One append to send: `parts` hold the entries of `request`. `rest`: what remains of the
    order."""

    request: AppendRequest
    parts: list[Buffer]
    size_bytes: int
    rest: PeerCatchupRequest | None = None


def _may_send(replica: Replica, order: PeerCatchupRequest) -> bool:
    is_able = replica.failed is None and not replica.is_leader
    return is_able and replica.raft.may_serve_peer(order.request)


def _read(replica: Replica, order: PeerCatchupRequest) -> _PreparedAppend | None:
    """The ordered entries, from as many segments as hold them; None if their size differs here."""
    request = order.request
    index = Index(request.prev_index + 1)
    last_index = request.runs[-1].last_index
    left_bytes = order.size_bytes
    parts: list[Buffer] = []
    while index <= last_index:
        entries = cut_before(replica.log.read_entries(index, left_bytes), Index(last_index + 1))
        left_bytes -= len(entries.data)
        if entries.first_index != index or left_bytes < 0:
            return None
        parts.append(entries.data)
        index = Index(entries.last_index + 1)
    return _PreparedAppend(request, parts, order.size_bytes) if not left_bytes else None


def _read_compacted(
    replica: Replica, order: PeerCatchupRequest, bytes_max: int
) -> _PreparedAppend | None:
    """As many of the ordered entries as fit one append; None if no batch begins at the first
    one."""
    request = order.request
    first_index = Index(request.prev_index + 1)
    end = request.runs[-1].last_index
    entries = cut_before(replica.log.read_entries(first_index, bytes_max), Index(end + 1))
    if entries.first_index != first_index or entries.last_index > end:
        return None
    head, rest = split_after(request, entries.last_index)
    left = None if rest is None else msgspec.structs.replace(order, request=rest)
    return _PreparedAppend(head, [entries.data], len(entries.data), left)


def split_after(request: AppendRequest, index: Index) -> tuple[AppendRequest, AppendRequest | None]:
    """(an append up to `index`, one with the rest or None)."""
    if index >= request.runs[-1].last_index:
        return request, None
    at = next(number for number, run in enumerate(request.runs) if run.last_index >= index)
    epoch = request.runs[at].epoch
    head = msgspec.structs.replace(
        request,
        runs=(*request.runs[:at], Run(epoch, index)),
        configurations=tuple(one for one in request.configurations if one[0] <= index),
    )
    rest = msgspec.structs.replace(
        request,
        prev_index=index,
        prev_epoch=epoch,
        runs=tuple(run for run in request.runs if run.last_index > index),
        configurations=tuple(one for one in request.configurations if one[0] > index),
    )
    return head, rest
