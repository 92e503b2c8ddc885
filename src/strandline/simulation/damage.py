"""Disks that cannot be trusted: what they return is not what was written, or was never kept.

Why:    a copy that has gone bad must be noticed, never be shown, and never cost the group a record
        that the other copies have.
How:    one broker of a scenario, and always the same one, has such a disk: a minority of every
        group. Rot: its process ends, bits of closed segments flip, and it starts again: what an
        earlier process wrote is what the product proves before it believes it; what a process has
        read once lies in memory. Who cannot open its log after that gets an empty disk in the end,
        as the operator of a broker would do. A rotten tail: the same in segments that are written
        to; there it may cost what was flushed just before, for no note yet says that it was: that
        is as a lie. Lies: flushes of logs report success until the power fails, and then some of it
        is gone. Votes are kept: no majority survives a voter that forgets whom it voted for.
Owns:   nothing.
Source: reliability reference 3 and 6; "Protocol-Aware Recovery" (FAST'18)."""

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from strandline.model.ids import BrokerId
from strandline.simulation.disk import HostDisk
from strandline.simulation.member import DATA_DIRECTORY
from strandline.storage.layout import LOG, SUMMARY, SegmentName, parse_name

if TYPE_CHECKING:
    from strandline.simulation.world import World

ROTTEN_MAX = 3
BAD_DISKS = frozenset({"bit-rot", "rotten-tail", "lying-disk"})
"""The kinds of faults that are about the disk of `rotting_broker`."""
LOGS = f"{DATA_DIRECTORY}/logs"


def rotting_broker(world: "World") -> BrokerId:
    """Whose disk it is, if any."""
    brokers = world.scenario.brokers
    return brokers[world.scenario.seed % len(brokers)]


def rot(world: "World", rng: random.Random) -> Callable[[], None] | None:
    """Kill the broker, and flip bits of segments that were closed and flushed; see the module."""
    host = world.hosts[rotting_broker(world)]
    if not world.has_spare_voters(host.broker):
        return None
    return _rot(world, rng, lambda: closed_segments(host.disk))


def rot_tail(world: "World", rng: random.Random) -> Callable[[], None] | None:
    """The same for the last segments of the scenario's groups."""
    host = world.hosts[rotting_broker(world)]
    return _rot(
        world, rng, lambda: last_segments(host.disk, [p.name for p in world.scenario.groups])
    )


def _rot(
    world: "World", rng: random.Random, find: Callable[[], list[str]]
) -> Callable[[], None] | None:
    host = world.hosts[rotting_broker(world)]
    if not host.is_up:
        return None
    host.kill()
    segments = find()
    for path in rng.sample(segments, min(len(segments), rng.randint(1, ROTTEN_MAX))):
        bit = rng.randrange(8 * host.disk.size_of(path))
        host.disk.rot(path, bit)
        world.trace.add(host.name, f"bit {bit} of {path} rots")
    return lambda: world.restart(host.broker)


def lie(world: "World", rng: random.Random) -> Callable[[], None] | None:
    """The disk says that logs are flushed, and keeps them in its cache; in the end the power
    fails. What that costs depends on how many copies an acknowledgement waits for."""
    host = world.hosts[rotting_broker(world)]
    host.disk.faults.lying_directory = LOGS
    world.trace.add(host.name, "flushes of logs are lies from now on")

    def end() -> None:
        host.fail_power()
        host.disk.faults.lying_directory = ""
        world.restart(host.broker)

    return end


def closed_segments(disk: HostDisk) -> list[str]:
    """Segments that were durable as a whole: closed, and not the last of their log."""
    paths, last = _segments(disk)
    return [
        path
        for directory, name, path in paths
        if name != last[directory] and disk.tree.find(f"{directory}/{name.stem}{SUMMARY}")
    ]


def last_segments(disk: HostDisk, names: list[str]) -> list[str]:
    """The last segment of each log of these names."""
    paths, last = _segments(disk)
    return [
        path
        for directory, name, path in paths
        if name == last[directory] and directory.rpartition("/")[2].startswith(tuple(names))
    ]


def _segments(
    disk: HostDisk,
) -> tuple[list[tuple[str, SegmentName, str]], dict[str, SegmentName]]:
    """All segments that hold anything durable, and the last one of each directory."""
    last: dict[str, SegmentName] = {}
    paths: list[tuple[str, SegmentName, str]] = []
    for path, _ in disk.tree.files():
        directory, _, file = path.rpartition("/")
        parsed = parse_name(file)
        if parsed is not None and parsed[1] == LOG and disk.size_of(path):
            name = parsed[0]
            known = last.setdefault(directory, name)
            last[directory] = max(known, name, key=lambda one: one.base_index)
            paths.append((directory, name, path))
    return paths, last
