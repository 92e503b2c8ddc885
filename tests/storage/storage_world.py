"""A small disk that forgets, and a manual clock: the world of this room's tests.

Why:    written apart from the simulator's disk, so that the two do not share a misunderstanding.
How:    every file has its visible bytes and its bytes on the platter, and the list of changes in
        between; `crash` lets each 512-byte sector take any number of its changes, in order. Names
        reach the platter in order per directory. Flushes are answered when `run` is called."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from errno import EIO, ENOSPC

from strandline.base.disk import Buffer, File

SECTOR = 512


class PowerFailure(BaseException):
    """The power fails in the middle of an operation."""


class ManualTimer:
    """A timer of a `ManualClock`."""

    def __init__(self, due: int, callback: Callable[[], None]) -> None:
        self.due = due
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class ManualClock:
    """Stands still until it is moved. `run` runs what was called soon."""

    def __init__(self) -> None:
        self.now = 1_000_000
        self.wall = 1_700_000_000_000
        self.soon: list[Callable[[], None]] = []
        self.timers: list[ManualTimer] = []

    def monotonic_ms(self) -> int:
        return self.now

    def wall_ms(self) -> int:
        return self.wall

    def advance(self, ms: int) -> None:
        self.now += ms
        self.wall += ms
        due = [timer for timer in self.timers if timer.due <= self.now]
        self.timers = [timer for timer in self.timers if timer.due > self.now]
        for timer in due:
            if timer.callback is not None:
                timer.callback()

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> ManualTimer:
        timer = ManualTimer(self.now + delay_ms, callback)
        self.timers.append(timer)
        return timer

    def forget(self) -> None:
        """The process is gone, and what it was about to do."""
        self.soon.clear()
        self.timers.clear()

    def run(self) -> None:
        soon, self.soon = self.soon, []
        for callback in soon:
            callback()


@dataclass
class Content:
    """One file's bytes. A change is (position, data), or (size, None)."""

    seen: bytearray = field(default_factory=bytearray)
    platter: bytearray = field(default_factory=bytearray)
    changes: list[tuple[int, bytes | None]] = field(default_factory=list)
    flushed_count: int = 0
    """Changes that have left `changes` for the platter."""
    modified_ms: int = 0

    def apply(self, target: bytearray, position: int, data: bytes | None) -> None:
        if data is None:
            del target[position:]
            target.extend(bytes(position - len(target)))
            return
        if len(target) < position:
            target.extend(bytes(position - len(target)))
        target[position : position + len(data)] = data

    def change(self, position: int, data: bytes | None) -> None:
        self.apply(self.seen, position, data)
        self.changes.append((position, data))

    def flush_up_to(self, count: int) -> None:
        """The first `count` changes ever made are on the platter."""
        while self.changes and self.flushed_count < count:
            self.apply(self.platter, *self.changes.pop(0))
            self.flushed_count += 1

    def lose_up_to(self, count: int) -> None:
        """A flush of these failed: their bytes are seen, count as clean, and go nowhere. Sizes are
        in the file system's own journal, which has not failed."""
        lost = self.changes[: count - self.flushed_count]
        kept = [change for change in lost if change[1] is None]
        self.changes[: len(lost)] = kept
        self.flushed_count += len(lost) - len(kept)

    def change_count(self) -> int:
        return self.flushed_count + len(self.changes)

    def crash(self, rng: random.Random) -> None:
        """Each sector has taken a prefix of its changes, the size any one of its values."""
        history = [bytes(self.platter)]
        image = bytearray(self.platter)
        for position, data in self.changes:
            self.apply(image, position, data)
            history.append(bytes(image))
        final = history[rng.randrange(len(history))]
        style = rng.random()
        result = bytearray(len(final))
        for start in range(0, len(final), SECTOR):
            chosen = final if style < 0.3 else history[rng.randrange(len(history))]
            piece = chosen[start : min(start + SECTOR, len(final))]
            result[start : start + len(piece)] = piece
        self.platter[:] = result
        self.seen[:] = result
        self.changes.clear()


