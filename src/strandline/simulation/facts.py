"""What the world observes of the brokers and clients: the facts over which invariants are judged.

Why:    an invariant should read like the promise it checks; where its facts come from is not its
        business.
How:    plain values, made by `member.py` (what replicas do), `producers.py` and `consumers.py`
        (what clients were told) and `audit.py` (what the logs hold).
Source: design section 10."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from strandline.model.ids import BrokerId, Epoch, GroupId, Index, Offset


@dataclass(frozen=True, slots=True)
class LeaderKnown:
    """`broker` came to know that `leader` leads `group` in `epoch`."""

    broker: BrokerId
    group: GroupId
    epoch: Epoch
    leader: BrokerId


@dataclass(frozen=True, slots=True)
class LeaderElected:
    """`broker` leads `group` in `epoch` from now on; its log reaches to `last_index`."""

    broker: BrokerId
    group: GroupId
    epoch: Epoch
    last_index: Index
    epoch_of: Callable[[Index], Epoch]


@dataclass(frozen=True, slots=True)
class MarksMoved:
    """The marks of a replica, in the `life`-th process of its host."""

    broker: BrokerId
    life: int
    group: GroupId
    epoch: Epoch
    commit: Index
    commit_epoch: Epoch
    """The epoch of the entry at `commit`; 0 when that is not in the log."""
    high_watermark: Offset
    log_end_offset: Offset


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A leader said that a batch with these records is at `base_offset`."""

    group: GroupId
    producer: str
    is_idempotent: bool
    acks: int
    base_offset: Offset
    values: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class RecordsRead:
    """A replica answered a consumer that asked for `position`.

    `committed_end`: what lies below is committed, as this replica knew. `is_leader_read`: the
    replica leads and said that it may answer for the partition."""

    consumer: str
    broker: BrokerId
    life: int
    group: GroupId
    position: Offset
    records: Sequence[tuple[Offset, bytes]]
    committed_end: Offset
    high_watermark: Offset
    is_leader_read: bool


@dataclass(frozen=True, slots=True)
class AuditedBatch:
    """One batch in a log. `values` is empty for a marker."""

    index: Index
    index_count: int
    epoch: Epoch
    checksum: int
    base_offset: Offset
    values: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class LogAudited:
    """A whole log as it lies on the disk of a living broker. `is_final`: nothing more happens."""

    broker: BrokerId
    group: GroupId
    start_index: Index
    start_offset: Offset
    end_offset: Offset
    commit: Index
    high_watermark: Offset
    batches: Sequence[AuditedBatch]
    is_final: bool
