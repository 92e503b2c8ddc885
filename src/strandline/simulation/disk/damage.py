"""Disks that cannot be trusted: what they return is not what was written, or was never kept.

Why:    a copy that has gone bad must be noticed, never be shown, and never cost the group a record
        that the other copies have.
How:    one broker of a scenario, and always the same one, has such a disk: a minority of every
        group. It rots as a disk is lost, where all others are whole: who has to be brought up to
        date first needs what this broker has. Rot: its process ends, bits of closed segments flip,
        and it starts again: what an earlier process wrote is what the product proves before it
        believes it. Who cannot open its log after that
        gets an empty disk in the end, as the operator of a broker would do. Rot of an open log: the
        same bits flip on the platter while the process runs; the page cache has them as they were,
        until it lets go of that page, at once or when the scrub tells it to. Rot of the journal, or
        of the files beside closed segments: between two processes, as these are read at the start.
        Of the journal only what a record that is itself durable says was durable, and never the
        last record (known-problems). A rotten tail: the same in segments that are written to; there
        it may cost what was flushed just before, for no note yet says that it was: that is as a
        lie. Rot at a failure of power: bits flip, in whatever segment, of what a note that is
        itself durable says was durable; all else that was said of it may have gone with the power.
        Lies: flushes of logs report success until the power fails, and then some of it is gone.
        Votes are kept: no majority survives a voter that forgets whom it voted for.
Owns:   nothing.
Source: reliability reference 3 and 6; "Protocol-Aware Recovery" (FAST'18)."""

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from strandline.base.errors import ApiError, StorageError
from strandline.model.ids import BrokerId, Index
from strandline.records.batch import crc_matches, iterate_headers
from strandline.replication.host.replication import JOURNAL
from strandline.simulation.disk.disk import HostDisk
from strandline.simulation.disk.file_image import FileImage
from strandline.simulation.world.member import DATA_DIRECTORY
from strandline.storage.layout import (
    FLUSHED,
    INDEX,
    LOG,
    PRODUCERS,
    SUMMARY,
    TIME_INDEX,
    SegmentName,
    parse_name,
)
from strandline.storage.log.sealing import decode_mark
from strandline.storage.state_journal import last_record, read_states, said_durable

if TYPE_CHECKING:
    from strandline.simulation.world.world import World

ROTTEN_MAX = 3
BAD_DISKS = frozenset(
    {"bit-rot", "rotten-tail", "lying-disk", "open-rot", "journal-rot", "power-failure-rot"}
)
"""The kinds of faults that are about the disk of `rotting_broker`."""
ROT = frozenset({"bit-rot", "open-rot", "power-failure-rot"})
"""Those about closed segments, too."""
BESIDE = (INDEX, TIME_INDEX, SUMMARY, PRODUCERS)
LOGS = f"{DATA_DIRECTORY}/logs"


def rotting_broker(world: "World") -> BrokerId:
    """Whose disk it is, if any."""
    brokers = world.scenario.brokers
    return brokers[world.scenario.seed % len(brokers)]


def rot(world: "World", rng: random.Random) -> Callable[[], None] | None:
    """Kill the broker, and flip bits of segments that were closed and flushed; see the module."""
    host = world.hosts[rotting_broker(world)]
    if not world.may_lose_disk(host.broker):
        return None
    return _rot(world, rng, lambda: closed_segments(host.disk))


def rot_while_open(world: "World", rng: random.Random) -> Callable[[], None] | None:
    """Flip bits of closed segments on the platter, under the process that has them open."""
    host = world.hosts[rotting_broker(world)]
    segments = closed_segments(host.disk)
    if not segments or not host.is_up or not world.may_lose_disk(host.broker):
        return None
    for path in rng.sample(segments, min(len(segments), rng.randint(1, ROTTEN_MAX))):
        bit = rng.randrange(8 * host.disk.size_of(path))
        is_seen = host.disk.rot_below(path, bit)
        where = "" if is_seen else " on the platter"
        world.trace.add(host.name, f"bit {bit} of {path} rots{where}")
    return _nothing


def _nothing() -> None:
    """What has rotted stays so."""


def rot_indexes(world: "World", rng: random.Random) -> Callable[[], None] | None:
    """Kill the broker, and flip bits of the files beside segments."""
    disk = world.hosts[rotting_broker(world)].disk
    names = [plan.name for plan in world.scenario.groups]
    return _rot(world, rng, lambda: files_beside(disk, names))