class ForgetfulFile:
    """See `base.disk.File`."""

    def __init__(self, disk: "ForgetfulDisk", path: str, content: Content) -> None:
        self.disk = disk
        self.path = path
        self.content = content

    def pwrite(self, buffers: Sequence[Buffer], position: int) -> None:
        self.disk.check("pwrite")
        data = b"".join(buffers)
        if self.disk.capacity is not None:
            growth = max(0, position + len(data) - len(self.content.seen))
            if self.disk.used() + growth > self.disk.capacity:
                self._change(position, data[: len(data) // 2])
                raise OSError(ENOSPC, "No space left on device")
        self._change(position, data)

    def _change(self, position: int, data: bytes | None) -> None:
        self.content.modified_ms = self.disk.now_ms()
        self.content.change(position, data)

    def pread(self, length: int, position: int) -> bytes:
        return bytes(self.content.seen[position : position + length])

    def size(self) -> int:
        return len(self.content.seen)

    def truncate(self, size: int) -> None:
        self.disk.check("truncate")
        self._change(size, None)

    def allocate(self, size: int) -> None:
        self.disk.check("allocate")
        growth = max(0, size - len(self.content.seen))
        if self.disk.capacity is not None and self.disk.used() + growth > self.disk.capacity:
            raise OSError(ENOSPC, "No space left on device")
        if growth:
            self._change(size, None)

    def written_end(self) -> int:
        return len(self.content.seen.rstrip(b"\0"))

    def forget_cached(self, position: int, length: int) -> None:
        assert length > 0
        content = self.content
        if not content.changes:
            here = slice(position, min(position + length, len(content.seen)))
            content.seen[here] = content.platter[here]

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        pass


class ForgetfulDisk:
    """See `base.disk.Disk`. `failing` names the operations that raise EIO from now on, `full` those
    that find no space.

    `fuse`: after so many more changes the power fails, in the middle of whatever goes on."""

    def __init__(self) -> None:
        self.names: dict[str, dict[str, Content]] = {}
        """{directory: {name: content}} as seen."""
        self.platter_names: dict[str, dict[str, Content]] = {}
        self.name_changes: dict[str, list[tuple[str, Content | None]]] = {}
        self.flushes: list[tuple[Content, int, Callable[[OSError | None], None]]] = []
        self.failing: set[str] = set()
        self.full: set[str] = set()
        self.capacity: int | None = None
        self.flush_count = 0
        self.fuse = -1
        self.now_ms: Callable[[], int] = lambda: 0

    def check(self, operation: str) -> None:
        if self.fuse == 0:
            raise PowerFailure
        self.fuse -= 1
        if operation in self.failing:
            raise OSError(EIO, f"{operation} failed")
        if operation in self.full:
            raise OSError(ENOSPC, "No space left on device")

    def used(self) -> int:
        return sum(len(c.seen) for names in self.names.values() for c in names.values())

    def _set(self, path: str, content: Content | None) -> None:
        directory, name = path.rsplit("/", 1)
        if content is None:
            self.names[directory].pop(name)
        else:
            self.names[directory][name] = content
        self.name_changes.setdefault(directory, []).append((name, content))

    def _find(self, path: str) -> Content | None:
        directory, name = path.rsplit("/", 1)
        return self.names.get(directory, {}).get(name)

    def open(self, path: str, *, create: bool = False) -> File:
        content = self._find(path)
        if content is None:
            if not create:
                raise FileNotFoundError(path)
            self.check("create")
            content = Content()
            self._set(path, content)
        return ForgetfulFile(self, path, content)

    def modified_ms(self, path: str) -> int:
        content = self._find(path)
        if content is None:
            raise FileNotFoundError(path)
        return content.modified_ms

    def exists(self, path: str) -> bool:
        return path in self.names or self._find(path) is not None

    def list_directory(self, path: str) -> list[str]:
        if path not in self.names:
            raise FileNotFoundError(path)
        return sorted(self.names[path])

    def make_directories(self, path: str) -> None:
        self.names.setdefault(path, {})
        self.platter_names.setdefault(path, {})

    def rename(self, source: str, target: str) -> None:
        self.check("rename")
        content = self._find(source)
        assert content is not None
        directory, name = source.rsplit("/", 1)
        new_name = target.rsplit("/", 1)[1]
        del self.names[directory][name]
        self.names[directory][new_name] = content
        self.name_changes.setdefault(directory, []).append((f"{name}>{new_name}", content))

    def remove(self, path: str) -> None:
        self.check("remove")
        if self._find(path) is not None:
            self._set(path, None)

    def remove_tree(self, path: str) -> None:
        self.names.pop(path, None)
        self.platter_names.pop(path, None)
        self.name_changes.pop(path, None)

    def flush_directory(self, path: str) -> None:
        self.check("flush_directory")
        for change in self.name_changes.pop(path, []):
            self._settle(path, change)

    def _settle(self, path: str, change: tuple[str, Content | None]) -> None:
        name, content = change
        names = self.platter_names.setdefault(path, {})
        if content is None:
            names.pop(name, None)
        elif ">" in name:
            old, new = name.split(">")
            names.pop(old, None)
            names[new] = content
        else:
            names[name] = content

    def flush_now(self, file: File) -> None:
        assert isinstance(file, ForgetfulFile)
        if "flush" in self.failing:
            file.content.lose_up_to(file.content.change_count())
        self.check("flush")
        file.content.flush_up_to(file.content.change_count())

    def flush_soon(self, file: File, done: Callable[[OSError | None], None]) -> None:
        assert isinstance(file, ForgetfulFile)
        self.flushes.append((file.content, file.content.change_count(), done))

    def run(self) -> None:
        """Answer the flushes that were asked for."""
        self.flush_count += 1
        flushes, self.flushes = self.flushes, []
        for content, count, done in flushes:
            if "flush" in self.failing:
                content.lose_up_to(count)
                done(OSError(EIO, "flush failed"))
            else:
                content.flush_up_to(count)
                done(None)

    def sync(self) -> None:
        """All that is written is durable."""
        for directory in self.names.values():
            for content in directory.values():
                content.flush_up_to(content.change_count())

    def free_bytes(self, path: str) -> int:
        return 1 << 40 if self.capacity is None else self.capacity - self.used()

    def total_bytes(self, path: str) -> int:
        return 1 << 41 if self.capacity is None else self.capacity

    def used_bytes(self, path: str) -> int:
        return self.total_bytes(path) - self.free_bytes(path)

    def crash(self, rng: random.Random) -> None:
        """The power fails and comes back."""
        self.fuse = -1
        self.flushes.clear()
        self.failing.clear()
        for path, changes in self.name_changes.items():
            for change in changes[: rng.randint(0, len(changes))]:
                self._settle(path, change)
        self.name_changes.clear()
        self.names = {path: dict(names) for path, names in self.platter_names.items()}
        for names in self.names.values():
            for content in names.values():
                content.crash(rng)

    def twin(self) -> "ForgetfulDisk":
        """An independent copy, without the flushes that were asked for."""
        twins: dict[int, Content] = {}

        def of(content: Content | None) -> Content | None:
            if content is not None and id(content) not in twins:
                twins[id(content)] = Content(
                    bytearray(content.seen),
                    bytearray(content.platter),
                    list(content.changes),
                    content.flushed_count,
                )
            return None if content is None else twins[id(content)]

        made = ForgetfulDisk()
        for ours, theirs in ((self.names, made.names), (self.platter_names, made.platter_names)):
            theirs.update(
                {path: {n: of(c) for n, c in names.items()} for path, names in ours.items()}  # type: ignore[misc]
            )
        made.name_changes = {
            path: [(name, of(content)) for name, content in changes]
            for path, changes in self.name_changes.items()
        }
        return made

    def kill(self) -> None:
        """The process ends wherever it is; what it did is seen by the next, and not durable."""
        self.fuse = -1
        self.flushes.clear()

    def evict(self) -> None:
        """The page cache lets go of what it takes for clean."""
        for names in self.names.values():
            for content in names.values():
                if not content.changes:
                    size = len(content.seen)
                    content.seen[:] = content.platter[:size].ljust(size, b"\0")

    def flip_bit_below(self, path: str, position: int) -> None:
        """Rot that the page cache hides; all of the file is durable."""
        content = self._find(path)
        assert content is not None and not content.changes
        content.platter[position] ^= 1

    def flip_bit(self, path: str, position: int, bit: int = 0) -> None:
        """Rot."""
        content = self._find(path)
        assert content is not None
        for data in (content.seen, content.platter):
            if position < len(data):
                data[position] ^= 1 << bit
