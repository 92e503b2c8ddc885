"""Rotten closed segments must be repaired while the scrub runs, if another replica has the data.

Why:    the page cache holds what the platter has lost. No reader and no audit sees the difference
        before the machine restarts, and by then the other copies may be gone.
How:    once all is at rest, this reads the closed segments of the rotting disk below the page
        cache, batch by batch, again and again, for as long as the scrub may take to go round a few
        times and repair its findings. Data that no other replica has cannot be repaired.
Owns:   nothing.
Source: reliability reference 3; `replication/repair/log_repair.py`."""

from strandline.model.ids import Index
from strandline.replication.repair.log_repair import RETRY_MS
from strandline.replication.replica.replica import Replica
from strandline.simulation.disk.damage import closed_segments, is_intact
from strandline.simulation.disk.file_image import FileImage
from strandline.simulation.faults.kinds import ROT
from strandline.simulation.invariants.facts import DamageAwaited, Subject
from strandline.simulation.world.cluster import SimCluster
from strandline.simulation.world.member import SCRUB_INTERVAL_MS
from strandline.simulation.world.scheduler import US_PER_MS
from strandline.storage.layout import parse_name

ROUNDS = 3
LOOK_MS = 100


def await_repairs(cluster: SimCluster) -> None:
    """Wait until rot is repaired; does nothing without a scrub."""
    rate = cluster.scenario.scrub_bytes_per_s
    if not rate or not cluster.begun_kinds & ROT or cluster.is_over:
        return
    held = cluster.hosts[cluster.scenario.rotting_broker].disk.used_bytes()
    limit_ms = ROUNDS * (SCRUB_INTERVAL_MS + held * 1_000 // rate) + 2 * RETRY_MS
    limit_us = cluster.scheduler.now_us + limit_ms * US_PER_MS
    damage, subject = _find(cluster)
    while damage and cluster.scheduler.now_us < limit_us and not cluster.is_over:
        cluster.advance(LOOK_MS)
        damage, subject = _find(cluster)
    if not cluster.is_over:
        cluster.checker.damage_awaited(DamageAwaited(damage, limit_ms, subject))


def _find(cluster: SimCluster) -> tuple[str, Subject]:
    """Damage that could be mended, and what it is about; empty where there is none."""
    broker = cluster.scenario.rotting_broker
    disk = cluster.hosts[broker].disk
    segments = closed_segments(disk)
    replicas = [one for one in cluster.replicas() if one.self_id == broker]
    for replica in replicas:
        starts = _starts_elsewhere(cluster, replica)
        for path in segments:
            directory, _, name = path.rpartition("/")
            parsed = parse_name(name)
            is_helped = parsed is not None and any(one <= parsed[0].base_index for one in starts)
            image = disk.tree.find(path)
            assert isinstance(image, FileImage)
            if directory == replica.log.directory and is_helped and not is_intact(image):
                return f"broker {broker} has damage in {path}", Subject(replica.group)
    return "", Subject(None)


def _starts_elsewhere(cluster: SimCluster, replica: Replica) -> list[Index]:
    """From which indexes on other members have what this one has."""
    return [
        one.log.start_index
        for one in cluster.replicas()
        if one.group == replica.group
        and one.self_id != replica.self_id
        and one.self_id in replica.configuration.members
    ]
