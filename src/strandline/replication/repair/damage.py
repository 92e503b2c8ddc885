"""What one replica does about damage in its own log: let another one lead.

Why:    who cannot read a part of the log cannot serve it, nor give it to followers that lack it.
How:    met by a reader --> said once, mended (`repairs`), lead handed over
        found by the scrub --> the same, and it leads again only where nobody else can
            Not again and again: all replicas may be damaged, each somewhere else.
        It leads on all the same --> it gives up: what the others lack may be what cannot be read
            here, and they may elect somebody without this replica.
Owns:   whether the log is known to be damaged, and when that was last said.
Source: reliability reference 1b (disk corruption); decision 0007."""

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING

from strandline.base.errors import StorageError
from strandline.model.ids import BrokerId, Epoch, Index

if TYPE_CHECKING:
    from strandline.replication.replica.replica import Replica

COMPLAINT_INTERVAL_MS = 10_000
"""How often at most damage is said, and the lead given away for it."""

NO_EPOCH = Epoch(-1)

_log = logging.getLogger("strandline.replication")


class Damage:
    """See the module."""

    def __init__(self, replica: "Replica") -> None:
        self._replica = replica
        self._silence_ms = 0
        # The epoch in which it tried to hand over last.
        self._tried_epoch = NO_EPOCH
        self.is_known = False
        """Whether a part of the log is damaged here, and not mended yet."""
        # Who has lost some of it, too, and cannot serve it either.
        self._lost_at: frozenset[BrokerId] = frozenset()

    def met(self, error: OSError | StorageError) -> None:
        """Something in the log cannot be read."""
        replica = self._replica
        replica.host.repairs.suspect(replica, error)
        if self._may_complain():
            _log.error("%s: the log on this broker cannot be read: %s", replica.name, error)
            self._hand_over_soon()

    def found(self, *, lost_at: Collection[BrokerId] | None = None) -> None:
        """The log has damage: a scrub met it, or could not mend it, or this replica has come to
        lead with it. `lost_at`: those that have just said that they have lost some of it, too; None
        for as before."""
        self.is_known = True
        if lost_at is not None:
            self._lost_at = frozenset(lost_at)
        if self._replica.leading is not None and self._may_complain():
            self._hand_over_soon()

    def mended(self) -> None:
        """Nothing is damaged any more: followers may be waiting for it."""
        self.is_known = False
        self._lost_at = frozenset()
        if self._replica.leading is not None:
            self._replica.host.tell_soon(self._replica)

    def _may_complain(self) -> bool:
        now = self._replica.host.clock.monotonic_ms()
        if now < self._silence_ms:
            return False
        self._silence_ms = now + COMPLAINT_INTERVAL_MS
        return True

    def _hand_over_soon(self) -> None:
        """Not from within whatever was reading."""
        self._replica.host.clock.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        """Let the next replica in sync lead: in turn, since that one may be damaged as well. None
        that is known to be: the lead would go round for ever."""
        replica = self._replica
        if replica.leading is None or replica.raft.transferring_to is not None:
            return
        has_tried = self._tried_epoch == replica.epoch
        self._tried_epoch = replica.epoch
        spared = self._spared()
        others = [one for one in replica.in_sync() if one not in spared]
        if has_tried and self.is_known and self._may_be_replaced(spared):
            _log.warning("%s: damaged, and nobody takes over; giving up leadership", replica.name)
            replica.heard_ms = replica.host.clock.monotonic_ms()  # Its own turn comes after theirs.
            replica.on_quorum_lost()
        elif others:
            following = [broker for broker in others if broker > replica.self_id]
            replica.transfer_leadership(min(following or others))

    def _spared(self) -> frozenset[BrokerId]:
        """Who is not to lead instead: those that have lost the same, unless nothing is committed
        here for long: then what the others lack may be something else that cannot be read."""
        replica = self._replica
        assert replica.leading is not None
        commit = replica.raft.commit
        stalls = commit < replica.log.last_index and (
            replica.leading.age_ms(Index(commit + 1)) >= COMPLAINT_INTERVAL_MS
        )
        return frozenset((replica.self_id,)) | (frozenset() if stalls else self._lost_at)

    def _may_be_replaced(self, spared: frozenset[BrokerId]) -> bool:
        """Whether the other voters that are alive can elect somebody without these."""
        replica = self._replica
        liveness = replica.host.liveness
        others = set(replica.configuration.all_voters) - spared
        return replica.configuration.wins_election(
            [one for one in others if liveness.is_alive(one)]
        )
