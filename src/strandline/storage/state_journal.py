"""Epoch and vote of every group of a broker, in one journal.

Why:    a vote that is forgotten can be given twice, and then two leaders have one epoch; a file and
        a flush per group would cost a thousand flushes when a broker starts.
How:    [record][record]...[zeros]     each padded to 16 bytes:
            u32  CRC-32C of what follows
            u32  length of the payload
            u64  how much of the file was durable when this record was written
            payload: MessagePack [group, state or nil]
        A put appends and is done when a flush covers it; the disk shares flushes. Reading stops at
        the first bad record: a torn tail. If a later good record says that the bad one had been
        durable, it is rot, and the journal refuses to be read. What no record says was durable
        is written again when the journal is opened: where the flush of an earlier process
        failed, the page cache alone has it, and counts it as clean. When the file has grown, the
        living states go into a new file that takes its name.
        So that the last state is no exception, a seal follows it as soon as it is durable: a record
        that forgets a group which nobody has. The next record takes its place, as it has nothing to
        lose; if none comes for a while, it is flushed, and stays.
        Space is taken ahead, at the opening too: a broker that could not remember a vote does not
        start. A put that finds none changes nothing, and may be tried again.
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
_ROOM_BYTES_MIN = 16 << 10
"""So much is free behind the last record when the journal is opened."""
_COMPACT_BYTES_MIN = 1 << 20
_COMPACT_GROWTH = 4
"""Compact once the file is so many times as large as it would be."""
SEAL_FLUSH_MS = 100
"""So long after the last state that was put the seal behind it is flushed."""


UNKNOWN = Index(-2)


class GroupState(msgspec.Struct, frozen=True, array_like=True):
    """What a replica must never forget. `configuration` is the one in force at the log's start.

    `lost_state`: the replica lost what it had acknowledged with an earlier disk, and has not
    rejoined since. `promised`: the epoch, this or the next one, whose vote is left to the leader of
    the one before; 0 for none. `forgotten`: everything from before this grant was let go of, for
    the replica was declared lost by it. `rejoined`: which of its rejoinings, as the controller
    counts them, this comes after; what is remembered from before a later one is not to be trusted.
    `joined`: how far the leader's configuration had come when the log began (`raft.outdated`);
    UNKNOWN where that was before it was noted. These three only grow (the last one: until more is
    forgotten). Records of earlier releases end before them."""

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
"""Forgets a group that nobody has: it only says what was durable before it."""


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
        borrow: Callable[[], bool],
    ) -> None:
        self._disk = disk
        self._clock = clock
        self.path = path
        self._file = file
        self._states = states
        self._end = end
        self._durable_end = end
        self._allocated = file.size()
        self._live_bytes = _size_of(states)
        self._error: OSError | None = None
        self._is_closed = False
        self._borrow = borrow
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
        borrow: Callable[[], bool] = lambda: False,
    ) -> "StateJournal":
        """Open or create. All that is found is durable then. `borrow` is asked where there is no
        room, and says whether there is more then.

        Raises StorageError when a state that had been durable is damaged; OSError, also when there
        is no room for states to come."""
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
        durable_end = said_durable(data, end)
        if durable_end < end:
            file.pwrite((data[durable_end:end],), durable_end)
        if file.size() < end + _ROOM_BYTES_MIN:
            try:
                _allocate(file, end + _ALLOCATE_BYTES, end + _ROOM_BYTES_MIN)
            except OSError as error:
                raise OSError(error.errno, error.strerror, path) from error
        disk.flush_now(file)
        journal = cls(disk, path, file=file, states=states, end=end, clock=clock, borrow=borrow)
        journal._ends_in_seal = _decode_last(data) == _SEAL
        journal._seal()
        return journal

    @property
    def failed(self) -> bool:
        """Whether a write or a flush failed: nothing can be put any more."""
        return self._error is not None

    def get(self, group: GroupId) -> GroupState | None:
        """The state that was put last, durable or not yet; None when there is none."""
        return self._states.get(group)

    def groups(self) -> list[GroupId]:
        """The groups that have a state."""
        return sorted(self._states)

    def put(self, group: GroupId, state: GroupState, done: PutDone) -> None:
        """Replace a group's state; `done` is called once it is durable, or with what went wrong.

        With `is_full(error)` this put did not happen, and the state is what it was before. After
        any other error nothing is durable any more: the broker must not go on."""
        before = self._states.get(group)
        if before is not None:
            state = msgspec.structs.replace(
                state,
                forgotten=max(before.forgotten, state.forgotten),
                rejoined=max(before.rejoined, state.rejoined),
                # After a loss that was declared, what it said is of entries that may be gone.
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
        """Forget a group. Durable some time later: a state that comes back harms nobody."""
        if self._states.pop(group, None) is not None:
            self._append(_Record(group, None), _ignore)

    def close(self) -> None:
        """Close the file, with its seal flushed; if that fails, the next opening sees to it. Puts
        that are not done may be lost. Blocks to flush."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._seal_end is not None and self._error is None:
            with suppress(OSError):
                self._disk.flush_now(self._file)
        self._file.close()

    def _append(self, record: _Record, done: PutDone) -> bool:
        """Write a record, and answer when it is durable; False when there was no room for it."""
        refusal: OSError | None = None
        if self._error is None:
            try:
                self._write_somehow(record)
            except OSError as error:
                if is_full(error):
                    refusal = error
                else:
                    self._error = error
        file, end = self._file, self._end

        def on_flushed(error: OSError | None) -> None:
            is_all_durable = self._note_flushed(file, end, error)
            failure = self._error or refusal
            if is_all_durable:
                self._seal()
            done(failure)

        self._disk.flush_soon(file, on_flushed)
        return refusal is None

    def _write_somehow(self, record: _Record) -> None:
        try:
            self._write(record)
        except OSError as error:
            if not is_full(error) or not self._borrow():
                raise
            self._write(record)

    def _write(self, record: _Record) -> None:
        """Raises OSError; when the disk is full, the file is as it was, but for a seal."""
        self._seal_end = None  # What follows takes its place, cuts it, or is in another file.
        data = _encode(record, self._durable_end)
        end = self._end + len(data)
        is_large = end > max(_COMPACT_BYTES_MIN, _COMPACT_GROWTH * self._live_bytes)
        if is_large and self._compact():
            return
        if end > self._allocated:
            self._allocated = _allocate(self._file, self._allocated + _ALLOCATE_BYTES, end)
        try:
            self._file.pwrite((data,), self._end)
        except OSError as error:
            # Where space was not really set aside: whatever was written must not outlive this.
            if is_full(error) and not self._cut():
                raise OSError(EIO, f"the journal has failed: {error}") from error
            raise
        self._end = end
        self._ends_in_seal = False

    def _seal(self) -> None:
        """Say behind the last record that it is durable; not where there is no room for that.

        Half a seal harms nobody: until it is flushed the next record takes its place, and is no
        shorter."""
        data = _encode(_SEAL, self._end)
        if not self._end or self._ends_in_seal or self._end + len(data) > self._allocated:
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
        """Keep the seal and flush it, if nothing was put of late."""
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
            self._note_flushed(file, end, error)

        self._disk.flush_soon(file, on_flushed)

    def _note_flushed(self, file: File, end: int, error: OSError | None) -> bool:
        """A flush of what was written up to `end` has ended; whether all is durable now."""
        if error is not None and self._error is None:
            self._error = OSError(EIO, f"the journal has failed: {error}")
        if self._error is not None or file is not self._file or self._is_closed:
            return False
        self._durable_end = max(self._durable_end, end)
        return self._durable_end == self._end

    def _cut(self) -> bool:
        """Cut what lies behind the last record; whether that could be done."""
        try:
            self._file.truncate(self._end)
        except OSError:
            return False
        self._allocated = self._end
        return True

    def _compact(self) -> bool:
        """Write all states, the newest included, into a new file. Blocks to flush.

        False when the disk has no room for both: the old file goes on."""
        data = bytearray()
        for group, state in sorted(self._states.items()):
            # The file has its name only once it is durable: what is before this record is, too.
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
        except OSError as error:  # Full or not: nobody knows which of the two files has the name.
            raise OSError(EIO, f"the journal has failed: {error}") from error
        self._file = file
        self._ends_in_seal = True
        self._end = self._durable_end = self._live_bytes = len(data)
        self._allocated = file.size()
        return True


def _allocate(file: File, wanted: int, needed: int) -> int:
    """Have room up to `wanted`, or up to `needed` where the disk has no more; how far it goes.
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
    """(record, position after it, what was durable then); None for a bad record."""
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

    Raises StorageError when a state that had been durable is damaged."""
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


def said_durable(data: bytes, end: int) -> int:
    """Up to where one of the records before `end` says that the journal was durable: rot before
    that is noticed for as long as that record is there."""
    position = durable_end = 0
    while position < end and (found := _decode(data, position)) is not None:
        _, position, said = found
        durable_end = max(durable_end, said)
    return min(durable_end, end)


def last_record(data: bytes) -> int:
    """Where the last good record of a journal begins, a seal mostly: the only one whose loss
    nothing tells; 0 where there is at most one."""
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
    """A removal waits for nobody."""
