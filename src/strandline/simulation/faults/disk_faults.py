"""A disk that cannot be trusted: it returns other bytes than were written, or never kept them.

Why:    the product must notice a bad copy and never show it, and lose no record that others have.
How:    one broker of a scenario, always the same one, has such a disk: a minority of every group.
        It rots only where all others are whole, as a disk is lost.
            bit-rot            the process ends, bits of closed segments flip, and it starts again
            open-rot           the same on the platter while the process runs; the page cache keeps
                               the right bytes until it drops that page
            journal-rot, index-rot    between two processes, which read these files at their start;
                               of the journal only what a durable record proves durable
            rotten-tail        in segments that are written to; it may cost what was flushed just
                               before, as no mark covers that yet
            power-failure-rot  in any part of a log that a durable mark covers
            lying-disk         flushes of logs report success until the power fails; then some of
                               the data is gone. Votes are kept: Raft cannot bear lost votes.
        If a broker cannot open its log afterwards, the operator replaces its disk in the end.
Owns:   nothing.
Source: reliability reference 3 and 6; "Protocol-Aware Recovery" (FAST'18)."""

import random
from collections.abc import Callable

from strandline.base.errors import StorageError
from strandline.replication.host.replication import JOURNAL
from strandline.simulation.disk.damage import (
    closed_segments,
    files_beside,
    last_segments,
    marked_parts,
)
from strandline.simulation.disk.file_image import FileImage
from strandline.simulation.faults.fault_targets import End
from strandline.simulation.world.cluster import SimCluster
from strandline.simulation.world.member import DATA_DIRECTORY
from strandline.storage.state_journal import durable_end_of, last_record, read_states

ROTTEN_MAX = 3
LOGS = f"{DATA_DIRECTORY}/logs"


def rot(cluster: SimCluster, rng: random.Random) -> End | None:
    """Kill the broker, and flip bits of segments that were closed and flushed; see the module."""
    host = cluster.hosts[cluster.scenario.rotting_broker]
    if not cluster.disk_losses.may_lose(host.broker):
        return None
    return _rot(cluster, rng, lambda: closed_segments(host.disk))


def rot_while_open(cluster: SimCluster, rng: random.Random) -> End | None:
    """Flip bits of closed segments on the platter, under the process that has them open."""
    host = cluster.hosts[cluster.scenario.rotting_broker]
    segments = closed_segments(host.disk)
    if not segments or not host.is_up or not cluster.disk_losses.may_lose(host.broker):
        return None
    for path in rng.sample(segments, min(len(segments), rng.randint(1, ROTTEN_MAX))):
        bit = rng.randrange(8 * host.disk.size_of(path))
        is_seen = host.disk.rot_below(path, bit)
        where = "" if is_seen else " on the platter"
        cluster.trace.add(host.name, f"bit {bit} of {path} rots{where}")
    return _stay_rotten


def _stay_rotten() -> None:
    """The end of a fault whose damage stays; until then something is amiss."""


def rot_indexes(cluster: SimCluster, rng: random.Random) -> End | None:
    """Kill the broker, and flip bits of the files beside segments."""
    disk = cluster.hosts[cluster.scenario.rotting_broker].disk
    names = [plan.name for plan in cluster.scenario.groups]
    return _rot(cluster, rng, lambda: files_beside(disk, names))


def rot_journal(cluster: SimCluster, rng: random.Random) -> End | None:
    """Kill the broker, or fail its power, and flip one bit of a state in its journal: of those of
    which a record says that they were durable, and will say so whatever fails next."""
    host = cluster.hosts[cluster.scenario.rotting_broker]
    path = f"{DATA_DIRECTORY}/{JOURNAL}"
    image = host.disk.tree.find(path)
    if not host.is_up or not cluster.disk_losses.may_lose(host.broker) or image is None:
        return None
    assert isinstance(image, FileImage)
    # What the power may still take says of nothing that it was durable.
    kept = min((one.position for one in image.unflushed), default=image.durable.size)
    end = min(
        last_record(image.current.read(image.current.size, 0)),
        durable_end_of(image.durable.read(kept, 0), kept),
    )
    if not end:
        return None
    bit = rng.randrange(8 * end)
    if rng.random() < 0.5:
        host.kill()
    else:
        host.fail_power()
    host.disk.rot(path, bit)
    cluster.trace.add(host.name, f"bit {bit} of {path} rots")
    try:
        read_states(path, image.durable.read(kept, 0))  # In padding it would mean nothing.
    except StorageError:
        cluster.rotten_journals.add((host.broker, host.disk_number))
    return lambda: cluster.restart(host.broker)


def rot_tail(cluster: SimCluster, rng: random.Random) -> End | None:
    """The same for the last segments of the scenario's groups."""
    host = cluster.hosts[cluster.scenario.rotting_broker]
    return _rot(
        cluster, rng, lambda: last_segments(host.disk, [p.name for p in cluster.scenario.groups])
    )


def rot_without_power(cluster: SimCluster, rng: random.Random) -> End | None:
    """The power fails, and bits flip of what durable marks speak of."""
    host = cluster.hosts[cluster.scenario.rotting_broker]
    if (
        not host.is_up
        or not cluster.disk_losses.may_lose(host.broker)
        or not marked_parts(host.disk)
    ):
        return None
    host.fail_power()
    parts = marked_parts(host.disk)
    for path, size in rng.sample(parts, min(len(parts), rng.randint(1, ROTTEN_MAX))):
        bit = rng.randrange(8 * size)
        host.disk.rot(path, bit)
        cluster.trace.add(host.name, f"bit {bit} of {path} rots without power")
    return lambda: cluster.restart(host.broker)


def _rot(cluster: SimCluster, rng: random.Random, find: Callable[[], list[str]]) -> End | None:
    host = cluster.hosts[cluster.scenario.rotting_broker]
    if not host.is_up:
        return None
    host.kill()
    segments = find()
    for path in rng.sample(segments, min(len(segments), rng.randint(1, ROTTEN_MAX))):
        size = host.disk.size_of(path) or host.disk.cached_size_of(path)
        bit = rng.randrange(8 * size)
        host.disk.rot(path, bit)
        cluster.trace.add(host.name, f"bit {bit} of {path} rots")
    return lambda: cluster.restart(host.broker)


def lie(cluster: SimCluster, rng: random.Random) -> End | None:
    """The disk says that logs are flushed, and keeps them in its cache; in the end the power
    fails. What that costs depends on how many copies an acknowledgement waits for."""
    host = cluster.hosts[cluster.scenario.rotting_broker]
    host.disk.faults.lying_directory = LOGS
    cluster.trace.add(host.name, "flushes of logs are lies from now on")

    def end() -> None:
        host.fail_power()
        host.disk.faults.lying_directory = ""
        cluster.restart(host.broker)

    return end
