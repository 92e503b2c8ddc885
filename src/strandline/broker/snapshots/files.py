"""The snapshots on a broker's disk.

Why:    records are removed because a snapshot has what they make: it must be there, whole, after
        any crash.
How:    taking.part --flushed, renamed, directory flushed--> OFFSET-EPOCH.checkpoint
        A name ends in `.checkpoint` only once its bytes are durable; checksums tell whether they
        still are what was written (`controller.snapshots.format`). The two newest stay, so that one
        damaged file costs nothing: the log is cut behind the older one.
            A snapshot that comes from another broker is a `.part` until it is whole; its name says
        which one it is, so that a restart goes on with it.
Owns:   the directory.
Source: decision 0062; KIP-630 (names)."""

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass

from strandline.base.disk import Disk, File
from strandline.controller.snapshots import format as snapshot_format
from strandline.controller.snapshots.format import BadSnapshotError, Head
from strandline.controller.state import ControllerState
from strandline.model.ids import Epoch, Offset
from strandline.storage.layout import make_durable_directory, read_whole

KEPT_COUNT = 2
TAKING = "taking.part"
_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint\Z")
_INCOMING = re.compile(r"(\d{20})-(\d{10})-(\d+)-(\d+)\.part\Z")

Done = Callable[[OSError | None], None]

_log = logging.getLogger("strandline.controller")


@dataclass(frozen=True, slots=True)
class SnapshotId:
    """One snapshot: the state after the records below `offset`, the last of which is of `epoch`;
    its size, and the CRC-32C of all its bytes."""

    offset: Offset
    epoch: Epoch
    size_bytes: int
    crc: int

    @property
    def name(self) -> str:
        """Of its file."""
        return f"{self.offset:020d}-{self.epoch:010d}.checkpoint"

    @property
    def part_name(self) -> str:
        """Of its file while it is copied from another broker."""
        return f"{self.offset:020d}-{self.epoch:010d}-{self.size_bytes}-{self.crc}.part"


