"""Tells a leader or candidate when a replica that missed its messages is open.

Why:    messages for a group that is not open are dropped. A leader without answers probes ever less
        often: a log that was opened late would wait for seconds. A new group's first candidate
        would wait for an election time-out: the controller's own broker applies the record of a new
        topic first, and asks for pre-votes before any other broker has the group.
How:    this broker notes the sender of an append or vote request. When the group opens, it tells
        that broker. A leader then probes the replica; the first candidate of a new group asks for
        pre-votes again. If that message is lost, the leader's own probes remain, and the
        candidate's timer.
Owns:   {group that is not open: the last sender}; one per broker.
Source: design section 5."""

from collections.abc import Mapping

from strandline.base.clock import Clock
from strandline.model.ids import BrokerId, GroupId
from strandline.replication.host.control_outbox import ControlOutbox
from strandline.replication.replica.replica import Replica
from strandline.replication.wire import Kind

MISSED_COUNT_MAX = 50_000


class EarlyAppends:
    """See the module."""

    def __init__(
        self, replicas: Mapping[GroupId, Replica], clock: Clock, outbox: ControlOutbox
    ) -> None:
        self._replicas = replicas
        self._clock = clock
        self._outbox = outbox
        self._missed: dict[GroupId, BrokerId] = {}
        self._to_notify: dict[BrokerId, list[GroupId]] = {}

    def on_missed(self, peer: BrokerId, group: GroupId) -> None:
        """A message of `peer` was dropped, because the group is not open here."""
        if len(self._missed) < MISSED_COUNT_MAX:
            self._missed[group] = peer

    def on_opened(self, group: GroupId) -> None:
        """The group is open here."""
        peer = self._missed.pop(group, None)
        if peer is None:
            return
        if not self._to_notify:
            self._clock.call_soon(self._notify)
        self._to_notify.setdefault(peer, []).append(group)

    def on_peer_opened(self, peer: BrokerId, groups: list[GroupId]) -> None:
        """These groups are open on `peer` now."""
        for group in groups:
            replica = self._replicas.get(group)
            if replica is not None and replica.leadership is not None:
                replica.leadership.sender.ask(peer)
            elif replica is not None:
                replica.on_voter_opened()

    def _notify(self) -> None:
        to_notify, self._to_notify = self._to_notify, {}
        for peer, groups in to_notify.items():
            self._outbox.send_now(peer, Kind.OPENED, groups)
