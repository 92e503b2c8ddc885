"""Scenarios that people write: a TOML file over what a seed would have drawn.

Why:    a history that matters (an outage that happened, a fault schedule that once failed) is kept
        as a file that can be read, changed and run again.
How:    `seed` stands for everything that the file does not say. Regions, latencies, groups,
        producers, sizes of the load, `[replication]` and `[log]` keys replace what was drawn;
        `[[faults]]` are the only faults then. An unknown key, a broker or kind of fault that does
        not exist, or what no run could be judged with, is one line.
Source: design section 10; STYLE, "Configuration"."""

import tomllib
from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import combinations_with_replacement
from pathlib import Path

import msgspec

from strandline.base.errors import OperatorError
from strandline.config.cluster import validate_cluster_config
from strandline.model.ids import BrokerId, GroupId
from strandline.replication.settings import ReplicationSettings
from strandline.simulation.faults.kinds import BAD_DISKS, FAULT_KINDS
from strandline.simulation.scenarios.scenario import (
    REGIONS,
    TOMBSTONE_MS_MIN,
    GroupPlan,
    PlannedChange,
    PlannedFault,
    ProducerPlan,
    Scenario,
)
from strandline.simulation.scenarios.scenario_rows import (
    ChangeRow,
    FaultRow,
    GroupRow,
    ProducerRow,
    ScenarioFile,
)
from strandline.simulation.swarm.families import DRAWS, Swarm
from strandline.simulation.swarm.variations import draw
from strandline.simulation.world.scheduler import US_PER_MS
from strandline.storage.config import LogConfig

FAULTS_TABLE = "[[faults]]"
TOPIC_KEYS = {
    "delete_retention_ms",
    "flush_messages",
    "flush_ms",
    "index_interval_bytes",
    "preallocate",
    "retention_bytes",
    "segment_bytes",
    "trust_ms",
    "write_caching",
}
"""Of `[log]`, what topics of whole brokers are given (`Scenario.topic_configs`)."""


def load_scenario(path: Path) -> Scenario:
    """The scenario of a file. Raises OperatorError with file and reason."""
    try:
        file = msgspec.convert(tomllib.loads(path.read_text()), ScenarioFile)
        return _scenario(file)
    except OSError as error:
        raise OperatorError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, OperatorError) as error:
        raise OperatorError(f"{path}: {error}") from error


def with_faults(text: str, faults: Sequence[PlannedFault]) -> str:
    """The text of a scenario's file (for a seed: `seed = N`) with these faults in it, and no
    others."""
    kept: list[str] = []
    is_fault = False
    for line in text.splitlines():
        if line.startswith("["):
            is_fault = line.strip() == FAULTS_TABLE
        if not is_fault and not line.startswith("faults ="):
            kept.append(line)
    while kept and not kept[-1]:
        kept.pop()
    lines = kept if faults else ["faults = []", *kept]
    for fault in faults:
        lines += [
            "",
            FAULTS_TABLE,
            f"at_ms = {fault.at_ms}",
            f'kind = "{fault.kind}"',
            f"duration_ms = {fault.duration_ms}",
            f"seed = {fault.seed}",
        ]
    return "\n".join(lines) + "\n"


