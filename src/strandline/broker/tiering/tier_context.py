"""What the leader's work on a partition asks of its broker, and what a topic wants.

Owns:   nothing.
Source: decision 0059."""

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from strandline.base.clock import Clock
from strandline.base.errors import StorageError
from strandline.broker.tiering.uploads import Uploads
from strandline.config.topic_tiering import NO_LIMIT
from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId, Epoch, GroupId, Offset
from strandline.network.calls import Calls
from strandline.protocol.errors import Error
from strandline.raft.group.configuration import Configuration
from strandline.storage.log.log import Log
from strandline.tiered.state.commands import Command
from strandline.tiered.state.tier import TierState
from strandline.tiered.state.transitions import Refusal


class Deleted(Protocol):
    """Is told how a deletion ended."""

    def __call__(self, *, is_done: bool) -> None:
        """Whether all of the objects are gone."""


class CopyLag(NamedTuple):
    """When a closed segment is due; see `remote.copy.lag.ms` and `remote.copy.lag.bytes`."""

    lag_ms: int
    """0: at once; -1: never by age."""
    lag_bytes: int
    """0: at once; -1: never by size."""

    def wait_ms(self, *, age_ms: int, bytes_after: Callable[[], int], recheck_ms: int) -> int:
        """For how long at least it is not due; 0 if it is."""
        if self.lag_ms == 0 or self.lag_bytes == 0:
            return 0
        if self.lag_bytes > 0 and bytes_after() >= self.lag_bytes:
            return 0
        if self.lag_ms < 0:
            return recheck_ms
        return min(max(0, self.lag_ms - age_ms), recheck_ms)


class TierPlan(NamedTuple):
    """What a topic wants of its buckets."""

    buckets: tuple[str, ...] = ()
    """Those that its placement policy allows; none if it has no tiered storage."""
    copies_min: int = 0
    lag: CopyLag = CopyLag(0, 0)
    lag_max_ms: int = 0
    """`remote.copy.lag.max.ms`: then an alarm is raised."""
    held_bytes_max: int = NO_LIMIT
    """`remote.copy.lag.max.bytes`: of closed segments that stay for the buckets; -1: no limit."""
    is_refusing_when_full: bool = False
    """Whether writes are refused above that limit."""
    is_copying_off: bool = False
    is_deleting_all: bool = False
    """The topic has no tiered storage any more: its objects go."""


class Tier(Protocol):
    """A replica's part of the tier: `ReplicaTier`."""

    state: TierState
    is_known: bool
    """Whether the state is the partition's; otherwise nothing may rest on it."""

    def propose(self, command: Command, done: Callable[[Error, Refusal | None], None]) -> None:
        """Append the command; `done` once it is applied or refused, or may never be committed."""


class LedReplica(Protocol):
    """What the leader's work asks of its replica; see `Replica`."""

    group: GroupId
    self_id: BrokerId
    log: Log

    @property
    def name(self) -> str: ...
    @property
    def tier(self) -> Tier: ...
    @property
    def epoch(self) -> Epoch: ...
    @property
    def configuration(self) -> Configuration: ...
    @property
    def committed_end(self) -> Offset: ...
    @property
    def outlived_offset(self) -> Offset: ...
    def may_count(self, broker: BrokerId) -> bool: ...
    def on_unreadable(self, error: OSError | StorageError) -> None: ...
    def refuse_writes(self, reason: str) -> None: ...


class TierContext(Protocol):
    """See the module."""

    broker_id: BrokerId
    clock: Clock
    rng: random.Random
    calls: Calls
    uploads: Uploads
    interval_ms: int
    recheck_ms: int
    """The longest time between two looks at retention."""
    stall_ms: int
    delete_grace_ms: int
    object_bytes_max: int

    def has_bucket(self, bucket: str) -> bool:
        """Whether this broker's file has it."""

    def generation(self, bucket: str) -> int:
        """How often the bucket was replaced, as far as this broker knows."""

    def take_turn(self, bucket: str) -> bool:
        """Whether one more upload to a bucket may begin; it counts as under way if so."""

    def take_rewrite_turn(self, group: GroupId, bucket: str) -> bool:
        """Whether objects of this partition may be written again there now: of all partitions that
        a broker leads, one at a time may do so in a bucket, until `end_rewrite`."""

    def end_rewrite(self, group: GroupId, bucket: str) -> None:
        """It needs its turn no more, if it has it."""

    def labels_of(self, broker: BrokerId) -> Labels:
        """Where a broker is."""

    def bucket_labels(self, bucket: str) -> Labels:
        """Where a bucket is."""

    def place_of(self, group: GroupId) -> tuple[str, str, int]:
        """(cluster id, topic id, partition), as names of objects have them."""

    def durable_end(self, replica: LedReplica) -> Offset:
        """All records below it are committed, and durable here."""

    def may_delete(self, replica: LedReplica, bucket: str, name: str) -> bool:
        """Whether the bucket's newest export, if there are exports, does not count this object."""

    def delete(self, bucket: str, names: Sequence[str], done: Deleted) -> None:
        """Delete objects in the background."""
