"""Epoch and vote of every group of a broker, in one journal.

Why:    a replica that forgets its vote can vote twice, and then one epoch has two leaders. A file
        and a flush for each group would cost a thousand flushes when a broker starts.
How:    [record][record]...[zeros]     each padded to 16 bytes:
            u32  CRC-32C of what follows
            u32  length of the payload
            u64  how much of the file was durable when this record was written
            payload: MessagePack [group, state or nil]
        Write:   a put appends a record and ends when a flush covers it; the disk shares flushes.
        Read:    reading stops at the first bad record, a torn tail. If a later good record says
                 that the bad one was durable, it is damage, and opening the journal fails.
        Open:    rewrites the records that no later record calls durable. If an earlier process
                 failed to flush them, only the page cache has them, and it counts them as clean.
        Compact: when the file has grown, the live states go into a new file that takes its name.
        Seal:    a record that removes a group that does not exist. It follows the last state once
                 that is durable, so that damage of the last state is detected too. The next record
                 overwrites it; if none follows for a while, it is flushed and stays.
        Space:   allocated ahead, when the journal is opened too: a broker that cannot store a vote
                 does not start. A put that finds no space changes nothing and may be tried again.
Owns:   the file, and {group: state} in memory.
Source: design section 4, "Hard state"; Raft thesis, figure 3.1 (persistent state); ATC'20, "Can
        Applications Recover from fsync Failures?"."""

from collections.abc import Callable
from contextlib import suppress
from errno import EIO
from struct import Struct

import msgspec
from fastcrc import crc32

from strandline.base.clock import Clock, Timer
from strandline.base.disk import Disk, File, is_full
from strandline.base.errors import StorageError
from strandline.model.ids import BrokerId, Epoch, GroupId, Index
from strandline.raft.group.configuration import Configuration
from strandline.storage.layout import make_durable_directory

PutDone = Callable[[OSError | None], None]

_HEAD = Struct(">IIQ")
_ALIGNMENT_BYTES = 16
_ALLOCATE_BYTES = 256 << 10
_FREE_BYTES_MIN = 16 << 10
"""Free bytes behind the last record when the journal is opened, at least."""
_COMPACT_BYTES_MIN = 1 << 20
_COMPACT_GROWTH = 4
"""Compact once the file is this many times as large as its live states."""
SEAL_FLUSH_MS = 100
"""The time from the last put to the flush of the seal behind it."""


UNKNOWN = Index(-2)


class GroupState(msgspec.Struct, frozen=True, array_like=True):
    """What a replica must never forget. `configuration`: the one in force at the log's start.

    `lost_state`: the replica lost entries that it had acknowledged, with an earlier disk, and has
    not rejoined yet. `promised`: the epoch, this or the next one, whose vote it has delegated to
    the leader of the epoch before; 0 for none. `forgotten`: the grant that declared the replica
    lost; it removed all its data from before. `rejoined`: the number of the rejoin, as the
    controller counts them, that this state follows; a state from before a later rejoin is not
    valid. `joined`: the index of the leader's configuration when the log began
    (`raft.follower.stale_log_reset`); UNKNOWN if the log is older than this field. The last three
    only grow, but `joined` starts again when `forgotten` grows. Records of earlier releases lack
    them."""

    epoch: Epoch
    vote: BrokerId
    configuration: Configuration | None
    lost_state: bool = False
    promised: Epoch = Epoch(0)
    forgotten: int = 0
    rejoined: int = 0
    joined: Index = UNKNOWN


class _Record(msgspec.Struct, frozen=True, array_like=True):
    group: GroupId
    state: GroupState | None


_SEAL = _Record(GroupId(-1), None)
"""Removes a group that does not exist: its only content is what was durable before it."""