def rot_journal(world: "World", rng: random.Random) -> Callable[[], None] | None:
    """Kill the broker, or fail its power, and flip one bit of a state in its journal: of those of
    which a record says that they were durable, and will say so whatever fails next."""
    host = world.hosts[rotting_broker(world)]
    path = f"{DATA_DIRECTORY}/{JOURNAL}"
    image = host.disk.tree.find(path)
    if not host.is_up or not world.may_lose_disk(host.broker) or image is None:
        return None
    assert isinstance(image, FileImage)
    # What the power may still take says of nothing that it was durable.
    kept = min((one.position for one in image.unflushed), default=image.durable.size)
    end = min(
        last_record(image.current.read(image.current.size, 0)),
        said_durable(image.durable.read(kept, 0), kept),
    )
    if not end:
        return None
    bit = rng.randrange(8 * end)
    if rng.random() < 0.5:
        host.kill()
    else:
        host.fail_power()
    host.disk.rot(path, bit)
    world.trace.add(host.name, f"bit {bit} of {path} rots")
    try:
        read_states(path, image.durable.read(kept, 0))  # In padding it would mean nothing.
    except StorageError:
        world.rotten_journals.add((host.broker, host.disk_number))
    return lambda: world.restart(host.broker)


def rot_tail(world: "World", rng: random.Random) -> Callable[[], None] | None:
    """The same for the last segments of the scenario's groups."""
    host = world.hosts[rotting_broker(world)]
    return _rot(
        world, rng, lambda: last_segments(host.disk, [p.name for p in world.scenario.groups])
    )


def rot_without_power(world: "World", rng: random.Random) -> Callable[[], None] | None:
    """The power fails, and bits flip of what durable marks speak of."""
    host = world.hosts[rotting_broker(world)]
    if not host.is_up or not world.may_lose_disk(host.broker) or not marked_parts(host.disk):
        return None
    host.fail_power()
    parts = marked_parts(host.disk)
    for path, size in rng.sample(parts, min(len(parts), rng.randint(1, ROTTEN_MAX))):
        bit = rng.randrange(8 * size)
        host.disk.rot(path, bit)
        world.trace.add(host.name, f"bit {bit} of {path} rots without power")
    return lambda: world.restart(host.broker)


def _rot(
    world: "World", rng: random.Random, find: Callable[[], list[str]]
) -> Callable[[], None] | None:
    host = world.hosts[rotting_broker(world)]
    if not host.is_up:
        return None
    host.kill()
    segments = find()
    for path in rng.sample(segments, min(len(segments), rng.randint(1, ROTTEN_MAX))):
        size = host.disk.size_of(path) or host.disk.cached_size_of(path)
        bit = rng.randrange(8 * size)
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


def marked_parts(disk: HostDisk) -> list[tuple[str, int]]:
    """(segment, how many of its bytes) of what durable marks say was durable."""
    marked: dict[str, Index] = {}
    for path, image in disk.tree.files():
        directory, _, file = path.rpartition("/")
        if file.endswith(FLUSHED):
            index = decode_mark(image.durable.read(image.durable.size, 0))
            marked[directory] = max(marked.get(directory, index), index)
    paths, _ = _segments(disk)
    parts = []
    for directory, name, path in paths:
        segment = disk.tree.find(path)
        assert isinstance(segment, FileImage)
        end = _end_of(segment, name, marked.get(directory, Index(-1)))
        if end:
            parts.append((path, end))
    return parts


def _end_of(image: FileImage, name: SegmentName, index: Index) -> int:
    """Where in a segment the batch ends that ends at `index` or before it."""
    data = image.durable.read(image.durable.size, 0)
    position, next_index = 0, int(name.base_index)
    try:
        for header in iterate_headers(data):
            next_index += max(1, header.last_offset_delta + 1)
            if next_index > index + 1 or not crc_matches(data, header):
                break
            position = header.position + header.size
    except ApiError:
        pass
    return position


def files_beside(disk: HostDisk, names: list[str]) -> list[str]:
    """The files beside the segments of the logs of these names, as far as they hold anything: on
    the platter or, as nobody flushes them, in the page cache."""
    found = []
    for path, _ in disk.tree.files():
        directory, _, file = path.rpartition("/")
        parsed = parse_name(file)
        is_wanted = directory.rpartition("/")[2].startswith(tuple(names))
        if parsed is not None and is_wanted and parsed[1] in BESIDE and disk.cached_size_of(path):
            found.append(path)
    return found


def last_segments(disk: HostDisk, names: list[str]) -> list[str]:
    """The last segment of each log of these names."""
    paths, last = _segments(disk)
    return [
        path
        for directory, name, path in paths
        if name == last[directory] and directory.rpartition("/")[2].startswith(tuple(names))
    ]


def is_sound(image: FileImage) -> bool:
    """Whether each batch on the platter is what was written."""
    data = image.durable.read(image.durable.size, 0)
    end = 0
    try:
        for header in iterate_headers(data):
            end = header.position + header.size
            if not crc_matches(data, header):
                return False
    except ApiError:
        return False
    return end == len(data)


def has_rotten_segments(disk: HostDisk) -> bool:
    """Whether closed segments are not on the platter as they were written."""
    images = [disk.tree.find(path) for path in closed_segments(disk)]
    return not all(isinstance(image, FileImage) and is_sound(image) for image in images)


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
