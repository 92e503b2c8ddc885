"""The real disk on real files, its flusher thread, and the data directory's identity.

Source: design section 4, "Flushing"; reliability: short writes, failing flushes, descriptors."""

import ctypes
import errno
import gc
import mmap
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from mmap import PAGESIZE
from pathlib import Path

import pytest
from tests.storage.storage_world import ManualClock

from strandline.base.disk import Buffer
from strandline.base.errors import OperatorError
from strandline.model.ids import BrokerId, Index, Offset
from strandline.records.batch import read_header
from strandline.records.record import Record, build_batch
from strandline.storage.config import LogConfig
from strandline.storage.disk import descriptor, flusher
from strandline.storage.disk.flusher import FDATASYNC_FILES_MAX
from strandline.storage.disk.real_disk import RealDisk, RealFile
from strandline.storage.identity import DataDirectory
from strandline.storage.log.log import Log

Callback = Callable[[], None]


class Loop:
    """What an event loop would be: a queue of callbacks."""

    def __init__(self) -> None:
        self.posted: queue.Queue[Callback] = queue.Queue()

    def post(self, callback: Callback) -> None:
        self.posted.put(callback)

    def run_one(self) -> None:
        self.posted.get(timeout=30)()


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def disk(loop: Loop) -> Iterator[RealDisk]:
    disk = RealDisk(loop.post)
    yield disk
    disk.close()


