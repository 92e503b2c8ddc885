"""What a seed stands for: a cluster, its groups, the network, the load, and which faults happen.

Why:    bugs hide in combinations that no person thinks of. A swarm draws them, and leaves out a
        random part of the kinds of faults each time, so that one kind cannot hide another.
How:    `Scenario.draw(seed)` is a pure function of the seed. Small limits are drawn on purpose:
        tiny segments, windows and appends reach every edge within seconds of virtual time.
Owns:   nothing.
Source: design section 10; "Swarm Testing" (ISSTA 2012); reference/reliability.md 1c."""

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

from strandline.config.keys import LONG_MAX
from strandline.model.cluster import Domain
from strandline.model.ids import BrokerId, GroupId
from strandline.placement.policy.document import Promotion
from strandline.replication.settings import ReplicationSettings
from strandline.simulation.disk.disk import CAPACITY_BYTES
from strandline.simulation.faults.kinds import (
    DRAWN_APART,
    FAULT_KINDS,
    LASTING_LOSS,
    LATER_FAULTS,
)
from strandline.simulation.world.scheduler import US_PER_MS
from strandline.storage.config import LogConfig

REGIONS = ("east", "west", "south")
LOCAL_US = (50, 800)
FAR_US = (5_000, 60_000)
KIB = 1024
START_SPREAD_MS = 300
"""Within so long all brokers start."""
ACTIVE_MS = (1_500, 3_000, 5_000)
QUICK_FLUSH_US = (100, 2_000)
COMPACTED_SHARE = 0.2
WHOLE_SHARE = 0.4
CONSUMER_GROUP_SHARE = 0.4
CONSUMER_GROUP_MS = 12_000
CONSUMER_GROUP_PAUSE = 6
"""A consumer group has the time-outs of real clients: a run with one takes longer, and faults leave
it time to work."""
SEEDS_MAX = 3
LEASE_HEARTBEATS = 2
AUDIT_INTERVAL_MS = 1_500
AUDITS_MAX = 5
"""So many audits while there is load, where tombstones do not ask for more: a whole log is read
each time."""
TOMBSTONE_MS_MIN = 1_000
"""Tombstones last for so long at least: each is to be seen by an audit."""
ASKING_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """One partition. `voters` and `observers` at the start; `hosts` may become either.

    `promotion`: when observers stand in for voters; only where these leave when they are lost.
    `placement`: whether a topic's policy names these brokers, which it does where there are
    observers, or says how many in each region, in our words or in Confluent's, or how many in all.
    Then these brokers are an example."""

    group: GroupId
    voters: tuple[BrokerId, ...]
    observers: tuple[BrokerId, ...]
    hosts: tuple[BrokerId, ...]
    min_insync: int
    promotion: Promotion = ""
    placement: Literal["pinned", "regions", "confluent", "anywhere"] = "pinned"

    @property
    def name(self) -> str:
        """A name for people and directories."""
        return f"group-{self.group}"


@dataclass(frozen=True, slots=True)
class ProducerPlan:
    """One producer: to which group, with which acks, every how many milliseconds.
    `first_sequence`: of an idempotent one."""

    name: str
    group: GroupId
    acks: int
    is_idempotent: bool
    interval_ms: int
    value_bytes_max: int
    first_sequence: int = 0


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """One fault: begins `at_ms` after the load, ends by itself or after `duration_ms`. `seed`: of
    what it draws (which broker, how slow), so that it is the same whatever else happens."""

    at_ms: int
    kind: str
    duration_ms: int
    seed: int


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """What an operator does `at_ms` after the load begins: the policy of a group, the region of a
    broker, which starts anew with it, or, `at_run_time`, goes on with it, that a broker leaves, or
    stays after all, or that it is in maintenance, or no more; or how much of its disk is somebody
    else's; or whether voters of a group leave when they are lost, or how many have to write; or
    what is to be thought of a zone or region (`domain`), for a while."""

    at_ms: int
    group: GroupId | None = None
    policy: str = ""
    broker: BrokerId | None = None
    region: str = ""
    at_run_time: bool = False
    is_leaving: bool | None = None
    in_maintenance: bool | None = None
    foreign_bytes: int | None = None
    shrinks: bool | None = None
    min_insync: int = 0
    domain: Domain = ()
    ruling: str = ""
    for_ms: int = 0


