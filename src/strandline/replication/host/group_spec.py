"""The parameters with which a broker opens a replica of a group.

Source: design section 5."""

from dataclasses import dataclass

from strandline.model.cluster import BucketRange
from strandline.model.ids import GroupId
from strandline.raft.group.configuration import Configuration
from strandline.replication.host.election_priority import ElectionPriority
from strandline.replication.replica.snapshot_gate import SnapshotGate
from strandline.storage.config import LogConfig

LAG_MS_MAX = 30_000
"""Kafka's default of `replica.lag.time.max.ms`."""


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """`directory`: relative to `logs`.

    `is_lost`: this broker held the replica on a disk that is lost. `asks_voters`: it cannot tell;
    without state it asks the other voters (`bootstrap`). `grant`: the last one that the controller
    began; a replica that lost its state takes part in no epoch before it. `rejoined`: the
    controller's number of the last rejoining; 0: none. `voter_count_min`: see `Appender`.
    `lag_ms_max`: see `Replica`. `snapshots`: of what the log's records make; None: the log is all
    that there is. `start_offset`: where the log begins that has nothing yet; then
    `first_grant` is that of the group's first epochs, and `history` the records before, in
    buckets."""

    group: GroupId
    name: str
    directory: str
    configuration: Configuration
    log: LogConfig
    election_priority: ElectionPriority
    is_lost: bool = False
    asks_voters: bool = False
    grant: int = 0
    rejoined: int = 0
    voter_count_min: int = 0
    lag_ms_max: int = LAG_MS_MAX
    snapshots: SnapshotGate | None = None
    start_offset: int = 0
    first_grant: int = 0
    history: tuple[BucketRange, ...] = ()