def test_files_are_written_read_cut_and_extended(disk: RealDisk, tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    with pytest.raises(FileNotFoundError):
        disk.open(path)
    file = disk.open(path, create=True)
    file.pwrite((b"hello ", bytearray(b"wide "), memoryview(b"world")), 2)
    assert file.pread(100, 0) == b"\0\0hello wide world"
    assert file.pread(5, 8) == b"wide "
    assert file.pread(5, 100) == b""
    file.truncate(7)
    assert (file.size(), file.pread(100, 0)) == (7, b"\0\0hello")
    file.allocate(4096)
    assert file.size() == 4096
    assert file.pread(10, 4) == b"llo" + bytes(7)
    file.allocate(10)
    assert file.size() == 4096
    assert os.fstat(file.fileno()).st_blocks >= 8
    file.close()


def test_reserved_space_counts_as_written_when_it_is(disk: RealDisk, tmp_path: Path) -> None:
    file = disk.open(str(tmp_path / "file"), create=True)
    assert file.written_end() == 0
    file.pwrite((bytes(100) + b"x" * 5_000,), 0)
    assert file.written_end() == 5_100
    file.allocate(1 << 20)
    assert file.written_end() == 8_192
    file.pwrite((b"x",), 600_000)
    assert 600_001 <= file.written_end() < 605_000
    assert not any(file.pread(1 << 20, 600_001))
    file.truncate(5_101)
    file.allocate(1 << 20)
    assert file.written_end() == 8_192
    file.close()


def test_more_buffers_than_one_call_takes_are_written(disk: RealDisk, tmp_path: Path) -> None:
    file = disk.open(str(tmp_path / "file"), create=True)
    parts = [b"%05d" % n for n in range(2_500)]
    file.pwrite(parts, 3)
    assert file.pread(20_000, 3) == b"".join(parts)


def test_short_writes_go_on_where_they_ended(
    disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = disk.open(str(tmp_path / "file"), create=True)
    pwrite = os.pwrite

    def short_pwritev(number: int, buffers: Sequence[Buffer], position: int) -> int:
        return pwrite(number, b"".join(buffers)[:7], position)

    monkeypatch.setattr(os, "pwritev", short_pwritev)
    monkeypatch.setattr(os, "pwrite", lambda number, data, at: pwrite(number, data[:3], at))
    file.pwrite((b"0123456789", b"abcdefghij"), 5)
    assert file.pread(100, 5) == b"0123456789abcdefghij"


@pytest.mark.parametrize("missing", [0, 1, PAGESIZE - 1])
def test_the_pages_of_a_file_leave_the_page_cache_all_of_them(
    disk: RealDisk, tmp_path: Path, missing: int
) -> None:
    """The kernel keeps a page that it is told to forget a part of, and what it holds as one."""
    file = disk.open(str(tmp_path / "f"), create=True)
    file.pwrite([bytes(4 * PAGESIZE)], 0)
    disk.flush_now(file)
    assert resident_pages(tmp_path / "f") == [True] * 4
    file.forget_cached(missing, 4 * PAGESIZE - 2 * missing)
    assert resident_pages(tmp_path / "f") == [False] * 4


def resident_pages(path: Path) -> list[bool]:
    """Which pages of a file are in the page cache, by mincore(2)."""
    size = path.stat().st_size
    count = -(-size // PAGESIZE)
    libc, told = ctypes.CDLL(None, use_errno=True), (ctypes.c_ubyte * count)()
    with path.open("r+b") as file, mmap.mmap(file.fileno(), size) as mapped:
        view = ctypes.c_char.from_buffer(mapped)
        failed = libc.mincore(ctypes.c_void_p(ctypes.addressof(view)), ctypes.c_size_t(size), told)
        del view
    assert not failed, ctypes.get_errno()
    return [bool(one & 1) for one in told]


def test_names_can_be_listed_renamed_and_removed(disk: RealDisk, tmp_path: Path) -> None:
    directory = f"{tmp_path}/a/b"
    disk.make_directories(directory)
    disk.make_directories(directory)
    for name in ("z", "y"):
        disk.open(f"{directory}/{name}", create=True).close()
    assert disk.list_directory(directory) == ["y", "z"]
    disk.rename(f"{directory}/z", f"{directory}/y")
    disk.flush_directory(directory)
    assert disk.list_directory(directory) == ["y"]
    disk.remove(f"{directory}/y")
    disk.remove(f"{directory}/y")
    disk.remove_tree(f"{tmp_path}/a")
    disk.remove_tree(f"{tmp_path}/a")
    assert not disk.exists(directory)
    assert 0 < disk.free_bytes(str(tmp_path)) <= disk.total_bytes(str(tmp_path))


@pytest.mark.parametrize("count", (1, FDATASYNC_FILES_MAX, FDATASYNC_FILES_MAX + 20))
def test_flushes_are_answered_in_one_callback_a_round(
    disk: RealDisk, loop: Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    flush = os.fdatasync
    begun, gate = threading.Event(), threading.Event()

    def slow(number: int) -> None:
        begun.set()
        assert gate.wait(30)
        flush(number)

    monkeypatch.setattr(os, "fdatasync", slow)
    answers: list[tuple[int, OSError | None]] = []
    files = [disk.open(str(tmp_path / str(n)), create=True) for n in range(1 + count)]
    for n, file in enumerate(files):
        file.pwrite((b"x",), 0)
        disk.flush_soon(file, lambda error, n=n: answers.append((n, error)))
        assert begun.wait(30), "the first one begins a round of its own"
    gate.set()
    loop.run_one()
    loop.run_one()
    assert answers == [(n, None) for n in range(1 + count)]


def test_one_file_is_flushed_once_a_round_for_everybody(
    disk: RealDisk, loop: Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate: queue.Queue[None] = queue.Queue()
    flushed: list[int] = []

    def slow(number: int) -> None:
        flushed.append(number)
        gate.get(timeout=30)

    monkeypatch.setattr(os, "fdatasync", slow)
    file = disk.open(str(tmp_path / "file"), create=True)
    answers: list[OSError | None] = []
    disk.flush_soon(file, answers.append)
    while not flushed:
        pass
    for _ in range(50):
        disk.flush_soon(file, answers.append)
    gate.put(None)
    gate.put(None)
    loop.run_one()
    loop.run_one()
    assert len(answers) == 51
    assert len(flushed) == 2


def test_a_failed_flush_reaches_everybody_who_waits_for_that_file(
    disk: RealDisk, loop: Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = disk.open(str(tmp_path / "good"), create=True)
    bad = disk.open(str(tmp_path / "bad"), create=True)

    def flush(number: int) -> None:
        if number == bad.fileno():
            raise OSError(errno.EIO, "no")

    monkeypatch.setattr(os, "fdatasync", flush)
    answers: dict[str, list[OSError | None]] = {"good": [], "bad": []}
    for _ in range(3):
        disk.flush_soon(good, answers["good"].append)
        disk.flush_soon(bad, answers["bad"].append)
    while len(answers["good"]) + len(answers["bad"]) < 6:
        loop.run_one()
    assert answers["good"] == [None] * 3
    assert [type(error) for error in answers["bad"]] == [OSError] * 3


def test_a_failed_syncfs_reaches_all(
    disk: RealDisk, loop: Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[int] = []

    def fail(number: int) -> None:
        used.append(number)
        raise OSError(errno.EIO, "no")

    monkeypatch.setattr(flusher, "_syncfs", fail)
    monkeypatch.setattr(os, "fdatasync", fail)
    files = [disk.open(str(tmp_path / str(n)), create=True) for n in range(20)]
    descriptors = [file.descriptor for file in files if isinstance(file, RealFile)]
    errors = flusher.flush_all(descriptors, {descriptors[0].device: descriptors[0]})
    assert all(isinstance(error, OSError) for error in errors)
    assert used == [descriptors[0].number], "the descriptor that saw every failure since the start"


def test_syncfs_works_here(tmp_path: Path) -> None:
    number = os.open(tmp_path, os.O_RDONLY)
    flusher._syncfs(number)
    os.close(number)
    with pytest.raises(OSError, match="syncfs"):
        flusher._syncfs(number)


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_closed_file_is_flushed_all_the_same_and_no_descriptor_leaks(
    loop: Loop, tmp_path: Path
) -> None:
    gc.collect()
    before = open_descriptors()
    disk = RealDisk(loop.post)
    answers: list[OSError | None] = []
    for n in range(30):
        file = disk.open(str(tmp_path / str(n)), create=True)
        file.pwrite((b"x",), 0)
        disk.flush_soon(file, answers.append)
        file.close()
    del file
    disk.close()
    while not loop.posted.empty():
        loop.run_one()
    assert answers == [None] * 30
    del disk
    gc.collect()
    assert open_descriptors() == before


def test_a_removed_file_can_be_read_to_its_end(disk: RealDisk, tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    file = disk.open(path, create=True)
    file.pwrite((b"still here",), 0)
    disk.remove(path)
    others = [disk.open(str(tmp_path / str(n)), create=True) for n in range(3)]
    assert file.pread(10, 0) == b"still here"
    assert file.fileno() not in [other.fileno() for other in others]


def append(log: Log, value: bytes) -> None:
    batch = build_batch([Record(0, 5, None, value)], base_offset=log.end_offset, epoch=1)
    header = read_header(batch)
    assert header is not None
    log.append([batch], [header])


def test_a_log_on_real_files_survives_a_restart_and_serves_old_readers(
    disk: RealDisk, loop: Loop, tmp_path: Path
) -> None:
    clock = ManualClock()
    config = LogConfig(segment_bytes=50_000, retention_ms=-1)
    directory = f"{tmp_path}/logs/topic-0.1"
    log = Log.open(disk, directory, config=config, clock=clock)
    for n in range(100):
        append(log, b"%04d" % n * 500)
    results: list[Index | OSError] = []
    log.flush_soon(results.append)
    while not results:
        loop.run_one()
    assert results == [99]
    held = log.read_records(Offset(0), 20_000, log.end_offset)
    expected = held.bytes()
    log.remove_segments_before(Offset(60))
    assert log.start_offset > 0
    assert held.bytes() == expected, "a reader keeps the segment alive"
    rest = log.read_records(log.start_offset, 1 << 20, log.end_offset).bytes()
    log.close()
    log = Log.open(disk, directory, config=config, clock=clock)
    assert log.read_records(log.start_offset, 1 << 20, log.end_offset).bytes() == rest
    assert log.flushed_index == 99
    log.close()
    disk.remove_tree(directory)
    assert not os.path.exists(directory)


# ---- identity ----


def acquire(path: Path, broker: int = 1, cluster: str = "") -> DataDirectory:
    return DataDirectory.acquire(str(path), broker_id=BrokerId(broker), cluster_id=cluster)


def test_reserved_space_is_neither_read_nor_cut_off_when_a_killed_log_is_opened(
    disk: RealDisk, tmp_path: Path
) -> None:
    directory = str(tmp_path / "log")
    log = Log.open(disk, directory, config=LogConfig(), clock=ManualClock())
    batch = build_batch([Record(offset_delta=0, key=None, value=bytes(40_000))])
    for at in range(20):
        batch[:8] = at.to_bytes(8)
        log.append([batch], [read_header(batch, 0)])
    (path,) = (tmp_path / "log").glob("*.log")
    assert (reserved := path.stat().st_size) > log.size_bytes() + 100_000
    # The process is killed: nothing is trimmed. Another one opens the log.
    again = Log.open(disk, directory, config=LogConfig(), clock=ManualClock())
    assert again.last_index == 19
    assert path.stat().st_size == reserved
    again.close()


def test_a_directory_belongs_to_its_first_broker_and_cluster(tmp_path: Path) -> None:
    path = tmp_path / "data"
    first = acquire(path)
    assert first.identity.cluster_id == ""
    assert not first.identity.has_joined
    first.set_cluster_id("abc")
    first.set_cluster_id("abc")
    assert first.identity.has_joined
    with pytest.raises(OperatorError, match="belongs to cluster abc, not xyz"):
        first.set_cluster_id("xyz")
    first.release()
    again = acquire(path, cluster="abc")
    assert again.identity == first.identity and again.identity.has_joined
    again.release()
    with pytest.raises(OperatorError, match="belongs to broker 1, not 2"):
        acquire(path, broker=2)
    with pytest.raises(OperatorError, match="belongs to cluster abc, not xyz"):
        acquire(path, cluster="xyz")
    acquire(path).release()


def test_a_directory_in_use_is_refused_to_another_process(tmp_path: Path) -> None:
    held = acquire(tmp_path)
    script = (
        "import sys\n"
        "from strandline.base.errors import OperatorError\n"
        "from strandline.storage.identity import DataDirectory\n"
        "try:\n"
        "    DataDirectory.acquire(sys.argv[1], broker_id=1)\n"
        "except OperatorError as error:\n"
        "    sys.exit(str(error))\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "in use by another process" in refused.stderr
    held.release()
    assert subprocess.run(command, check=False).returncode == 0


def test_a_damaged_identity_and_an_unusable_path_are_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "identity.json").write_text("{")
    with pytest.raises(OperatorError, match="is damaged") as refusal:
        acquire(tmp_path)
    assert "\n" not in str(refusal.value)
    (tmp_path / "file").write_text("")
    with pytest.raises(OperatorError, match="cannot be used"):
        acquire(tmp_path / "file")


def test_an_allocation_that_fails_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ext4 goes on until nothing is left, and leaves it with the file: nobody else had any."""

    def allocate_some(number: int, position: int, length: int) -> None:
        os.truncate(number, position + length // 2)
        raise OSError(errno.ENOSPC, "No space left on device")

    file = RealFile(str(tmp_path / "file"), os.O_RDWR | os.O_CREAT)
    file.pwrite((b"data",), 0)
    monkeypatch.setattr(os, "posix_fallocate", allocate_some)
    with pytest.raises(OSError, match="No space left"):
        file.allocate(1 << 20)
    assert file.size() == 4
    assert file.pread(100, 0) == b"data"
    file.close()


def test_a_file_that_was_removed_gives_its_space_back(disk: RealDisk, tmp_path: Path) -> None:
    """The first one of all, which is what the disk keeps for few, was open for ever."""
    path = str(tmp_path / "first")
    file = disk.open(path, create=True)
    assert path in _open_files()
    file.close()
    disk.remove(path)
    assert not [name for name in _open_files() if name.startswith(path)]


def _open_files() -> list[str]:
    """What this process has open; a removed one has "(deleted)" behind its name."""
    links = Path("/proc/self/fd").iterdir()
    return [os.readlink(link) for link in links if link.is_symlink()]


def test_the_last_close_of_a_removed_file_is_on_another_thread(
    disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel frees the space in it, and waits for the file's writeback first."""
    closed: queue.SimpleQueue[tuple[int, int]] = queue.SimpleQueue()
    close = os.close

    def note_close(number: int) -> None:
        closed.put((number, threading.get_ident()))
        close(number)

    monkeypatch.setattr(descriptor, "_closer", descriptor.Closer(note_close))
    path = str(tmp_path / "file")
    for is_removed in (False, True):
        file = disk.open(path, create=True)
        number = file.fileno()
        if is_removed:
            disk.remove(path)
        del file
        found, thread = closed.get(timeout=30)
        assert found == number
        assert (thread == threading.get_ident()) != is_removed


HOLDS_REMOVED_FILE = """
import os, sys
from strandline.storage.disk.descriptor import Descriptor

held = Descriptor(sys.argv[1], os.O_CREAT | os.O_RDWR)
os.unlink(sys.argv[1])
"""


def test_a_process_ends_that_holds_a_removed_file(tmp_path: Path) -> None:
    # The interpreter drops `held` while it shuts down: no thread can start then.
    done = subprocess.run(
        [sys.executable, "-c", HOLDS_REMOVED_FILE, tmp_path / "file"], timeout=60, check=False
    )
    assert done.returncode == 0
