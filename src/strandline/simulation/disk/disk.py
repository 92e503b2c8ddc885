"""A host's disk: unflushed bytes and names are at risk, flushes take time and may fail.

Why:    storage and the Raft drivers must hold their promises on a disk that does everything a real
        one may do.
How:    `HostDisk` is the hardware and outlives processes; `SimDisk` is what one process sees of it
        (`base.disk.Disk`). One flush runs at a time and takes simulated time; what is asked for
        meanwhile goes with the next one. Killing a process loses nothing; `HostDisk.crash`, a power
        failure, takes away what `file_image.py` and `directory_tree.py` say.
        Faults: failing and lying flushes, a full disk, slowness, rot, and death of the process in
        the middle of a write.
Owns:   the tree of files, the flush queue, the fault switches (the world sets them).
Source: design section 10; base/disk.py."""

import errno
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from strandline.base.disk import Buffer, File
from strandline.simulation.disk.directory_tree import Directory, DirectoryTree
from strandline.simulation.disk.file_image import SECTOR_BYTES, CrashStyle, FileImage
from strandline.simulation.world.clock import WALL_START_MS
from strandline.simulation.world.process import Process
from strandline.simulation.world.scheduler import US_PER_MS, Scheduler

CAPACITY_BYTES = 1 << 40
PAGE_BYTES = 4_096
FLUSH_US = (200, 3_000)
FLUSH_US_MAX = 5_000_000
"""However slow a disk is: what began in a fault must be over soon after it."""


@dataclass(slots=True)
class DiskCounters:
    """What has been done to a disk since the start of the run."""

    write_count: int = 0
    written_bytes: int = 0
    flush_count: int = 0
    flushed_file_count: int = 0
    failed_flush_count: int = 0
    directory_flush_count: int = 0
    lost_change_count: int = 0
    full_count: int = 0


@dataclass(slots=True)
class DiskFaults:
    """Switches that the world turns. All off at first."""

    slow_factor: int = 1
    """Flushes take so many times as long."""
    fail_flush_count: int = 0
    """So many of the next flushes fail with EIO; what they should have flushed never arrives."""
    fail_flush_of: str = ""
    """Only those of files whose paths end so."""
    keeps_cache: bool = False
    """After a failed flush the process restarts, and not its machine."""
    lying_flushes: bool = False
    """Flushes report success and do nothing."""
    lying_directory: str = ""
    """The same for the files below this directory, and for their names; empty: for none."""
    foreign_bytes: int = 0
    """Space that other programs have taken."""
    full_directory: str = ""
    """The file system of this directory has no room; empty: for none."""
    die_at_operation: int = 0
    """The process dies in the n-th changing operation from now; 0: never."""

    def is_lying_about(self, path: str) -> bool:
        """Whether a flush of this file or directory says what is not so."""
        directory = self.lying_directory
        return self.lying_flushes or (bool(directory) and path.startswith(directory))


@dataclass(slots=True)
class _FlushRequest:
    path: str
    image: FileImage
    sequence: int
    process: Process
    done: Callable[[OSError | None], None]


