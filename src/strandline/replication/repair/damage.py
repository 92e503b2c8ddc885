"""Lets another replica lead while a part of this one's log is damaged.

Why:    a leader cannot serve an unreadable part of its log to clients or followers.
How:    a reader meets damage ----> log it, request repair, hand leadership over
        the scrub finds damage ---> the same; it leads again only if no other replica can
        the hand-over fails ------> step down: followers may lack what is unreadable here
            At most once in `COMPLAINT_INTERVAL_MS`: all replicas may be damaged, each elsewhere.
Owns:   whether the log is known to be damaged, and when that was last logged.
Source: reliability reference 1b (disk corruption); decision 0007."""

import logging
from collections.abc import Callable, Collection
from typing import Protocol

from strandline.base.clock import Clock
from strandline.base.errors import StorageError
from strandline.model.ids import BrokerId, Epoch, Index
from strandline.replication.leader.leadership import Leadership
from strandline.replication.liveness.peer_contacts import PeerContacts
from strandline.replication.replica.state import ReplicaState

COMPLAINT_INTERVAL_MS = 10_000
"""The shortest time between two complaints, and two hand-overs, about damage."""

NO_EPOCH = Epoch(-1)

_log = logging.getLogger("strandline.replication")


class DamagedReplica(Protocol):
    """What a damaged replica can do about it."""

    leadership: Leadership | None

    def in_sync(self) -> list[BrokerId]:
        """The voters that are alive and not behind."""

    def transfer_leadership(self, to: BrokerId) -> None:
        """Hand over to `to`."""

    def on_quorum_lost(self) -> None:
        """Give up leadership."""

    def report_marks_soon(self) -> None:
        """Send the followers the marks, and what they lack."""


class Damage:
    """See the module; one per replica. `suspect`: has the log looked at for what is wrong."""

    def __init__(
        self,
        replica: ReplicaState,
        owner: DamagedReplica,
        *,
        clock: Clock,
        contacts: PeerContacts,
        suspect: Callable[[OSError | StorageError], None],
    ) -> None:
        self._replica = replica
        self._owner = owner
        self._clock = clock
        self._contacts = contacts
        self._suspect = suspect
        self._complains_again_ms = 0
        # The epoch of the last attempt to hand over.
        self._tried_epoch = NO_EPOCH
        # Brokers that have lost some of the same entries, and cannot serve them either.
        self._lost_at: frozenset[BrokerId] = frozenset()

    def on_read_error(self, error: OSError | StorageError) -> None:
        """A reader could not read a part of the log."""
        replica = self._replica
        self._suspect(error)
        if self._may_complain():
            _log.error("%s: cannot read the log on this broker: %s", replica.name, error)
            self._hand_over_soon()

    def on_found(self, *, lost_at: Collection[BrokerId] | None = None) -> None:
        """A scrub found or could not repair damage, or this replica has come to lead with it.
        `lost_at`: brokers that reported that they lost some of it, too; None: unchanged."""
        self._replica.is_damaged = True
        if lost_at is not None:
            self._lost_at = frozenset(lost_at)
        if self._owner.leadership is not None and self._may_complain():
            self._hand_over_soon()

    def on_repaired(self) -> None:
        """All damage is repaired: serve the followers that may wait for it."""
        self._replica.is_damaged = False
        self._lost_at = frozenset()
        if self._owner.leadership is not None:
            self._owner.report_marks_soon()

    def _may_complain(self) -> bool:
        now = self._clock.monotonic_ms()
        if now < self._complains_again_ms:
            return False
        self._complains_again_ms = now + COMPLAINT_INTERVAL_MS
        return True

    def _hand_over_soon(self) -> None:
        """Hand over in a later pass, outside of the read that failed."""
        self._clock.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        """Hand over to the next replica in sync that is not known to be damaged; the next time to
        the one after it."""
        replica = self._replica
        if self._owner.leadership is None or replica.raft.transferring_to is not None:
            return
        has_tried = self._tried_epoch == replica.epoch
        self._tried_epoch = replica.epoch
        excluded = self._excluded()
        others = [one for one in self._owner.in_sync() if one not in excluded]
        if has_tried and self._replica.is_damaged and self._may_be_replaced(excluded):
            _log.warning("%s: damaged, and no replica takes over; stepping down", replica.name)
            replica.last_contact_ms = self._clock.monotonic_ms()  # The others stand first.
            self._owner.on_quorum_lost()
        elif others:
            following = [broker for broker in others if broker > replica.self_id]
            self._owner.transfer_leadership(min(following or others))

    def _excluded(self) -> frozenset[BrokerId]:
        """The brokers that should not lead instead: this one, and those that have lost the same
        entries.

        If commits stall, only this one: followers may lack other entries that are unreadable
        here."""
        replica = self._replica
        leadership = self._owner.leadership
        assert leadership is not None
        commit = replica.raft.commit
        stalls = commit < replica.log.last_index and (
            leadership.followers.age_ms(Index(commit + 1)) >= COMPLAINT_INTERVAL_MS
        )
        return frozenset((replica.self_id,)) | (frozenset() if stalls else self._lost_at)

    def _may_be_replaced(self, excluded: frozenset[BrokerId]) -> bool:
        """Whether the other living voters can elect a leader without `excluded`."""
        replica = self._replica
        others = set(replica.configuration.all_voters) - excluded
        return replica.configuration.wins_election(
            [one for one in others if self._contacts.is_alive(one)]
        )
