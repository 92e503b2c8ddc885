"""Hands leadership of one replica over, and keeps its requests until another replica leads.

Why:    a client that hears at once that this replica leads no more cannot ask another one yet: the
        next leader is about to be elected. Followers acknowledge most earlier appends within the
        time that the transfer takes.
How:    handed over --another leader is heard--> held requests get its name
                    --this replica leads again--> held requests are appended

        Requests that wait for a commit go on waiting, until the core's hand-over or the next
        leader's marks commit their entries. They fail if the log is cut, a third leader comes, or
        time runs out. If the replica hears no next leader for too long, it stands for election
        itself.
            Until then this broker's heartbeats still speak for the epoch that is over, so its
        followers do not stand beside the transfer target.
Owns:   whether the next leader is awaited; one per replica.
Source: KIP-951 (the new leader in the refusal); decision 0013."""

from collections.abc import Collection
from typing import Protocol

from strandline.model.ids import NO_BROKER, BrokerId, Epoch
from strandline.protocol.errors import Error
from strandline.raft.events import AbandonTransfer, DelegationsTimedOut, Event, TransferLeadership
from strandline.replication.leader.appender import Appender
from strandline.replication.replica.state import ReplicaState
from strandline.replication.shared import Shared

TRANSFER_TIMEOUT_MS = 3_000
WAIT_MS_MAX = 3_000
"""How long requests wait for another leader, or for its commits."""


class LedReplica(Protocol):
    """What a hand-over asks of its replica."""

    def step(self, event: Event) -> None:
        """Step the core and perform its effects."""

    def in_sync(self) -> list[BrokerId]:
        """The voters that are alive and not behind."""

    def end_leadership(self) -> None:
        """Lead no more; requests go on waiting."""

    def stop_leading(self) -> None:
        """Lead no more; requests that wait fail."""


class LeadershipTransfer:
    """See the module."""

    __slots__ = (
        "_appender",
        "_asked_count",
        "_clock",
        "_count",
        "_liveness",
        "_owner",
        "_replica",
        "is_under_way",
    )

    def __init__(
        self, replica: ReplicaState, owner: LedReplica, appender: Appender, shared: Shared
    ) -> None:
        self._replica = replica
        self._owner = owner
        self._appender = appender
        self._clock = shared.clock
        self._liveness = shared.liveness
        self.is_under_way = False
        """Whether the next leader is not known yet."""
        # How often this replica has handed over: a timer belongs to one hand-over.
        self._count = 0
        # How often it has begun a transfer, for the same reason.
        self._asked_count = 0

    def to_the_best(self, avoid: Collection[BrokerId]) -> BrokerId:
        """See `Replica.hand_over`."""
        replica = self._replica
        if not replica.is_leader or replica.raft.transferring_to is not None:
            return NO_BROKER
        others = replica.election_priority.best(
            one for one in self._owner.in_sync() if one not in (replica.self_id, *avoid)
        )
        if not others:
            return NO_BROKER
        to = others[replica.group % len(others)]
        self.to(to)
        return to

    def to(self, to: BrokerId) -> None:
        """Hand over to `to`, a voter."""
        replica = self._replica
        # The epoch that ends: if the target has everything already, the step ends it.
        epoch = replica.epoch
        self._asked_count += 1
        count = self._asked_count
        self._owner.step(TransferLeadership(to))
        if replica.is_leader:
            patience_ms = self._liveness.promise_patience_ms
            self._clock.call_later(patience_ms, lambda: self._hand_over_anyhow(count))
        self._clock.call_later(TRANSFER_TIMEOUT_MS, lambda: self._lead_on(epoch))

    def begin(self) -> None:
        """The replica has handed over: it leads no more, and the next leader is not known yet."""
        self._owner.end_leadership()
        assert not self._replica.is_leader
        self.is_under_way = True
        self._count += 1
        count, epoch = self._count, self._replica.epoch
        patience_ms = self._liveness.on_handed_over(self._replica)
        self._clock.call_later(patience_ms, lambda: self._stand_again(epoch))
        self._clock.call_later(WAIT_MS_MAX + patience_ms, lambda: self._give_up(count))

    def on_follower(self, leader: BrokerId) -> None:
        """The replica follows `leader`; NO_BROKER while it stands for election itself."""
        assert self.is_under_way and not self._replica.is_leader
        if leader != NO_BROKER:
            self.is_under_way = False
            self._appender.fail(Error.NOT_LEADER_OR_FOLLOWER)

    def on_leader(self) -> None:
        """The replica leads again."""
        assert self._replica.is_leader
        self.is_under_way = False
        self._appender.on_room()

    def end(self) -> None:
        """The replica awaits no leader any more."""
        self.is_under_way = False

    def _hand_over_anyhow(self, count: int) -> None:
        """Hand over without the votes of voters that are away, or of an earlier release."""
        if count == self._asked_count and self._replica.is_leader:
            self._owner.step(DelegationsTimedOut())

    def _lead_on(self, epoch: Epoch) -> None:
        """The other one does not keep up."""
        replica = self._replica
        if replica.is_leader and replica.epoch == epoch:
            self._owner.step(AbandonTransfer())
            self._appender.on_room()

    def _stand_again(self, epoch: Epoch) -> None:
        replica = self._replica
        if self.is_under_way and replica.epoch == epoch:
            self._owner.step(AbandonTransfer())
            if self.is_under_way and replica.epoch == epoch:
                # It was removed, and may not stand: its heartbeats shall not keep others from it.
                self._liveness.on_following(replica)

    def _give_up(self, count: int) -> None:
        if count == self._count and not self._replica.is_leader:
            self._owner.stop_leading()