def _scenario(file: ScenarioFile) -> Scenario:
    if file.swarm is not Swarm.USUAL:
        if file != ScenarioFile(seed=file.seed, swarm=file.swarm, faults=file.faults):
            raise OperatorError(f'swarm = "{file.swarm}": only with a seed and faults')
        drawn = DRAWS[file.swarm](file.seed)
        return drawn if file.faults is None else replace(drawn, faults=_faults(file.faults))
    scenario = draw(file.seed)
    if file.regions is not None:
        scenario = replace(
            scenario, regions=tuple(file.regions), drift_ppm=(0,) * len(file.regions)
        )
    scenario = replace(scenario, one_way_us=_latencies(scenario, file.one_way_ms))
    if file.groups is not None or file.regions is not None:
        scenario = replace(scenario, groups=_groups(scenario, file.groups))
    if file.producers is not None or file.groups is not None:
        scenario = replace(scenario, producers=_producers(scenario, file.producers or []))
    for name in ("active_ms", "jitter_ratio", "loss_ratio", "bytes_per_ms", "consumer_count"):
        value = getattr(file, name)
        if value is not None:
            scenario = replace(scenario, **{name: value})
    if file.key_count is not None:
        scenario = _compacted(scenario, file.key_count)
    scenario = replace(scenario, settings=_settings(scenario, file.replication))
    if file.faults is not None:
        scenario = replace(scenario, faults=_faults(file.faults))
    if file.has_brokers and not scenario.has_brokers:
        groups = scenario.groups  # With their observers, if the file has them.
        scenario = scenario.whole()
        if file.groups is not None:
            scenario = replace(scenario, groups=groups)
    elif file.has_brokers is False:
        scenario = replace(scenario, has_brokers=False, group_consumer_count=0)
    if file.group_consumer_count is not None:
        if file.group_consumer_count and not scenario.has_brokers:
            raise OperatorError("group_consumer_count: only where has_brokers is true")
        scenario = replace(scenario, group_consumer_count=file.group_consumer_count)
    scenario = replace(
        scenario,
        log=_log(scenario, file.log),
        shrinks_voters=file.shrinks_voters,
    )
    if file.scrub_bytes_per_s is not None:
        scenario = replace(scenario, scrub_bytes_per_s=file.scrub_bytes_per_s)
    scenario = _with_tombstones(scenario, file.tombstone_ratio)
    return _balanced(_judged(_administered(scenario, file)), file)


def _compacted(scenario: Scenario, key_count: int) -> Scenario:
    """With logs that are compacted, or with none."""
    if not key_count:
        log = replace(scenario.log, compacted=False, delete=True)
        return replace(scenario, key_count=0, log=log)
    if not scenario.key_count:
        scenario = scenario.compacted()
    return replace(scenario, key_count=key_count)


def _administered(scenario: Scenario, file: ScenarioFile) -> Scenario:
    """With the actions of administrators: as in the file, else as drawn."""
    delete_ms, move_ms = scenario.delete_interval_ms, scenario.move_interval_ms
    can_delete = scenario.has_brokers and not (scenario.key_count or scenario.group_consumer_count)
    delete_ms = delete_ms if can_delete else 0
    move_ms = move_ms if scenario.has_brokers else 0
    if file.delete_interval_ms is not None:
        delete_ms = file.delete_interval_ms
    if file.move_interval_ms is not None:
        move_ms = file.move_interval_ms
    if delete_ms and not can_delete:
        raise OperatorError(
            "delete_interval_ms: only where has_brokers is true, without a consumer group or "
            "compaction"
        )
    if move_ms and not scenario.has_brokers:
        raise OperatorError("move_interval_ms: only where has_brokers is true")
    return replace(scenario, delete_interval_ms=delete_ms, move_interval_ms=move_ms)


def _judged(scenario: Scenario) -> Scenario:
    """As it is; refused if more may happen than the product promises to survive."""
    kinds = {fault.kind for fault in scenario.faults or ()}
    losses = sorted(kinds & {"lost-disk", *BAD_DISKS})
    if any(plan.promotion for plan in scenario.groups) and not scenario.shrinks_voters:
        raise OperatorError("promotion: only with shrinks_voters")
    if scenario.shrinks_voters and (not scenario.has_brokers or losses):
        raise OperatorError(
            "shrinks_voters: only where has_brokers is true, and disks are not lost: the last "
            "voter may hold the only copy"
        )
    if scenario.move_interval_ms and losses:
        raise OperatorError(
            f"move_interval_ms: not with {', '.join(losses)}; which disk may go is a question "
            "about the voters, who change"
        )
    if scenario.log.write_caching and scenario.group_consumer_count and scenario.power_fails:
        raise OperatorError(
            "write_caching: not with a consumer group where the power fails; what the group has "
            "read may be beyond what is left"
        )
    return scenario