class StateJournal:
    """The journal. One thread only."""

    def __init__(
        self,
        disk: Disk,
        path: str,
        *,
        file: File,
        states: dict[GroupId, GroupState],
        end: int,
        clock: Clock,
        use_reserve: Callable[[], bool],
    ) -> None:
        self._disk = disk
        self._clock = clock
        self.path = path
        self._file = file
        self._states = states
        self._end = end
        self._durable_end = end
        self._allocated_bytes = file.size()
        self._live_bytes = _size_of(states)
        self._error: OSError | None = None
        self._is_closed = False
        self._use_reserve = use_reserve
        self._timer: Timer | None = None
        self._ends_in_seal = False
        """Whether the last record, before `_end`, is a seal: it needs no other one."""
        self._seal_end: int | None = None
        """The end of the seal that begins at `_end`, while the next record may take its place."""
        self._sealed_ms = 0

    @classmethod
    def open(
        cls,
        disk: Disk,
        path: str,
        *,
        clock: Clock,
        use_reserve: Callable[[], bool] = lambda: False,
    ) -> "StateJournal":
        """Open or create. All states found are durable afterwards. On a full disk the journal calls
        `use_reserve`, which returns whether it freed space.

        Raises StorageError if a durable state is damaged; OSError, also without space for more
        states."""
        directory = path.rsplit("/", 1)[0]
        disk.remove(f"{path}.new")
        if not disk.exists(path):
            make_durable_directory(disk, directory)
            disk.open(path, create=True).close()
        # Also where it was there: a process may have been killed between a name and its flush.
        disk.flush_directory(directory)
        file = disk.open(path)
        data = file.pread(file.size(), 0)
        states, end = read_states(path, data)
        if any(data[end:]):
            file.truncate(end)
        durable_end = durable_end_of(data, end)
        if durable_end < end:
            file.pwrite((data[durable_end:end],), durable_end)
        if file.size() < end + _FREE_BYTES_MIN:
            try:
                _allocate(file, end + _ALLOCATE_BYTES, end + _FREE_BYTES_MIN)
            except OSError as error:
                raise OSError(error.errno, error.strerror, path) from error
        disk.flush_now(file)
        journal = cls(
            disk, path, file=file, states=states, end=end, clock=clock, use_reserve=use_reserve
        )
        journal._ends_in_seal = _decode_last(data) == _SEAL
        journal._seal()
        return journal

    @property
    def failed(self) -> bool:
        """Whether a write or a flush failed: no later put succeeds."""
        return self._error is not None

    def get(self, group: GroupId) -> GroupState | None:
        """The state of the last put, durable or not; None for none."""
        return self._states.get(group)

    def groups(self) -> list[GroupId]:
        """The groups that have a state."""
        return sorted(self._states)

    def put(self, group: GroupId, state: GroupState, done: PutDone) -> None:
        """Replace a group's state; calls `done(None)` once it is durable, `done(error)` otherwise.

        If `is_full(error)`, the put did not happen and the state is unchanged. After any other
        error no state is durable and the broker must stop."""
        before = self._states.get(group)
        if before is not None:
            state = msgspec.structs.replace(
                state,
                forgotten=max(before.forgotten, state.forgotten),
                rejoined=max(before.rejoined, state.rejoined),
                # After a declared loss it may refer to entries that are gone.
                joined=max(before.joined, state.joined)
                if state.forgotten <= before.forgotten
                else state.joined,
            )
        self._states[group] = state
        if not self._append(_Record(group, state), done):
            if before is None:
                del self._states[group]
            else:
                self._states[group] = before

    def remove(self, group: GroupId) -> None:
        """Remove a group's state. Durable later: a state that comes back does no harm."""
        if self._states.pop(group, None) is not None:
            self._append(_Record(group, None), _ignore)

    def close(self) -> None:
        """Flush the seal and close the file; a failed flush is left to the next opening. Unfinished
        puts may be lost. Blocks to flush."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._seal_end is not None and self._error is None:
            with suppress(OSError):
                self._disk.flush_now(self._file)
        self._file.close()

    def _append(self, record: _Record, done: PutDone) -> bool:
        """Write a record and call `done` when it is durable; False if the disk is full."""
        refusal: OSError | None = None
        if self._error is None:
            try:
                self._write_or_use_reserve(record)
            except OSError as error:
                if is_full(error):
                    refusal = error
                else:
                    self._error = error
        file, end = self._file, self._end

        def on_flushed(error: OSError | None) -> None:
            is_all_durable = self._on_file_flushed(file, end, error)
            failure = self._error or refusal
            if is_all_durable:
                self._seal()
            done(failure)

        self._disk.flush_soon(file, on_flushed)
        return refusal is None

    def _write_or_use_reserve(self, record: _Record) -> None:
        try:
            self._write(record)
        except OSError as error:
            if not is_full(error) or not self._use_reserve():
                raise
            self._write(record)

    def _write(self, record: _Record) -> None:
        """Raises OSError; if the disk is full, the file is unchanged but for a seal."""
        self._seal_end = None  # The record overwrites it, cuts it, or goes into another file.
        data = _encode(record, self._durable_end)
        end = self._end + len(data)
        is_large = end > max(_COMPACT_BYTES_MIN, _COMPACT_GROWTH * self._live_bytes)
        if is_large and self._compact():
            return
        if end > self._allocated_bytes:
            self._allocated_bytes = _allocate(
                self._file, self._allocated_bytes + _ALLOCATE_BYTES, end
            )
        try:
            self._file.pwrite((data,), self._end)
        except OSError as error:
            # The space was not really allocated: no part of the record may stay.
            if is_full(error) and not self._cut():
                raise OSError(EIO, f"the journal has failed: {error}") from error
            raise
        self._end = end
        self._ends_in_seal = False

    def _seal(self) -> None:
        """Write a seal behind the last record, which is durable; skipped without space.

        Half a seal does no harm: the next record overwrites it, and is at least as long."""
        assert self._durable_end == self._end, f"a seal at {self._end}, durable {self._durable_end}"
        data = _encode(_SEAL, self._end)
        if not self._end or self._ends_in_seal or self._end + len(data) > self._allocated_bytes:
            return
        try:
            self._file.pwrite((data,), self._end)
        except OSError as error:
            if not is_full(error):
                self._error = OSError(EIO, f"the journal has failed: {error}")
            return
        self._seal_end = self._end + len(data)
        self._sealed_ms = self._clock.monotonic_ms()
        if self._timer is None:
            self._timer = self._clock.call_later(SEAL_FLUSH_MS, self._flush_seal)

    def _flush_seal(self) -> None:
        """Keep the seal and flush it, if no put came for a while."""
        self._timer = None
        if self._seal_end is None or self._error is not None:
            return
        left_ms = self._sealed_ms + SEAL_FLUSH_MS - self._clock.monotonic_ms()
        if left_ms > 0:
            self._timer = self._clock.call_later(left_ms, self._flush_seal)
            return
        self._end, self._seal_end, self._ends_in_seal = self._seal_end, None, True
        file, end = self._file, self._end

        def on_flushed(error: OSError | None) -> None:
            self._on_file_flushed(file, end, error)

        self._disk.flush_soon(file, on_flushed)

    def _on_file_flushed(self, file: File, end: int, error: OSError | None) -> bool:
        """A flush of the bytes before `end` has ended; whether all records are durable now."""
        if error is not None and self._error is None:
            self._error = OSError(EIO, f"the journal has failed: {error}")
        if self._error is not None or file is not self._file or self._is_closed:
            return False
        self._durable_end = max(self._durable_end, end)
        assert self._durable_end <= self._end, f"{self._durable_end} is durable of {self._end}"
        return self._durable_end == self._end

    def _cut(self) -> bool:
        """Cut the bytes behind the last record; whether that succeeded."""
        try:
            self._file.truncate(self._end)
        except OSError:
            return False
        self._allocated_bytes = self._end
        return True

    def _compact(self) -> bool:
        """Write all states, the newest included, into a new file. Blocks to flush.

        False if the disk has no space for both: the old file stays in use."""
        data = bytearray()
        for group, state in sorted(self._states.items()):
            # The file gets its name once it is durable, and so are the records before this one.
            data += _encode(_Record(group, state), len(data))
        data += _encode(_SEAL, len(data))
        new_path = f"{self.path}.new"
        try:
            file = self._disk.open(new_path, create=True)
            file.truncate(0)
            file.pwrite((data,), 0)
            file.allocate(len(data) + _ALLOCATE_BYTES)
            self._disk.flush_now(file)
            self._disk.rename(new_path, self.path)
        except OSError as error:
            if not is_full(error):
                raise
            self._disk.remove(new_path)
            return False
        try:
            self._disk.flush_directory(self.path.rsplit("/", 1)[0])
        except OSError as error:  # Full or not: it is unknown which of the two files has the name.
            raise OSError(EIO, f"the journal has failed: {error}") from error
        self._file = file
        self._ends_in_seal = True
        self._end = self._durable_end = self._live_bytes = len(data)
        self._allocated_bytes = file.size()
        return True


def _allocate(file: File, wanted: int, needed: int) -> int:
    """Allocate up to `wanted`, or up to `needed` if the disk has no more; returns the new end.
    Raises OSError."""
    try:
        file.allocate(wanted)
        return wanted
    except OSError as error:
        if not is_full(error):
            raise
    file.allocate(needed)
    return needed


def _encode(record: _Record, durable_end: int) -> bytes:
    payload = msgspec.msgpack.encode(record)
    body = _HEAD.pack(0, len(payload), durable_end)[4:] + payload
    data = crc32.iscsi(body).to_bytes(4, "big") + body
    return data + bytes(-len(data) % _ALIGNMENT_BYTES)


def _decode(data: bytes, position: int) -> tuple[_Record, int, int] | None:
    """(record, position after it, durable bytes when it was written); None for a bad record."""
    if position + _HEAD.size > len(data):
        return None
    crc, length, durable_end = _HEAD.unpack_from(data, position)
    end = position + _HEAD.size + length
    if not length or end > len(data) or crc32.iscsi(data[position + 4 : end]) != crc:
        return None
    record = msgspec.msgpack.decode(data[position + _HEAD.size : end], type=_Record)
    return record, end + -(end - position) % _ALIGNMENT_BYTES, durable_end


def read_states(path: str, data: bytes) -> tuple[dict[GroupId, GroupState], int]:
    """The states in the bytes of a journal, and where the good records end.

    Raises StorageError if a durable state is damaged."""
    states: dict[GroupId, GroupState] = {}
    position = 0
    while (found := _decode(data, position)) is not None:
        record, position, _ = found
        if record.state is None:
            states.pop(record.group, None)
        else:
            states[record.group] = record.state
    written = len(data.rstrip(b"\0"))
    for later in range(position + _ALIGNMENT_BYTES, written, _ALIGNMENT_BYTES):
        beyond = _decode(data, later)
        if beyond is not None and beyond[2] > position:
            raise StorageError(
                path, position, expected="a state that was durable", found="damaged bytes"
            )
    return states, position


def durable_end_of(data: bytes, end: int) -> int:
    """The highest durable end that a record before `end` states: damage below it is detected for
    as long as that record is there."""
    position = durable_end = 0
    while position < end and (found := _decode(data, position)) is not None:
        _, position, stated_end = found
        durable_end = max(durable_end, stated_end)
    return min(durable_end, end)


def last_record(data: bytes) -> int:
    """Where the last good record of a journal begins, mostly a seal: the only record whose loss
    goes undetected. 0 if there is at most one."""
    position = last = 0
    while (found := _decode(data, position)) is not None:
        last, position = position, found[1]
    return last


def _decode_last(data: bytes) -> _Record | None:
    found = _decode(data, last_record(data))
    return None if found is None else found[0]


def _size_of(states: dict[GroupId, GroupState]) -> int:
    return sum(len(_encode(_Record(group, state), 0)) for group, state in states.items())


def _ignore(error: OSError | None) -> None:
    """The `done` of a removal."""
