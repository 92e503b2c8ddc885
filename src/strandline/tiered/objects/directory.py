"""A directory as a bucket: for clusters on one machine, and for file systems that all brokers see.

Why:    an acknowledged object must survive the power like one of a real store. obstore's own
        directory store renames without a flush, so this one writes files itself.
How:    A write goes to a file under `.tmp`, is flushed, and gets its name by a rename; `create`
        links it, which fails if the name is taken. Then the directories are flushed. All of it runs
        in threads. A mark in the root shows that the file system is mounted: without it nothing
        counts as absent. Only a process that writes makes the root and the mark, before its first
        write: a command that reads must not take a mount point for an empty bucket.
Owns:   the directory's root; several brokers may share it.
Source: decision 0058; base.disk on flushes."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from secrets import token_hex
from shutil import copyfile
from typing import TypeVar

from strandline.base.disk import Buffer
from strandline.tiered.objects.backend import Backend, NotFoundAnswerError, TakenAnswerError
from strandline.tiered.objects.store import ObjectInfo, StoreError

THREADS_MAX = 4
PAGE_COUNT = 1_000
MARK = ".strandline-bucket"
TEMPORARY = ".tmp"
LEFTOVER_S = 86_400
"""A temporary file this old is what a broker left that died."""
_T = TypeVar("_T")


class DirectoryBackend:
    """See `backend.Backend`, and the module."""

    def __init__(self, root: str) -> None:
        assert root.startswith("/"), root
        self._root = Path(root)
        self._is_ready = False

    async def put(self, name: str, data: bytes) -> None:
        """See `Backend.put`."""
        await self._run(lambda: self._write(name, data, os.replace), makes_root=True)

    async def put_parts(
        self, name: str, parts: AsyncIterator[Sequence[Buffer]], *, parts_max: int
    ) -> None:
        """See `Backend.put_parts`; one part is in flight."""
        temporary = await self._run(self._new_temporary, makes_root=True)
        try:
            async for part in parts:
                await self._run(partial(_append, temporary, part))
            await self._run(lambda: self._publish(temporary, name, os.replace))
        except BaseException:
            _threads().submit(_remove, temporary)
            raise

    async def create(self, name: str, data: bytes) -> None:
        """See `Backend.create`."""
        try:
            await self._run(lambda: self._write(name, data, os.link), makes_root=True)
        except FileExistsError:
            raise TakenAnswerError(f"{name} is there") from None

    async def get(self, name: str, *, bytes_max: int) -> bytes:
        """See `Backend.get`."""
        return await self._run(lambda: self._read_whole(name, bytes_max))

    async def get_range(self, name: str, start: int, end: int) -> bytes:
        """See `Backend.get_range`."""
        return await self._run(lambda: self._read(name, start, end))

    async def size(self, name: str) -> int:
        """See `Backend.size`."""
        return await self._run(lambda: self._path(name).stat().st_size)

    async def is_absent(self, name: str) -> bool:
        """See `Backend.is_absent`."""
        return await self._run(lambda: self._lacks(name))

    async def pages(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        """See `Backend.pages`."""
        found = self._walk(self._root, "", prefix)
        while page := await self._run(lambda: self._page(found)):
            yield page

    def copies_from(self, source: Backend) -> bool:
        """See `Backend.copies_from`."""
        return isinstance(source, DirectoryBackend)

    async def copy_from(self, source: Backend, name: str, new_name: str) -> None:
        """See `Backend.copy_from`: the kernel copies, and the copy is flushed."""
        assert isinstance(source, DirectoryBackend)
        origin = source._path(name)
        await self._run(lambda: self._copy(origin, new_name), makes_root=True)

    async def delete(self, names: Sequence[str]) -> None:
        """See `Backend.delete`."""
        await self._run(lambda: self._delete(names))

    # ---- in threads ------------------------------------------------------------------------------

    async def _run(self, work: Callable[[], _T], *, makes_root: bool = False) -> _T:
        loop = asyncio.get_running_loop()
        wanted = partial(self._prepared, work) if makes_root else work
        try:
            return await loop.run_in_executor(_threads(), wanted)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
            raise NotFoundAnswerError(_reason(error)) from None
        except FileExistsError:
            raise
        except OSError as error:
            raise StoreError(_reason(error)) from None

    def _prepared(self, work: Callable[[], _T]) -> _T:
        if not self._is_ready:
            self._prepare()
            self._is_ready = True
        return work()

    def _prepare(self) -> None:
        """Make the directory, its mark, and room for temporary files."""
        is_new = not self._root.exists()
        (self._root / TEMPORARY).mkdir(parents=True, exist_ok=True)
        mark = self._root / MARK
        if not mark.exists():
            mark.touch()
        if is_new:
            _flush(self._root.parent)
        _flush(self._root)
        oldest = time.time() - LEFTOVER_S
        for entry in os.scandir(self._root / TEMPORARY):
            with suppress(FileNotFoundError):
                if entry.stat().st_mtime < oldest:
                    os.unlink(entry.path)

    def _require_mark(self) -> None:
        if not (self._root / MARK).exists():
            raise StoreError(f"{self._root} lacks {MARK}: is its file system mounted?")

    def _path(self, name: str) -> Path:
        return self._root / name

    def _new_temporary(self) -> Path:
        self._require_mark()
        path = self._root / TEMPORARY / token_hex(16)
        path.touch(exist_ok=False)
        return path

    def _write(self, name: str, data: bytes, publish: Callable[[Path, Path], None]) -> None:
        temporary = self._new_temporary()
        try:
            _append(temporary, [data])
            self._publish(temporary, name, publish)
        finally:
            _remove(temporary)

    def _copy(self, origin: Path, name: str) -> None:
        temporary = self._new_temporary()
        try:
            copyfile(origin, temporary)
            self._publish(temporary, name, os.replace)
        finally:
            _remove(temporary)

    def _publish(self, temporary: Path, name: str, publish: Callable[[Path, Path], None]) -> None:
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        target = self._path(name)
        made = self._make_directories(target.parent)
        publish(temporary, target)
        _remove(temporary)
        for directory in dict.fromkeys((target.parent, *made)):
            _flush(directory)

    def _make_directories(self, directory: Path) -> list[Path]:
        """Make a directory of names; those that have new entries by it."""
        missing = []
        while not directory.exists():
            missing.append(directory)
            directory = directory.parent
        for one in reversed(missing):
            one.mkdir(exist_ok=True)
        return [one.parent for one in missing]

    def _read_whole(self, name: str, bytes_max: int) -> bytes:
        with self._path(name).open("rb") as file:
            data = file.read(bytes_max + 1)
        if len(data) > bytes_max:
            raise StoreError(f"{name} is larger than {bytes_max} bytes")
        return data

    def _read(self, name: str, start: int, end: int) -> bytes:
        with self._path(name).open("rb") as file:
            return os.pread(file.fileno(), end - start, start)

    def _lacks(self, name: str) -> bool:
        self._require_mark()
        return not self._path(name).is_file()

    def _page(self, found: Iterator[ObjectInfo]) -> Sequence[ObjectInfo]:
        self._require_mark()
        return list(islice(found, PAGE_COUNT))

    def _walk(self, directory: Path, parent: str, prefix: str) -> Iterator[ObjectInfo]:
        """The objects below a directory, by name: a directory sorts as its name and a slash."""
        try:
            entries = [(one, one.is_dir()) for one in os.scandir(directory)]
        except FileNotFoundError:  # Removed by now.
            return
        named = ((f"{parent}{one.name}{'/' * is_dir}", one, is_dir) for one, is_dir in entries)
        for name, entry, is_dir in sorted(named, key=lambda row: row[0]):
            if entry.name.startswith("."):
                continue
            if is_dir and (name.startswith(prefix) or prefix.startswith(name)):
                yield from self._walk(Path(entry.path), name, prefix)
            elif not is_dir and name.startswith(prefix):
                with suppress(FileNotFoundError):
                    found = entry.stat()
                    yield ObjectInfo(name, found.st_size, found.st_mtime_ns // 1_000_000)

    def _delete(self, names: Sequence[str]) -> None:
        self._require_mark()
        for name in names:
            with suppress(FileNotFoundError):
                self._path(name).unlink()
        for directory in dict.fromkeys(self._path(name).parent for name in names):
            with suppress(FileNotFoundError):
                _flush(directory)


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    """The threads of all directories of this process."""
    return ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="bucket")


def _append(path: Path, buffers: Sequence[Buffer]) -> None:
    with path.open("ab", buffering=0) as file:
        for one in buffers:
            rest = memoryview(one)
            while rest:
                rest = rest[file.write(rest) or 0 :]


def _flush(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    with suppress(FileNotFoundError):
        path.unlink()


def _reason(error: OSError) -> str:
    return f"{error.strerror or error}: {error.filename}" if error.filename else str(error)