@dataclass(slots=True)
class HostDisk:
    """The hardware: see the module. `flush_us` is the usual time of a flush: (least, most)."""

    scheduler: Scheduler
    rng: random.Random
    flush_us: tuple[int, int] = FLUSH_US
    capacity_bytes: int = CAPACITY_BYTES
    on_created: Callable[[str], None] | None = None
    """Told the path of each file that is created."""
    tree: DirectoryTree = field(default_factory=DirectoryTree)
    counters: DiskCounters = field(default_factory=DiskCounters)
    faults: DiskFaults = field(default_factory=DiskFaults)
    has_failed_flush: bool = False
    """Whether the page cache may hold what a failed flush left: it looks sound, and is on no
    platter."""
    eviction_rng: random.Random = field(default_factory=lambda: random.Random("evictions"))
    """Its own, so that histories without failed flushes do not depend on it."""
    _waiting: list[_FlushRequest] = field(default_factory=list)
    _flushing: bool = False

    def crash(self, style: CrashStyle | None = None) -> CrashStyle:
        """The power fails: lose what was not flushed, in the given or in a random style."""
        style = style or self.rng.choice([*CrashStyle, CrashStyle.LOSE_ALL])
        images = {id(image): image for _, image in self.tree.files()}
        lost_count = self.tree.crash(self.rng, style)
        images.update((id(image), image) for _, image in self.tree.files())
        for image in images.values():
            lost_count += image.crash(self.rng, style)
        self.counters.lost_change_count += lost_count
        self.has_failed_flush = False
        self._waiting.clear()
        return style

    def evicts(self) -> bool:
        """Whether the page cache lets go of what it could, this time."""
        return self.eviction_rng.random() >= 0.5

    def evict_some(self) -> bool:
        """The page cache may let go of half of what it takes for clean; whether it does."""
        if not self.evicts():
            return False
        for _, image in self.tree.files():
            for position in range(0, image.current.size, PAGE_BYTES):
                if self.eviction_rng.random() < 0.5:
                    image.forget_cached(position, PAGE_BYTES)
        return True

    def used_bytes(self) -> int:
        """The sizes of all files."""
        return sum(image.current.size for _, image in self.tree.files())

    def free_bytes(self) -> int:
        """What is left for growing files; never below 0."""
        return max(0, self.capacity_bytes - self.faults.foreign_bytes - self.used_bytes())

    def size_of(self, path: str) -> int:
        """How many bytes of a file are on the platter."""
        image = self.tree.find(path)
        return len(image.durable.data) if isinstance(image, FileImage) else 0

    def cached_size_of(self, path: str) -> int:
        """How many bytes of a file a reader is given, but for zeros at its end."""
        image = self.tree.find(path)
        return len(image.current.data) if isinstance(image, FileImage) else 0

    def rot(self, path: str, bit: int) -> None:
        """Flip one bit of a file, in the page cache and on the platter."""
        image = self.tree.find(path)
        assert isinstance(image, FileImage), path
        image.flip_bit(bit)

    def rot_below(self, path: str, bit: int) -> bool:
        """The same on the platter alone. The page cache may let go of that page then: whether it
        does, and readers are given what is there."""
        image = self.tree.find(path)
        assert isinstance(image, FileImage), path
        image.flip_bit_below(bit)
        if not self.evicts():
            return False
        image.forget_cached(bit // 8 // PAGE_BYTES * PAGE_BYTES, PAGE_BYTES)
        return True

    def flush_duration_us(self) -> int:
        """How long the next flush takes: mostly short, now and then ten times as long."""
        least_us, most_us = self.flush_us
        duration_us = self.rng.randint(least_us, most_us)
        if self.rng.random() < 0.02:
            duration_us *= 10
        return min(duration_us * self.faults.slow_factor, FLUSH_US_MAX)

    def request_flush(self, request: _FlushRequest) -> None:
        """Queue it; see the module."""
        self._waiting.append(request)
        if not self._flushing:
            self._start_flush()

    def _start_flush(self) -> None:
        batch, self._waiting = self._waiting, []
        self._flushing = True
        self.scheduler.after(self.flush_duration_us(), lambda: self._finish_flush(batch))

    def _finish_flush(self, batch: list[_FlushRequest]) -> None:
        self._flushing = False
        self.counters.flush_count += 1
        for request in batch:
            if not request.process.alive:
                continue
            error = self.flush_image(request.path, request.image, request.sequence)
            request.process.after(0, partial(request.done, error))
        if self._waiting:
            self._start_flush()

    def flush_image(self, path: str, image: FileImage, sequence: int) -> OSError | None:
        """Bring the changes of one file up to `sequence` onto the platter, or fail at it."""
        self.counters.flushed_file_count += 1
        if self.faults.fail_flush_count > 0 and path.endswith(self.faults.fail_flush_of):
            self.faults.fail_flush_count -= 1
            self.counters.failed_flush_count += 1
            self.has_failed_flush = True
            image.forget_up_to(sequence)
            return OSError(errno.EIO, "the disk failed to flush")
        if not self.faults.is_lying_about(path):
            image.flush_up_to(sequence)
        return None


class SimFile:
    """`base.disk.File` over a simulated file."""

    def __init__(self, disk: "SimDisk", path: str, image: FileImage) -> None:
        self.path = path
        self.image = image
        self._disk = disk
        self._closed = False

    def pwrite(self, buffers: Sequence[Buffer], position: int) -> None:
        """See `base.disk.File`."""
        self._check_open()
        buffers = self._disk.admit_write(self.image, buffers, position)
        if not any(map(len, buffers)):
            return
        self._touch()
        counters = self._disk.hardware.counters
        counters.write_count += 1
        counters.written_bytes += self.image.write(position, buffers)

    def pread(self, length: int, position: int) -> bytes:
        """See `base.disk.File`."""
        self._check_open()
        return self.image.current.read(length, position)

    def size(self) -> int:
        """See `base.disk.File`."""
        self._check_open()
        return self.image.current.size

    def truncate(self, size: int) -> None:
        """See `base.disk.File`."""
        self._check_open()
        if self._disk.admit_change():
            self._touch()
            self.image.resize(size)

    def allocate(self, size: int) -> None:
        """See `base.disk.File`."""
        self._check_open()
        if self._disk.admit_change() and size > self.image.current.size:
            self._disk.reserve(size - self.image.current.size)
            self._touch()
            self.image.resize(size)

    def written_end(self) -> int:
        """See `base.disk.File`."""
        self._check_open()
        current = self.image.current
        return len(current.read(current.size, 0).rstrip(b"\0"))

    def forget_cached(self, position: int, length: int) -> None:
        """See `base.disk.File`."""
        self._check_open()
        self.image.forget_cached(position, length)

    def fileno(self) -> int:
        """There is no descriptor."""
        return -1

    def close(self) -> None:
        """See `base.disk.File`."""
        self._closed = True

    def _touch(self) -> None:
        self.image.modified_us = self._disk.hardware.scheduler.now_us

    def _check_open(self) -> None:
        if self._closed:
            raise OSError(errno.EBADF, "the file is closed", self.path)


class SimDisk:
    """`base.disk.Disk` for one process; once that is dead, nothing reaches the hardware."""

    def __init__(self, hardware: HostDisk, process: Process) -> None:
        self.hardware = hardware
        self._process = process

    # ---- base.disk.Disk ----------------------------------------------------------------------

    def open(self, path: str, *, create: bool = False) -> SimFile:
        """See `base.disk.Disk`."""
        tree = self.hardware.tree
        node = tree.find(path)
        if isinstance(node, Directory):
            raise IsADirectoryError(errno.EISDIR, "Is a directory", path)
        if node is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
            directory, name = tree.place(path)
            node = FileImage()
            if self.admit_change():
                tree.change((directory, name, node))
                if self.hardware.on_created is not None:
                    self.hardware.on_created(path)
        return SimFile(self, path, node)

    def exists(self, path: str) -> bool:
        """See `base.disk.Disk`."""
        return self.hardware.tree.find(path) is not None

    def modified_ms(self, path: str) -> int:
        """See `base.disk.Disk`."""
        return WALL_START_MS + self.open(path).image.modified_us // US_PER_MS

    def list_directory(self, path: str) -> list[str]:
        """See `base.disk.Disk`."""
        return sorted(self.hardware.tree.directory(path).entries)

    def make_directories(self, path: str) -> None:
        """See `base.disk.Disk`."""
        tree = self.hardware.tree
        parts = [name for name in path.split("/") if name]
        for depth in range(1, len(parts) + 1):
            partial_path = "/" + "/".join(parts[:depth])
            if tree.find(partial_path) is None and self.admit_change():
                directory, name = tree.place(partial_path)
                tree.change((directory, name, Directory()))

    def rename(self, source: str, target: str) -> None:
        """See `base.disk.Disk`."""
        tree = self.hardware.tree
        node = tree.find(source)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", source)
        if self.admit_change():
            tree.change((*tree.place(source), None), (*tree.place(target), node))

    def remove(self, path: str) -> None:
        """See `base.disk.Disk`."""
        tree = self.hardware.tree
        node = tree.find(path)
        if isinstance(node, Directory):
            raise IsADirectoryError(errno.EISDIR, "Is a directory", path)
        if node is not None and self.admit_change():
            tree.change((*tree.place(path), None))

    def remove_tree(self, path: str) -> None:
        """See `base.disk.Disk`. One name after the other, so that a crash may leave a part."""
        node = self.hardware.tree.find(path)
        if node is None:
            return
        if isinstance(node, Directory):
            for name in sorted(node.entries):
                self.remove_tree(f"{path.rstrip('/')}/{name}")
        if self.admit_change():
            self.hardware.tree.change((*self.hardware.tree.place(path), None))

    def flush_directory(self, path: str) -> None:
        """See `base.disk.Disk`."""
        if self.admit_change():
            self.hardware.counters.directory_flush_count += 1
            self._process.charge(self.hardware.flush_duration_us())
            if not self.hardware.faults.is_lying_about(path):
                self.hardware.tree.flush(path)

    def flush_now(self, file: File) -> None:
        """See `base.disk.Disk`."""
        assert isinstance(file, SimFile)
        if not self.admit_change():
            return
        self._process.charge(self.hardware.flush_duration_us())
        error = self.hardware.flush_image(file.path, file.image, file.image.sequence)
        if error is not None:
            raise error

    def flush_file_system(self, path: str) -> None:
        """See `base.disk.Disk`."""
        if not self.admit_change():
            return
        hardware = self.hardware
        self._process.charge(hardware.flush_duration_us())
        for file, image in hardware.tree.files():
            error = hardware.flush_image(file, image, image.sequence)
            if error is not None:
                raise error
        if not hardware.faults.lying_flushes and not hardware.faults.lying_directory:
            hardware.tree.flush_all()

    def flush_soon(self, file: File, done: Callable[[OSError | None], None]) -> None:
        """See `base.disk.Disk`."""
        assert isinstance(file, SimFile)
        if self.admit_change():
            request = _FlushRequest(file.path, file.image, file.image.sequence, self._process, done)
            self.hardware.request_flush(request)

    def free_bytes(self, path: str) -> int:
        """See `base.disk.Disk`."""
        return self.hardware.free_bytes()

    def total_bytes(self, path: str) -> int:
        """See `base.disk.Disk`."""
        return self.hardware.capacity_bytes

    def used_bytes(self, path: str) -> int:
        """See `base.disk.Disk`."""
        return self.hardware.capacity_bytes - self.hardware.free_bytes()

    # ---- for the files -----------------------------------------------------------------------

    def admit_change(self) -> bool:
        """Whether this process may still change the disk; kills it where that is due."""
        if self._process.dying:
            raise self._process.die_now()
        faults = self.hardware.faults
        if faults.die_at_operation > 0:
            faults.die_at_operation -= 1
            if faults.die_at_operation == 0:
                raise self._process.die_now()
        return self._process.alive

    def admit_write(
        self, image: FileImage, buffers: Sequence[Buffer], position: int
    ) -> Sequence[Buffer]:
        """What of a write may be written: all, or nothing. Raises ENOSPC, or dies, half-way."""
        faults = self.hardware.faults
        if faults.die_at_operation == 1 and self._process.alive:
            faults.die_at_operation = 0
            self._write_head(image, buffers, position)
            raise self._process.die_now()
        if not self.admit_change():
            return ()
        growth = position + sum(map(len, buffers)) - image.current.size
        if growth > 0 and faults.full_directory and self._is_below(image, faults.full_directory):
            self.hardware.counters.full_count += 1
            raise OSError(errno.ENOSPC, "No space left on device")
        if growth > 0 and (faults.foreign_bytes or self.hardware.capacity_bytes < CAPACITY_BYTES):
            try:
                self.reserve(growth)
            except OSError:
                self._write_head(image, buffers, position)
                raise
        return buffers

    def _is_below(self, image: FileImage, directory: str) -> bool:
        files = self.hardware.tree.files()
        return any(one is image and path.startswith(directory) for path, one in files)

    def reserve(self, growth_bytes: int) -> None:
        """Raise ENOSPC unless there is room for so much more."""
        faults = self.hardware.faults
        if not faults.foreign_bytes and self.hardware.capacity_bytes >= CAPACITY_BYTES:
            return
        if growth_bytes > self.hardware.free_bytes():
            self.hardware.counters.full_count += 1
            raise OSError(errno.ENOSPC, "No space left on device")

    def _write_head(self, image: FileImage, buffers: Sequence[Buffer], position: int) -> None:
        """The first sectors of a write arrive, as many as chance and the room allow."""
        data = b"".join(buffers)
        room = image.current.size - position + self.hardware.free_bytes()
        sectors = self.hardware.rng.randint(0, len(data) // SECTOR_BYTES)
        head = data[: max(0, min(sectors * SECTOR_BYTES, room))]
        if head:
            image.write(position, [head])
