"""Tells leaders of replicas that were not open here when they were sent something.

Why:    what comes for a group that is not open is dropped, and a leader that hears nothing asks
        less and less often: a log that was opened late, or was copied anew, would wait for seconds.
How:    an append or a vote request for a group that is not here is noted; when the group is
        opened, who sent it is told so, and asks how far the replica is. Told once, several groups
        in one message: where that is lost, the leader's own asking remains.
Owns:   who sent something for which group that is not here; one per broker.
Source: design section 5."""

from typing import TYPE_CHECKING

from strandline.base.network import Lane
from strandline.model.ids import BrokerId, GroupId
from strandline.replication.wire import Kind, encode_control

if TYPE_CHECKING:
    from strandline.replication.host.replication import Replication

MISSED_COUNT_MAX = 50_000


class EarlyAppends:
    """See the module."""

    def __init__(self, host: "Replication") -> None:
        self._host = host
        self._missed: dict[GroupId, BrokerId] = {}
        self._to_tell: dict[BrokerId, list[GroupId]] = {}

    def on_missed(self, peer: BrokerId, group: GroupId) -> None:
        """Something of `peer` was dropped, for the group is not open here."""
        if len(self._missed) < MISSED_COUNT_MAX:
            self._missed[group] = peer

    def on_opened(self, group: GroupId) -> None:
        """The group is open here."""
        peer = self._missed.pop(group, None)
        if peer is None:
            return
        if not self._to_tell:
            self._host.clock.call_soon(self._tell)
        self._to_tell.setdefault(peer, []).append(group)

    def on_told(self, peer: BrokerId, groups: list[GroupId]) -> None:
        """These groups are open on `peer` now."""
        for group in groups:
            replica = self._host.replicas.get(group)
            if replica is not None and replica.leading is not None:
                replica.leading.ask(peer)

    def _tell(self) -> None:
        to_tell, self._to_tell = self._to_tell, {}
        for peer, groups in to_tell.items():
            self._host.network.send(peer, Lane.CONTROL, [encode_control(Kind.OPENED, groups)])