def _balanced(scenario: Scenario, file: ScenarioFile) -> Scenario:
    """With the balancer at work, and what it is given to do."""
    changes = [
        PlannedChange(0, group=GroupId(number), policy=row.policy)
        for number, row in enumerate(file.groups or [], start=1)
        if row.policy
    ]
    changes += [_change(scenario, file, row) for row in file.changes]
    asks = bool(changes or file.near_racks or file.zones or file.cluster)
    asks |= file.disk_bytes is not None
    if not file.lost_after_ms and not asks:
        return scenario
    if not file.lost_after_ms or not scenario.has_brokers:
        raise OperatorError(
            "policy, changes, cluster, zones, near_racks, disk_bytes: only with lost_after_ms, "
            "where has_brokers is true"
        )
    for key, value in file.cluster.items():
        if reason := validate_cluster_config(key, value):
            raise OperatorError(f"cluster: {key} = {value}: {reason}")
    if file.zones and len(file.zones) != len(scenario.brokers):
        raise OperatorError(f"zones: one for each of {len(scenario.brokers)} brokers")
    if file.disk_bytes is not None:
        scenario = replace(scenario, disk_bytes=file.disk_bytes)
    changes.sort(key=lambda one: one.at_ms)
    return replace(
        scenario,
        lost_after_ms=file.lost_after_ms,
        changes=tuple(changes),
        zones=tuple(file.zones),
        near_racks=tuple(file.near_racks),
        cluster_configs=tuple(file.cluster.items()),
    )


def _change(scenario: Scenario, file: ScenarioFile, row: ChangeRow) -> PlannedChange:
    if row.where or row.ruling:
        return _ruling(scenario, file, row)
    group = None if row.group is None else GroupId(row.group)
    broker = None if row.broker is None else BrokerId(row.broker)
    is_known = group in {one.group for one in scenario.groups} or broker in scenario.brokers
    others = (row.decommission, row.maintenance, row.foreign_bytes)
    given = [bool(row.region), *(one is not None for one in others)]
    if broker is not None and sum(given) != 1:
        raise OperatorError(
            f"changes: broker {row.broker} needs a region or decommission or maintenance "
            "or foreign_bytes"
        )
    if row.at_run_time and not row.region:
        raise OperatorError("changes: at_run_time is about the region of a broker")
    if not is_known or (group is None) == (broker is None):
        raise OperatorError(
            f"changes: group {row.group}, broker {row.broker}; one of them, that there is"
        )
    return PlannedChange(
        at_ms=row.at_ms,
        group=group,
        policy=row.policy,
        broker=broker,
        region=row.region,
        at_run_time=row.at_run_time,
        is_leaving=row.decommission,
        in_maintenance=row.maintenance,
        foreign_bytes=row.foreign_bytes,
    )


def _ruling(scenario: Scenario, file: ScenarioFile, row: ChangeRow) -> PlannedChange:
    """What a person says of a zone or region, and of nothing else."""
    only = ChangeRow(at_ms=row.at_ms, where=row.where, ruling=row.ruling, for_ms=row.for_ms)
    known = {(one,) for one in scenario.regions} | set(
        zip(scenario.regions, file.zones, strict=False)
    )
    domain = tuple(row.where.split("/"))
    if row != only or not row.ruling or domain not in known:
        names = ", ".join("/".join(one) for one in sorted(known))
        raise OperatorError(
            f"changes: {row.ruling or 'no ruling'} of {row.where!r}; hold, release or lost, and "
            f"nothing else, of one of {names}"
        )
    return PlannedChange(row.at_ms, domain=domain, ruling=row.ruling, for_ms=row.for_ms)


def _with_tombstones(scenario: Scenario, ratio: float | None) -> Scenario:
    """With the tombstones of the file, or refused; drawn ones stay if they can."""
    if ratio is None:
        reason = _no_tombstones(scenario) if scenario.tombstone_ratio else ""
        return replace(scenario, tombstone_ratio=0.0) if reason else scenario
    scenario = replace(scenario, tombstone_ratio=ratio)
    if ratio and (reason := _no_tombstones(scenario)):
        raise OperatorError(f"tombstone_ratio: {reason}")
    return scenario


