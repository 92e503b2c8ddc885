"""What one replica reports to the broker that holds it.

Why:    a replica must not know `Replication`, which holds all of them. These protocols name the few
        things that it asks of its broker about itself.
How:    generic over the type of the replica, so that this file imports none.
Owns:   nothing.
Source: STYLE, "Rooms inside"."""

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from strandline.base.errors import StorageError
from strandline.model.ids import BrokerId, Epoch, GroupId, Index
from strandline.raft.group.configuration import Configuration
from strandline.raft.messages import Fenced, PeerCatchupRequest

R_contra = TypeVar("R_contra", contravariant=True)


class LedReplicas(Protocol[R_contra]):
    """The replicas that the broker leads."""

    def add(self, replica: R_contra) -> None:
        """The replica leads."""

    def remove(self, replica: R_contra) -> None:
        """It leads no more."""

    def has_sent(self, replica: R_contra) -> None:
        """An append has left, and waits for its acknowledgement."""


class CompactionQueue(Protocol[R_contra]):
    """The replicas whose logs wait for compaction."""

    def add(self, replica: R_contra) -> None:
        """Compact the replica's log, if its topic asks for that."""


class PeerSends(Protocol[R_contra]):
    """The entries that the broker sends to followers of other leaders."""

    def add(self, replica: R_contra, order: PeerCatchupRequest) -> None:
        """Send what a leader has ordered."""


class GapRepairs(Protocol[R_contra]):
    """The logs that the broker repairs."""

    def suspect(self, replica: R_contra, error: OSError | StorageError) -> None:
        """A read of the log has failed."""


class Fences(Protocol):
    """The fences that the controller has asked for."""

    def on_fenced(self, group: GroupId, message: Fenced) -> None:
        """The core has moved to the epoch of a fence, durably."""


class ReplicaHost(Protocol[R_contra]):
    """See the module. Each member is read by `Replica` alone."""

    @property
    def led(self) -> LedReplicas[R_contra]: ...

    @property
    def compactor(self) -> CompactionQueue[R_contra]: ...

    @property
    def peer_sender(self) -> PeerSends[R_contra]: ...

    @property
    def repairs(self) -> GapRepairs[R_contra]: ...

    @property
    def fencing(self) -> Fences: ...

    @property
    def on_elected(self) -> Iterable[Callable[[R_contra], None]]: ...

    @property
    def on_configuration(self) -> Iterable[Callable[[R_contra, Index, Configuration], None]]: ...

    @property
    def on_rejoin_asked(self) -> Iterable[Callable[[R_contra], None]]: ...

    @property
    def on_stale_log(self) -> Iterable[Callable[[R_contra], None]]: ...

    def announce(self, replica: R_contra, epoch: Epoch) -> None:
        """Tell every broker that this one leads the group."""

    def learn_leader(self, group: GroupId, epoch: Epoch, leader: BrokerId) -> None:
        """A replica here follows `leader`."""

    def on_serving(self, replica: R_contra, *, is_serving: bool) -> None:
        """The replica begins or ceases to answer for its partition."""

    def on_full(self, replica: R_contra, error: OSError | StorageError) -> None:
        """The disk had no space for something; the replica tries again."""

    def on_replica_failed(self, replica: R_contra) -> None:
        """The replica is out of the group until the broker starts anew."""