@dataclass(frozen=True, slots=True)
class Scenario:
    """All of it. `regions[i]` is where broker i lives; brokers are numbered from 1."""

    seed: int
    regions: tuple[str, ...]
    one_way_us: dict[tuple[str, str], int]
    jitter_ratio: float
    bytes_per_ms: int
    loss_ratio: float
    drift_ppm: tuple[int, ...]
    groups: tuple[GroupPlan, ...]
    producers: tuple[ProducerPlan, ...]
    consumer_count: int
    settings: ReplicationSettings
    log: LogConfig
    flush_us: tuple[int, int]
    """How long a flush usually takes: (least, most)."""
    fault_weights: dict[str, int]
    """{kind of fault: how often, relative to the others}; kinds left out do not happen."""
    fault_interval_ms: int
    active_ms: int
    asks_voters: bool = False
    """Whether the brokers have to find out by themselves that a disk was lost."""
    key_count: int = 0
    """How many keys records have, in logs that are compacted; 0 where they are not."""
    tombstone_ratio: float = 0.0
    """How many of the records of producers with acks=all delete their key. Only where logs are
    compacted, and wall clocks do not jump: `delete.retention.ms` is counted by them."""
    scrub_bytes_per_s: int = 0
    """How fast brokers look for damage, in round after round; 0: only where a reader met it."""
    has_brokers: bool = False
    """Whether whole brokers run, with the controller and all request handlers; the groups are
    topics of one partition then."""

    group_consumer_count: int = 0
    """Members of a consumer group over all topics; only where there are whole brokers."""
    near_racks: tuple[str, ...] = ()
    """Where consumers are that say so (`client.rack`), one each, of the groups by turns; only with
    `lost_after_ms`, for brokers do not say where they are without it."""
    delete_interval_ms: int = 0
    """How often on average an admin deletes the oldest records of a topic, or tries to read them
    again; 0 for never. Only where there are whole brokers, without compaction, and without a
    consumer group, whose members begin at offset 0 when theirs is gone."""
    tier_interval_ms: int = 0
    """How often on average an uploader without objects proposes a command; 0 for never. Only with
    `log.remote_storage`, and without whole brokers, which upload by themselves."""
    move_interval_ms: int = 0
    """How often on average an admin moves the replicas of a topic; 0 for never. Only where there
    are whole brokers, whose disks are not lost and can be trusted: which of them may go is a
    question about the voters."""
    shrinks_voters: bool = False
    """Whether voters that are lost leave, and the controller arbitrates. Only where there are whole
    brokers, whose disks are not lost: the last voter may hold the only copy."""
    lag_time_max_ms: int = 0
    """For so long a reachable voter may lag before it leaves; 0: the topic's default."""
    demotion_delay_ms: int = 0
    """How long observers go on voting that are not needed; 0: the topic's default."""
    zones: tuple[str, ...] = ()
    """In which zone each broker says it is; only with `lost_after_ms`."""
    lost_after_ms: int = 0
    """After how much silence the balancer makes replicas anew; 0: after the default, which no run
    lasts, and brokers do not say where they are. Only where there are whole brokers."""
    disk_bytes: int = CAPACITY_BYTES
    """How large each broker's disk is. Brokers report what it holds to the balancer."""
    bucket_regions: tuple[str, ...] = ()
    """Where there is a bucket, for logs with `remote_storage`. Only where there are whole brokers,
    without compaction."""
    is_copied: bool = False
    """Whether another cluster serves a read-only copy out of a bucket."""
    cluster_configs: tuple[tuple[str, str], ...] = ()
    """What is set for every broker before anything else; only where `lost_after_ms` is set."""
    changes: tuple[PlannedChange, ...] = ()
    """Of policies and labels; only where `lost_after_ms` is set."""
    faults: tuple[PlannedFault, ...] | None = None
    """These faults, and no others; None for those that the seed and the weights stand for."""
    answer_faults: tuple[PlannedFault, ...] = ()
    """Beside what the seed and the weights stand for: what strikes clients alone."""
    restart_delay_ms: tuple[int, int] = (1, 1_500)
    """After how long the supervisor restarts a process: (least, most)."""
    snapshot_bytes: int = 0
    """After how many bytes of the controller's log brokers take a snapshot of it, while the
    controller has something to decide all the time; 0: by the defaults, so that no run has one.
    Only where there are whole brokers."""
    start_spread_ms: int = START_SPREAD_MS
    """Within how long all brokers start."""

    @property
    def brokers(self) -> tuple[BrokerId, ...]:
        """All broker ids."""
        return tuple(BrokerId(number + 1) for number in range(len(self.regions)))

    def region_of(self, broker: BrokerId) -> str:
        """Where a broker lives."""
        return self.regions[broker - 1]

    @property
    def seeds(self) -> tuple[BrokerId, ...]:
        """The controller's voters."""
        return self.brokers[:SEEDS_MAX]

    @property
    def rotting_broker(self) -> BrokerId:
        """The broker whose disk goes bad, where any does."""
        return self.brokers[self.seed % len(self.brokers)]

    @property
    def topic_configs(self) -> tuple[tuple[str, str], ...]:
        """What `log` is as the configuration of a topic."""
        log = self.log
        return (
            ("cleanup.policy", "compact" if log.compacted else "delete"),
            *(
                (("delete.retention.ms", str(log.delete_retention_ms)),)
                if self.tombstone_ratio
                else ()
            ),
            ("flush.messages", str(log.flush_messages)),
            ("flush.ms", str(log.flush_ms)),
            ("index.interval.bytes", str(log.index_interval_bytes)),
            ("message.timestamp.after.max.ms", str(LONG_MAX)),  # Clocks jump here.
            ("retention.bytes", str(log.retention_bytes)),
            *(
                (
                    ("remote.storage.enable", "true"),
                    ("local.retention.bytes", str(log.local_retention_bytes)),
                    ("retention.ms", str(log.retention_ms)),
                )
                if log.remote_storage
                else ()
            ),
            ("internal.segment.bytes", str(log.segment_bytes)),
            *(
                (("observer.demotion.delay.ms", str(self.demotion_delay_ms)),)
                if self.demotion_delay_ms
                else ()
            ),
            *(
                (("replica.lag.time.max.ms", str(self.lag_time_max_ms)),)
                if self.lag_time_max_ms
                else ()
            ),
            ("write.caching", str(log.write_caching).lower()),
        )

    @property
    def audit_interval_ms(self) -> int:
        """How often logs are read while there is load; twice at least while a tombstone lasts."""
        usual_ms = max(AUDIT_INTERVAL_MS, self.active_ms // AUDITS_MAX)
        return min(usual_ms, self.log.delete_retention_ms // 2)

    @property
    def power_fails(self) -> bool:
        """Whether what was written and not flushed may be lost."""
        kinds = self.fault_weights if self.faults is None else {one.kind for one in self.faults}
        return any(FAULT_KINDS[kind].loses_page_cache for kind in kinds)

    @property
    def may_lose_unflushed(self) -> bool:
        """Whether what consumers saw may be lost with the power: it was not on enough disks."""
        has_leader_acks = any(plan.acks != -1 for plan in self.producers)
        return self.power_fails and (has_leader_acks or self.log.write_caching)

    @property
    def declares_losses(self) -> bool:
        """Whether an operator is on call to declare losses."""
        return any(one.kind == LASTING_LOSS for one in self.faults or ())

    def plan_faults(self) -> tuple[PlannedFault, ...]:
        """The faults in the order of their beginnings."""
        if self.faults is not None:
            return self.faults
        rng = random.Random(f"faults {self.seed}")
        drawn = self.draw_faults(
            rng, self.fault_weights, lambda kind: FAULT_KINDS[kind].duration_ms
        )
        return in_order(drawn, self.answer_faults)

    def draw_faults(
        self,
        rng: random.Random,
        weights: Mapping[str, int],
        duration_ms: Callable[[str], tuple[int, int]],
        *,
        from_ms: int = 0,
    ) -> tuple[PlannedFault, ...]:
        """Faults of these kinds, one after the other while there is load, each for a time between
        two."""
        kinds, drawn, at_ms = list(weights), list[PlannedFault](), from_ms
        while kinds:
            at_ms += rng.randint(1, 2 * self.fault_interval_ms)
            if at_ms >= self.active_ms:
                break
            kind = rng.choices(kinds, weights=list(weights.values()))[0]
            drawn.append(
                PlannedFault(at_ms, kind, rng.randint(*duration_ms(kind)), rng.getrandbits(32))
            )
        return tuple(drawn)

    @classmethod
    def draw(cls, seed: int) -> "Scenario":
        """The scenario of a seed, without `variations`."""
        scenario = cls.draw_groups(seed)
        is_whole = random.Random(f"whole {seed}").random() < WHOLE_SHARE
        return scenario.whole() if is_whole else scenario

    @classmethod
    def draw_groups(cls, seed: int) -> "Scenario":
        """The same before it is decided whether there are whole brokers."""
        rng = random.Random(f"scenario {seed}")
        regions = tuple(rng.choice(REGIONS) for _ in range(rng.choice((3, 3, 3, 3, 4, 5))))
        brokers = [BrokerId(number + 1) for number in range(len(regions))]
        one_way_us = _draw_latencies(rng)
        groups = tuple(
            _draw_group(rng, GroupId(number + 1), brokers) for number in range(rng.randint(1, 3))
        )
        scenario = cls(
            seed=seed,
            regions=regions,
            one_way_us=one_way_us,
            jitter_ratio=rng.choice((0.0, 0.1, 0.5, 2.0)),
            bytes_per_ms=rng.choice((1_000, 10_000, 100_000)),
            loss_ratio=rng.choice((0.0, 0.0, 0.001, 0.02)),
            drift_ppm=tuple(rng.choice((0, rng.randint(-5_000, 5_000))) for _ in regions),
            groups=groups,
            producers=_draw_producers(rng, groups),
            consumer_count=rng.randint(1, 3),
            settings=_draw_settings(rng, is_far=max(one_way_us.values()) > LOCAL_US[1]),
            log=_draw_log(rng),
            flush_us=rng.choice(((100, 2_000), (200, 3_000), (3_000, 40_000))),
            fault_weights=_without_contradictions(
                _draw_faults(rng) | _draw_later_faults(random.Random(f"faults of {seed}"))
            ),
            fault_interval_ms=rng.choice((100, 250, 600)),
            active_ms=rng.choice(ACTIVE_MS),
        )
        if random.Random(f"founding {seed}").random() < ASKING_SHARE:
            scenario = scenario.group_bootstrap()
        if random.Random(f"compaction {seed}").random() < COMPACTED_SHARE:
            scenario = scenario.compacted()
        return scenario

    def of_groups(self) -> "Scenario":
        """The same without brokers, and no longer than such a run takes."""
        return replace(
            self,
            has_brokers=False,
            group_consumer_count=0,
            active_ms=min(self.active_ms, max(ACTIVE_MS)),
        )

    def group_bootstrap(self) -> "Scenario":
        """The same where brokers find out by themselves whether they lost their disk.

        One whose first state was lost with the power is as one that lost its disk: it waits for the
        others, so the others stay who they are."""
        weights = dict(self.fault_weights)
        if self.power_fails:
            weights.pop("configuration-change", None)
        return replace(self, asks_voters=True, fault_weights=weights)

    def whole(self) -> "Scenario":
        """The same with whole brokers: who is a member of what is the controller's to say.

        The controller answers while it has a lease, so a lease has to outlast a round trip."""
        settings = self.settings
        rtt_ms = 2 * max(self.one_way_us.values()) * (1 + self.jitter_ratio) / US_PER_MS
        lease_ms = rtt_ms + LEASE_HEARTBEATS * settings.heartbeat_interval_ms
        timeout_ms = max(settings.election_timeout_ms, int(lease_ms / settings.lease_ratio))
        rng = random.Random(f"consumer group {self.seed}")
        has_group = rng.random() < CONSUMER_GROUP_SHARE
        return replace(
            self,
            group_consumer_count=rng.randint(1, 3) if has_group else 0,
            active_ms=self.active_ms + (CONSUMER_GROUP_MS if has_group else 0),
            fault_interval_ms=self.fault_interval_ms * (CONSUMER_GROUP_PAUSE if has_group else 1),
            settings=replace(
                settings,
                election_timeout_ms=timeout_ms,
                # Over a long run a window that is too small piles up more than can be caught up on.
                inflight_bytes_max=max(settings.inflight_bytes_max, 1024 * KIB if has_group else 0),
            ),
            flush_us=QUICK_FLUSH_US if has_group else self.flush_us,
            has_brokers=True,
            asks_voters=True,
            groups=tuple(replace(plan, observers=(), hosts=plan.voters) for plan in self.groups),
            fault_weights={
                kind: weight
                for kind, weight in self.fault_weights.items()
                if kind != "configuration-change"
            },
        )

    def compacted(self) -> "Scenario":
        """The same, with logs that are compacted, often and in small slices."""
        rng = random.Random(f"compacted {self.seed}")
        return replace(
            self,
            key_count=rng.choice((1, 10, 100)),
            log=replace(
                self.log,
                segment_bytes=rng.choice((2 * KIB, 8 * KIB, 32 * KIB)),
                retention_bytes=-1,
                delete=False,
                compacted=True,
                min_cleanable_dirty_ratio=rng.choice((0.0, 0.5)),
                compaction_map_bytes=rng.choice((KIB, 1024 * KIB)),
            ),
            settings=replace(
                self.settings, compaction_slice_bytes=rng.choice((KIB, 8 * KIB, 64 * KIB))
            ),
        )


def in_order(*several: Iterable[PlannedFault]) -> tuple[PlannedFault, ...]:
    """All of them, in the order of their beginnings."""
    return tuple(sorted(chain(*several), key=lambda one: one.at_ms))


def _draw_group(rng: random.Random, group: GroupId, brokers: list[BrokerId]) -> GroupPlan:
    voter_count = 5 if len(brokers) >= 5 and rng.random() < 0.4 else 3
    hosts = rng.sample(brokers, len(brokers))
    voters = tuple(hosts[:voter_count])
    rest = hosts[voter_count:]
    observers = tuple(rest[: rng.randint(0, min(1, len(rest)))])
    return GroupPlan(group, voters, observers, tuple(hosts), rng.choice((1, 2, 2, voter_count)))


def _draw_latencies(rng: random.Random) -> dict[tuple[str, str], int]:
    latencies: dict[tuple[str, str], int] = {}
    is_local = rng.random() < 0.5
    for number, one in enumerate(REGIONS):
        for other in REGIONS[number:]:
            far = not is_local and one != other
            one_way_us = rng.randint(*(FAR_US if far else LOCAL_US))
            latencies[one, other] = latencies[other, one] = one_way_us
    return latencies


def _draw_producers(rng: random.Random, groups: tuple[GroupPlan, ...]) -> tuple[ProducerPlan, ...]:
    producers = []
    for group in groups:
        is_mixed = rng.random() < 0.5
        for number in range(rng.randint(1, 3)):
            acks = rng.choice((-1, -1, 1, 0)) if is_mixed else -1
            producers.append(
                ProducerPlan(
                    name=f"p{group.group}.{number}",
                    group=group.group,
                    acks=acks,
                    is_idempotent=acks == -1 and rng.random() < 0.7,
                    interval_ms=rng.choice((15, 40, 120)),
                    value_bytes_max=rng.choice((20, 300, 2_000)),
                )
            )
    return tuple(producers)


def _draw_settings(rng: random.Random, *, is_far: bool) -> ReplicationSettings:
    heartbeat_ms = rng.choice((50, 100))
    return ReplicationSettings(
        heartbeat_interval_ms=heartbeat_ms,
        election_timeout_ms=heartbeat_ms * rng.choice((3, 5, 8)),
        election_spread_ms=heartbeat_ms * rng.choice((2, 4)),
        resend_timeout_ms=rng.choice((300, 1_000)),
        append_bytes_max=rng.choice((2 * KIB, 16 * KIB, 1024 * KIB)),
        # A window of one small append over a long way is an overload, not a fault.
        inflight_bytes_max=rng.choice((8 * KIB, 1024 * KIB, 16 * 1024 * KIB)),
        inflight_count_max=rng.choice((8, 256) if is_far else (1, 3, 256)),
        tail_bytes_max=rng.choice((4 * KIB, 4 * 1024 * KIB)),
    )


def _draw_log(rng: random.Random) -> LogConfig:
    segment_bytes = rng.choice((4 * KIB, 16 * KIB, 256 * KIB))
    return LogConfig(
        segment_bytes=segment_bytes,
        index_interval_bytes=rng.choice((256, 4 * KIB)),
        retention_bytes=rng.choice((-1, -1, 2 * segment_bytes)),
        preallocate=rng.random() < 0.5,
    )


def _draw_faults(rng: random.Random) -> dict[str, int]:
    share = rng.choice((0.1, 0.2, 0.4))
    kinds = [kind for kind in FAULT_KINDS if kind not in DRAWN_APART and rng.random() < share]
    if "lost-disk" in kinds and "configuration-change" in kinds:
        kinds.remove("configuration-change")  # Before the weights are drawn.
    return {kind: rng.choice((1, 1, 3)) for kind in kinds}


def _draw_later_faults(rng: random.Random) -> dict[str, int]:
    """Drawn apart, so that scenarios without them stay as they were."""
    share = rng.choice((0.05, 0.1, 0.3))
    return {kind: rng.choice((1, 1, 3)) for kind in LATER_FAULTS if rng.random() < share}


def _without_contradictions(weights: dict[str, int]) -> dict[str, int]:
    """Which disks may be lost or go bad is a question about the voters: they stay."""
    if weights.keys() & {"lost-disk", "bit-rot"}:
        return {kind: weight for kind, weight in weights.items() if kind != "configuration-change"}
    return weights
