"""The tables of a scenario's file: what each may say, and what it means.

Why:    a key that is not known is refused, with the table that it stands in.
Owns:   nothing.
Source: design section 10; STYLE, "Configuration"."""

from typing import Literal

import msgspec

from strandline.placement.policy.document import Promotion
from strandline.simulation.swarm.families import Swarm


class Row(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A table of the file."""


class FaultRow(Row):
    """`[[faults]]`. `seed`: of what the fault draws, such as which broker it strikes."""

    at_ms: int
    kind: str
    duration_ms: int = 1_000
    seed: int = 0


class GroupRow(Row):
    """`[[groups]]`: numbered from 1 in the order of the file. Brokers are numbered from 1."""

    voters: list[int]
    observers: list[int] = []
    min_insync: int = 2
    policy: str = ""
    promotion: Promotion = ""
    """When observers stand in for voters; only with `shrinks_voters`."""


class ProducerRow(Row):
    """`[[producers]]`."""

    group: int = 1
    acks: int = -1
    is_idempotent: bool = True
    interval_ms: int = 40
    value_bytes_max: int = 300
    first_sequence: int = 0


class ChangeRow(Row):
    """`[[changes]]`: another policy for a group, or another region for a broker, which starts anew
    with it (but for `at_run_time`), or `decommission` or `maintenance` of a broker, true or false,
    or the `foreign_bytes` on its disk; or what a person says of a zone or region (`where`: "east",
    "east/a"). Only with `lost_after_ms`."""

    at_ms: int
    group: int | None = None
    policy: str = ""
    broker: int | None = None
    region: str = ""
    at_run_time: bool = False
    decommission: bool | None = None
    maintenance: bool | None = None
    foreign_bytes: int | None = None
    where: str = ""
    ruling: Literal["", "hold", "release", "lost"] = ""
    for_ms: int = -1
    """For how long that holds; -1: without an end."""


class ScenarioFile(Row):
    """The whole file. `regions[i]` is where broker i + 1 lives; `one_way_ms`: {"east-west": ...},
    both ways."""

    seed: int = 1
    swarm: Swarm = Swarm.USUAL
    """Which family the seed is of; of any but "usual" a file says the faults, and nothing else."""
    has_brokers: bool | None = None
    active_ms: int | None = None
    regions: list[str] | None = None
    zones: list[str] = []
    """In which zone of its region each broker is; only with `lost_after_ms`."""
    one_way_ms: dict[str, float] = {}
    jitter_ratio: float | None = None
    loss_ratio: float | None = None
    bytes_per_ms: int | None = None
    consumer_count: int | None = None
    group_consumer_count: int | None = None
    key_count: int | None = None
    """How many keys records have, in logs that are compacted; 0 where they are not."""
    tombstone_ratio: float | None = None
    """How many records delete their key; only with a `key_count`."""
    scrub_bytes_per_s: int | None = None
    delete_interval_ms: int | None = None
    move_interval_ms: int | None = None
    shrinks_voters: bool = False
    """Whether voters that are lost leave; only where `has_brokers` is true."""
    lost_after_ms: int = 0
    disk_bytes: int | None = None
    """How large each disk is; only with `lost_after_ms`."""
    near_racks: list[str] = []
    """`client.rack` of consumers that say where they are; only with `lost_after_ms`."""
    changes: list[ChangeRow] = []
    groups: list[GroupRow] | None = None
    producers: list[ProducerRow] | None = None
    cluster: dict[str, str] = {}
    """Keys that hold for every broker, set before anything else; only with `lost_after_ms`."""
    replication: dict[str, int | float] = {}
    log: dict[str, bool | int | float] = {}
    faults: list[FaultRow] | None = None
