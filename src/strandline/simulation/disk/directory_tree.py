"""The names on a simulated disk: what a process sees, and what would be left after a power failure.

Why:    a file that was flushed and whose name was not is gone after a crash; a removed one is back.
How:    each directory has its entries as seen and its entries on the platter; between them lies one
        list of changes of names, in order. `flush` applies those of one directory, and makes the
        directory's own place in the tree durable as every journaling file system does. `crash`
        lets a part of the rest arrive: per directory always the first ones.
Owns:   the tree; `file_image.py` owns the bytes.
Source: design section 10; base/disk.py (`flush_directory`)."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from strandline.simulation.disk.file_image import CrashStyle, FileImage


@dataclass(slots=True, eq=False)
class Directory:
    """Names as seen, and names on the platter."""

    entries: dict[str, "FileImage | Directory"] = field(default_factory=dict)
    durable: dict[str, "FileImage | Directory"] = field(default_factory=dict)


Node = FileImage | Directory


@dataclass(slots=True)
class NameChange:
    """Names in one or two directories that change together; None removes the name."""

    places: tuple[tuple[Directory, str, Node | None], ...]

    def touches(self, directory: Directory) -> bool:
        """Whether a name in `directory` changes."""
        return any(place[0] is directory for place in self.places)

    def apply(self) -> None:
        """It is on the platter from now on."""
        for directory, name, node in self.places:
            if node is None:
                directory.durable.pop(name, None)
            else:
                directory.durable[name] = node


class DirectoryTree:
    """See the module. Paths are absolute; the root is always there."""

    def __init__(self) -> None:
        self.root = Directory()
        self.unflushed: list[NameChange] = []

    def find(self, path: str) -> Node | None:
        """The file or directory at `path`, as seen."""
        node: Node | None = self.root
        for name in _names(path):
            if not isinstance(node, Directory):
                return None
            node = node.entries.get(name)
        return node

    def directory(self, path: str) -> Directory:
        """The directory at `path`; raises FileNotFoundError or NotADirectoryError."""
        node = self.find(path)
        if node is None:
            raise FileNotFoundError(2, "No such file or directory", path)
        if not isinstance(node, Directory):
            raise NotADirectoryError(20, "Not a directory", path)
        return node

    def place(self, path: str) -> tuple[Directory, str]:
        """The directory that holds `path`, and the name in it."""
        parent, _, name = path.rstrip("/").rpartition("/")
        return self.directory(parent or "/"), name

    def change(self, *places: tuple[Directory, str, Node | None]) -> None:
        """Set or remove names, as seen; durable once flushed."""
        for directory, name, node in places:
            if node is None:
                directory.entries.pop(name, None)
            else:
                directory.entries[name] = node
        self.unflushed.append(NameChange(places))

    def flush(self, path: str) -> None:
        """Make the names in this directory durable, and its own place."""
        directory = self.directory(path)
        last = max((i for i, c in enumerate(self.unflushed) if c.touches(directory)), default=-1)
        across = any(len(c.places) > 1 and c.touches(directory) for c in self.unflushed)
        rest = []
        for number, change in enumerate(self.unflushed):
            if change.touches(directory) or (across and number < last):
                change.apply()
            else:
                rest.append(change)
        self.unflushed = rest
        self._flush_place(path)

    def flush_all(self) -> None:
        """Make all names durable."""
        for change in self.unflushed:
            change.apply()
        self.unflushed = []

    def files(self) -> Iterator[tuple[str, FileImage]]:
        """Every file as seen, with its path, sorted by path."""
        yield from _walk("", self.root)

    def crash(self, rng: random.Random, style: CrashStyle) -> int:
        """The power fails; returns how many changes of names were lost."""
        lost: list[Directory] = []
        lost_count = 0
        prefix_length = rng.randint(0, len(self.unflushed))
        for number, change in enumerate(self.unflushed):
            match style:
                case CrashStyle.KEEP_ALL:
                    arrives = True
                case CrashStyle.LOSE_ALL:
                    arrives = False
                case CrashStyle.PREFIX:
                    arrives = number < prefix_length
                case CrashStyle.PER_WRITE | CrashStyle.SCATTER:
                    arrives = rng.random() < 0.5
            if arrives and not any(change.touches(directory) for directory in lost):
                change.apply()
            else:
                lost.extend(directory for directory, _, _ in change.places)
                lost_count += 1
        self.unflushed = []
        _settle(self.root)
        return lost_count

    def _flush_place(self, path: str) -> None:
        parent = self.root
        for name in _names(path):
            node = parent.entries[name]
            assert isinstance(node, Directory)
            if parent.durable.get(name) is not node:
                parent.durable[name] = node
                made = (parent, name, node)
                self.unflushed = [c for c in self.unflushed if c.places != (made,)]
            parent = node


@lru_cache(maxsize=10_000)
def _names(path: str) -> tuple[str, ...]:
    assert path.startswith("/"), path
    return tuple(name for name in path.split("/") if name)


def _walk(prefix: str, directory: Directory) -> Iterator[tuple[str, FileImage]]:
    for name, node in sorted(directory.entries.items()):
        if isinstance(node, Directory):
            yield from _walk(f"{prefix}/{name}", node)
        else:
            yield f"{prefix}/{name}", node


def _settle(directory: Directory) -> None:
    """What is on the platter is all there is."""
    directory.entries = dict(directory.durable)
    for node in directory.entries.values():
        if isinstance(node, Directory):
            _settle(node)
