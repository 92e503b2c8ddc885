"""What a broker needs to know to hold a replica of a group.

Source: design section 5."""

from dataclasses import dataclass

from strandline.model.ids import GroupId
from strandline.raft.group.configuration import Configuration
from strandline.replication.host.election_priority import ElectionPriority
from strandline.storage.config import LogConfig

LAG_MS_MAX = 30_000
"""Kafka's default of `replica.lag.time.max.ms`."""


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """`directory` is relative to `logs`.

    `is_lost`: this broker held the replica before, on a disk that is gone. `asks_voters`: whether
    that is so, nobody here knows; where nothing is remembered, see `group_bootstrap`. `grant`: the
    last
    that the controller began; who has forgotten what it promised lives in no epoch before it.
    `rejoined`: the last time that this broker took part again, as the controller counts; 0 for
    never. `voter_count_min`: see `Appender`. `lag_ms_max`: see `Replica`."""

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