class SnapshotFiles:
    """See the module. `kept`: the durable snapshots that were found whole, ascending."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self.directory = directory
        self.kept: list[SnapshotId] = []

    @property
    def newest(self) -> SnapshotId | None:
        """The newest of `kept`."""
        return self.kept[-1] if self.kept else None

    @property
    def needless_before(self) -> Offset:
        """Records below this offset are needed by no snapshot that may have to be used."""
        return self.kept[-KEPT_COUNT].offset if len(self.kept) >= KEPT_COUNT else Offset(0)

    def open(self) -> None:
        """Remove what a crash has left unfinished; the first snapshot makes the directory. Raises
        OSError."""
        if TAKING in self._names():
            self._disk.remove(self._path(TAKING))

    def discard(self) -> None:
        """Remove all of them: they are of another life of this broker. Raises OSError."""
        names = self._names()
        for name in names:
            self._disk.remove(self._path(name))
        if names:
            self._disk.flush_directory(self.directory)

    def load(self) -> tuple[Head, ControllerState] | None:
        """The newest whole snapshot; None if there is none. Raises OSError, and OperatorError if a
        newer version wrote it."""
        for name in reversed(self._names()):
            match = _NAME.match(name)
            if match is None:
                continue
            offset, epoch = Offset(int(match[1])), Epoch(int(match[2]))
            data = self.read(name)
            try:
                if data is None:
                    raise BadSnapshotError("the disk cannot read it")
                head, state = snapshot_format.read(data)
                if (head.offset, head.epoch) != (offset, epoch):
                    raise BadSnapshotError(f"it is of offset {head.offset}, epoch {head.epoch}")
            except BadSnapshotError as error:
                _log.error(
                    "the snapshot %s of the controller's state is damaged: %s; an earlier one "
                    "and the log are used",
                    self._path(name),
                    error,
                )
                continue
            crc = snapshot_format.checksum(data)
            self.kept = [SnapshotId(offset, epoch, len(data), crc)]
            return head, state
        return None

    def read(self, name: str) -> bytes | None:
        """A whole file; None if it is absent or cannot be read."""
        try:
            return read_whole(self._disk, self._path(name))
        except OSError:
            return None

    def read_chunk(self, snapshot: SnapshotId, position: int, length: int) -> bytes:
        """Bytes of a kept snapshot. Raises OSError."""
        file = self._disk.open(self._path(snapshot.name))
        try:
            return file.pread(length, position)
        finally:
            file.close()

    # ---- adding ----------------------------------------------------------------------------------

    def add(
        self, snapshot: SnapshotId, data: bytes, done: Callable[[OSError | None], None]
    ) -> None:
        """Store a whole snapshot; `done` is called once it is durable, or with the error. One at a
        time, `add_incoming` included."""
        try:
            make_durable_directory(self._disk, self.directory)
            self._disk.remove(self._path(TAKING))
            file = self._disk.open(self._path(TAKING), create=True)
            file.pwrite((data,), 0)
        except OSError as error:
            done(error)
            return
        self._finish(snapshot, file, TAKING, done)

    def add_incoming(self, snapshot: SnapshotId, done: Done) -> None:
        """Keep a copied snapshot; as `add`."""
        try:
            file = self._disk.open(self._path(snapshot.part_name))
        except OSError as error:
            done(error)
            return
        self._finish(snapshot, file, snapshot.part_name, done)

    def _finish(self, snapshot: SnapshotId, file: File, name: str, done: Done) -> None:
        def on_flushed(error: OSError | None) -> None:
            file.close()
            done(error or self._name(snapshot, name))

        self._disk.flush_soon(file, on_flushed)

    def _name(self, snapshot: SnapshotId, source: str) -> OSError | None:
        """Give durable bytes their name, durably, and remove what is not kept any more."""
        try:
            self._disk.rename(self._path(source), self._path(snapshot.name))
            self._disk.flush_directory(self.directory)
        except OSError as error:
            return error
        others = [one for one in self.kept if one.offset != snapshot.offset]
        self.kept = sorted([*others, snapshot], key=_age)[-KEPT_COUNT:]
        names = {one.name for one in self.kept}
        try:
            for name in self._disk.list_directory(self.directory):
                if _NAME.match(name) and name not in names:
                    self._disk.remove(self._path(name))
        except OSError as error:
            _log.warning("old snapshots in %s stay for now: %s", self.directory, error)
        return None

    # ---- from another broker ---------------------------------------------------------------------

    def incoming(self) -> tuple[SnapshotId, int] | None:
        """The newest snapshot that was being copied here, and how many bytes of it are here.
        Raises OSError."""
        for name in reversed(self._names()):
            match = _INCOMING.match(name)
            if match is not None:
                offset, epoch, size_bytes, crc = map(int, match.groups())
                found = SnapshotId(Offset(offset), Epoch(epoch), size_bytes, crc)
                file = self._disk.open(self._path(name))
                try:
                    return found, min(file.size(), size_bytes)
                finally:
                    file.close()
        return None

    def put_chunk(self, snapshot: SnapshotId, position: int, data: bytes) -> None:
        """Write bytes of a snapshot that comes from another broker. Raises OSError."""
        if position == 0:
            make_durable_directory(self._disk, self.directory)
            self.drop_incoming()
        file = self._disk.open(self._path(snapshot.part_name), create=True)
        try:
            file.pwrite((data,), position)
        finally:
            file.close()

    def drop_incoming(self) -> None:
        """Remove what was copied. Raises OSError."""
        for name in self._names():
            if _INCOMING.match(name):
                self._disk.remove(self._path(name))

    def read_incoming(self, snapshot: SnapshotId) -> bytes:
        """All bytes of a copied snapshot. Raises OSError, BadSnapshotError."""
        data = read_whole(self._disk, self._path(snapshot.part_name))
        if data is None or len(data) != snapshot.size_bytes:
            raise BadSnapshotError("it is not whole")
        if snapshot_format.checksum(data) != snapshot.crc:
            raise BadSnapshotError("its checksum is wrong")
        head = snapshot_format.read_head(data)
        if (head.offset, head.epoch) != (snapshot.offset, snapshot.epoch):
            raise BadSnapshotError(f"it is of offset {head.offset}, epoch {head.epoch}")
        return data

    def _names(self) -> list[str]:
        """The files that are there, sorted."""
        if not self._disk.exists(self.directory):
            return []
        return self._disk.list_directory(self.directory)

    def _path(self, name: str) -> str:
        return f"{self.directory}/{name}"


def _age(snapshot: SnapshotId) -> Offset:
    return snapshot.offset