def _no_tombstones(scenario: Scenario) -> str:
    """Why no run with tombstones could be judged; empty where one can."""
    file = scenario.faults
    kinds = set(scenario.fault_weights) if file is None else {one.kind for one in file}
    if not scenario.key_count or scenario.log.write_caching:
        return "only with a key_count, and without write_caching"
    if scenario.log.delete_retention_ms < TOMBSTONE_MS_MIN:
        return f"delete_retention_ms has to be {TOMBSTONE_MS_MIN} at least"
    if "wall-clock-jump" in kinds:
        return "without wall-clock-jump"
    return ""


def _latencies(scenario: Scenario, one_way_ms: dict[str, float]) -> dict[tuple[str, str], int]:
    regions = sorted({*scenario.regions, *REGIONS})
    latencies = dict(scenario.one_way_us)
    for one, other in combinations_with_replacement(regions, 2):
        default = latencies.get((one, other), max(latencies.values()))
        latencies[one, other] = latencies[other, one] = default
    for pair, delay_ms in one_way_ms.items():
        one, _, other = pair.partition("-")
        if one not in regions or other not in regions or delay_ms < 0:
            raise OperatorError(f"one_way_ms: {pair!r} = {delay_ms}; the regions are {regions}")
        latencies[one, other] = latencies[other, one] = int(delay_ms * US_PER_MS)
    return latencies


def _groups(scenario: Scenario, rows: list[GroupRow] | None) -> tuple[GroupPlan, ...]:
    brokers = scenario.brokers
    rows = rows or [GroupRow(voters=[int(one) for one in brokers[:3]])]
    plans: list[GroupPlan] = []
    for number, row in enumerate(rows, start=1):
        members = [*row.voters, *row.observers]
        if not row.voters or len(set(members)) < len(members) or not set(members) <= set(brokers):
            raise OperatorError(
                f"groups[{number}]: voters {row.voters}, observers {row.observers}; each of them "
                f"once, of the brokers {list(brokers)}"
            )
        plans.append(
            GroupPlan(
                GroupId(number),
                tuple(BrokerId(one) for one in row.voters),
                tuple(BrokerId(one) for one in row.observers),
                tuple(BrokerId(one) for one in members),
                row.min_insync,
                row.promotion,
            )
        )
    return tuple(plans)


def _producers(scenario: Scenario, rows: list[ProducerRow]) -> tuple[ProducerPlan, ...]:
    known = {plan.group for plan in scenario.groups}
    plans: list[ProducerPlan] = []
    for number, row in enumerate(rows or [ProducerRow()]):
        if row.group not in known or row.acks not in (-1, 0, 1):
            raise OperatorError(f"producers: group {row.group} with acks {row.acks}")
        plans.append(
            ProducerPlan(
                f"p{row.group}.{number}",
                GroupId(row.group),
                row.acks,
                row.is_idempotent and row.acks == -1,
                row.interval_ms,
                row.value_bytes_max,
                row.first_sequence,
            )
        )
    return tuple(plans)


def _settings(scenario: Scenario, keys: dict[str, int | float]) -> ReplicationSettings:
    try:
        return replace(scenario.settings, **keys)  # type: ignore[arg-type]
    except TypeError as error:
        raise OperatorError(f"[replication] {error}") from error


def _log(scenario: Scenario, keys: dict[str, bool | int | float]) -> LogConfig:
    """Which logs are compacted is `key_count`'s to say."""
    known = {one.name: type(getattr(scenario.log, one.name)) for one in fields(LogConfig)}
    for key, value in keys.items():
        if key not in known or key in ("delete", "compacted"):
            raise OperatorError(f"[log] no key {key!r}")
        if type(value) is not known[key]:
            raise OperatorError(f"[log] {key}: {value!r} is no {known[key].__name__}")
        if scenario.has_brokers and key not in TOPIC_KEYS:
            raise OperatorError(f"[log] {key}: only where has_brokers is false")
    return replace(scenario.log, **keys)  # type: ignore[arg-type]


def _faults(rows: list[FaultRow]) -> tuple[PlannedFault, ...]:
    for row in rows:
        if row.kind not in FAULT_KINDS:
            raise OperatorError(f"faults: no kind {row.kind!r}; there are {', '.join(FAULT_KINDS)}")
    rows = sorted(rows, key=lambda row: row.at_ms)
    return tuple(PlannedFault(row.at_ms, row.kind, row.duration_ms, row.seed) for row in rows)
