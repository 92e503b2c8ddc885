"""How one replica hands over, and what it keeps for its clients until another one leads.

Why:    who is told at once that this replica leads no more can ask nobody yet: the next leader is
        about to be elected. And what was appended before is mostly acknowledged within the time
        that the order to stand takes.
How:    handed over --> requests are held, and told who leads as soon as that is heard
                    --> appended after all, where this replica leads again
            Requests that wait for a commit go on waiting, until the core's hand-over or the next
        leader's marks commit their entries. They fail if the log is cut, a third leader comes, or
        time runs out. Nobody who leads next is heard for too long: this replica stands.
            This broker's heartbeats go on speaking for the epoch that is over until then: its
        followers shall not stand beside the one that was chosen.
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
"""How long anything waits for another leader, or for its commits."""


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
        # How often this replica has handed over: timers are of one time.
        self._count = 0
        # How often a transfer was begun: as above.
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
        """The replica has handed over: it leads no more, and nobody else does yet."""
        self._owner.end_leadership()
        assert not self._replica.is_leader
        self.is_under_way = True
        self._count += 1
        count, epoch = self._count, self._replica.epoch
        patience_ms = self._liveness.on_handed_over(self._replica)
        self._clock.call_later(patience_ms, lambda: self._stand_again(epoch))
        self._clock.call_later(WAIT_MS_MAX + patience_ms, lambda: self._give_up(count))

    def on_follower(self, leader: BrokerId) -> None:
        """The replica follows `leader`, or nobody: as long as it stands for election itself."""
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
        """Nothing is waited for any more."""
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
