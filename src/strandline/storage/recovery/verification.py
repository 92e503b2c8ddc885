"""Reads every batch of a stopped broker's log and reports what is damaged.

Why:    other replicas repair damage, so an operator must know of it before they are needed.
How:    scans each segment by itself, as recovery does. Then it compares the summary and the indexes
        with the scan, and the name with the end of the segment before. If a scan ends early, the
        flushed marks tell damage from a torn tail; behind damage in a segment with a summary, the
        indexes lead to the sound rest.
Owns:   nothing; changes nothing.
Source: design section 4; reliability reference 3; docs/reference/cli.md."""

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from strandline.base.disk import Disk
from strandline.base.errors import ApiError, StorageError
from strandline.model.ids import GroupId, Index, Offset
from strandline.records.batch import BatchHeader
from strandline.records.record import decode_records
from strandline.storage.layout import (
    INDEX,
    LOG,
    PRODUCERS,
    RESET,
    SUMMARY,
    TIME_INDEX,
    SegmentName,
    SegmentSummary,
    checksum,
    read_whole,
)
from strandline.storage.log.history import History
from strandline.storage.log.index import INDEX_ENTRY_BYTES, TIME_ENTRY_BYTES, SparseIndex
from strandline.storage.log.scan import is_zero, why_refused
from strandline.storage.log.sealing import read_producers, restore_segment, summarize
from strandline.storage.recovery.recovery import (
    ends_at_other_epoch,
    is_last_epoch_covered,
    noted_batches,
)
from strandline.storage.recovery.survey import LogFiles, bare_segment, end_name, read_files
from strandline.storage.state_journal import GroupState, read_states

_OFFSET_UNKNOWN = Offset(-1)


class FindingKind(StrEnum):
    """How bad a finding is."""

    DAMAGE = "damage"
    """Durable data is lost or changed."""
    TORN = "torn"
    """Data that was never durable ends in the middle: the next start cuts it."""
    STALE = "stale"
    """A small file beside the log does not fit: the next start rebuilds it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem; `offset` and `end_offset` are -1 if it concerns no records."""

    kind: FindingKind
    path: str
    position: int
    reason: str
    offset: Offset = _OFFSET_UNKNOWN
    end_offset: Offset = _OFFSET_UNKNOWN
    """Exclusive: the problem concerns the records in [offset, end_offset), as far as known."""


@dataclass(slots=True)
class Verified:
    """The result for one log."""

    findings: list[Finding]
    batch_count: int = 0
    size_bytes: int = 0
    last_epoch: int = 0
    is_epoch_covered: bool | None = None
    """See `History.is_epoch_covered`; of the last segment that was read."""

    @property
    def is_damaged(self) -> bool:
        """Whether durable data is lost or changed."""
        return any(finding.kind is FindingKind.DAMAGE for finding in self.findings)


def verify_log(disk: Disk, directory: str) -> Verified:
    """Read all of a log. Raises OSError."""
    files = read_files(disk, directory)
    result = Verified([])
    if files.reset_to is not None:
        path = f"{directory}/{files.reset_to.stem}{RESET}"
        result.findings.append(
            Finding(FindingKind.STALE, path, 0, "a new beginning, which the next start finishes")
        )
        return result
    follows: SegmentName | None = None
    end_index = Index(0)
    for at, name in enumerate(files.names):
        if follows is not None and name != follows:
            if name.base_index < end_index:
                reason = "what a merge of segments has replaced, which the next start removes"
                path = f"{directory}/{name.stem}{LOG}"
                result.findings.append(Finding(FindingKind.STALE, path, 0, reason))
                continue
            result.findings.append(_gap(files, follows, name))
        after = files.names[at + 1] if at + 1 < len(files.names) else None
        follows = _SegmentCheck(disk, files, name, after=after, result=result).run()
        end_index = follows.base_index
        result.last_epoch = follows.previous_epoch
    if end_index <= files.flushed_index and not result.is_damaged:
        result.findings.append(_short(files, follows))
    return result


def verify_journal(disk: Disk, path: str) -> tuple[dict[GroupId, GroupState] | None, list[Finding]]:
    """(the states in the journal, None if unreadable; the problems found).

    Raises OSError."""
    data = read_whole(disk, path)
    if data is None:
        return {}, []
    try:
        states, end = read_states(path, data)
    except StorageError as error:
        reason = f"expected {error.expected}, found {error.found}"
        return None, [Finding(FindingKind.DAMAGE, path, error.position, reason)]
    if not any(data[end:]):
        return states, []
    return states, [Finding(FindingKind.TORN, path, end, "a record that is not whole")]


def verify_state(
    path: str, group: GroupId, state: GroupState | None, *, last_epoch: int
) -> list[Finding]:
    """Check the journal's state of a group whose log ends in `last_epoch`: the epoch and the vote
    are durable before any entry of the epoch is."""
    if last_epoch <= (0 if state is None else state.epoch):
        return []
    known = "nothing" if state is None else f"epoch {state.epoch}"
    reason = f"{known} of group {group}, whose log has entries of epoch {last_epoch}"
    return [Finding(FindingKind.DAMAGE, path, 0, reason)]


def _gap(files: LogFiles, expected: SegmentName, found: SegmentName) -> Finding:
    """A segment that does not begin where the one before ends."""
    was_durable = found.base_index <= files.flushed_index
    reason = f"a segment that follows none: the one before ends at index {expected.base_index}" + (
        "" if was_durable else "; the next start removes it"
    )
    return Finding(
        FindingKind.DAMAGE if was_durable else FindingKind.TORN,
        f"{files.directory}/{found.stem}{LOG}",
        0,
        reason,
        expected.base_offset,
        max(expected.base_offset, found.base_offset),
    )


def _short(files: LogFiles, end: SegmentName | None) -> Finding:
    """The log ends before its mark although every batch is sound: whole segments are gone."""
    path = files.directory if end is None else f"{files.directory}/{end.stem}{LOG}"
    offset = Offset(0) if end is None else end.base_offset
    index = 0 if end is None else end.base_index
    reason = f"nothing: entries from index {index} to {files.flushed_index} were flushed"
    missing = files.flushed_index + 1 - index
    return Finding(FindingKind.DAMAGE, path, 0, reason, offset, Offset(offset + missing))


class _SegmentCheck:
    """The check of one segment, by itself."""

    def __init__(
        self,
        disk: Disk,
        files: LogFiles,
        name: SegmentName,
        *,
        after: SegmentName | None,
        result: Verified,
    ) -> None:
        self._disk = disk
        self._files = files
        self._after = after
        self._result = result
        self._summary = files.summaries[name]
        self._segment = bare_segment(disk, files.directory, name)
        self._history = History(name)
        self._history.is_epoch_covered = result.is_epoch_covered
        if result.is_epoch_covered is None:
            self._history.is_epoch_covered = is_last_epoch_covered([], self._history)
        self._index = self._read_index()
        self._next_entry = 0
        self._refusal = ""
        """Why a sound batch cannot be read: a marker of an unknown kind, which no start cuts."""

    def run(self) -> SegmentName:
        """Check the segment; returns the name that the next segment must have."""
        segment = self._segment
        file_bytes = segment.file.size()
        self._scan(file_bytes)
        self._result.is_epoch_covered = self._history.is_epoch_covered
        self._result.size_bytes += segment.size_bytes
        self._check_producers()
        summary = self._summary
        if summary is None:
            if segment.size_bytes < file_bytes:
                self._judge_tail(file_bytes)
            return end_name(segment, self._history)
        if segment.size_bytes < file_bytes or self._history.epochs != summary.epochs:
            self._verify(summary)
        else:
            self._compare(summary)
            return end_name(segment, self._history)
        markers = summary.end_index - summary.end_offset
        return SegmentName(summary.end_offset, markers, summary.last_epoch)

    # ---- every batch ----

    def _scan(self, file_bytes: int) -> None:
        """Read all batches that count, and compare the indexes with them."""
        segment = self._segment
        highest = -1
        try:
            for header, chunk, at in noted_batches(segment, self._history, end=file_bytes):
                self._result.batch_count += 1
                if header.is_marker:
                    continue
                self._check_entry(header, highest)
                highest = max(highest, header.max_timestamp)
                self._check_records(header, chunk, at)
        except StorageError as error:
            self._refusal = error.found
        if segment.size_bytes == file_bytes:
            self._check_entries_left()

    def _check_records(self, header: BatchHeader, chunk: bytes, at: int) -> None:
        """A batch has a record for each of its offsets, or fewer where compaction took some."""
        count = header.last_offset_delta + 1
        if header.records_count == count or header.records_count == 0:
            return
        try:
            deltas = [one.offset_delta for one in decode_records(chunk[at : at + header.size])]
        except ApiError as error:
            deltas, reason = [], str(error)
        else:
            reason = f"{header.records_count} records over {count} offsets"
        is_ascending = all(low < high for low, high in pairwise(deltas))
        if not deltas or not is_ascending or not 0 <= deltas[0] <= deltas[-1] < count:
            self._add(
                FindingKind.DAMAGE,
                header.position,
                reason,
                header.base_offset,
                header.next_offset,
            )

    def _judge_tail(self, file_bytes: int) -> None:
        """The scan has ended early in a segment without a summary."""
        segment = self._segment
        flushed_index = self._files.flushed_index
        is_other = ends_at_other_epoch(segment)
        if segment.end_index <= flushed_index or self._refusal or is_other:
            missing = max(0, flushed_index + 1 - segment.end_index)
            end = segment.end_offset + missing
            if self._after is not None:
                end = self._after.base_offset
            self._add(
                FindingKind.DAMAGE,
                segment.size_bytes,
                f"{self._why(file_bytes)}; flushed up to index {flushed_index}",
                segment.end_offset,
                Offset(max(end, segment.end_offset)),
            )
        elif not is_zero(segment.file, segment.size_bytes, file_bytes):
            reason = f"{self._why(file_bytes)}; never flushed, the next start cuts it"
            self._add(FindingKind.TORN, segment.size_bytes, reason, segment.end_offset)

    def _why(self, end: int) -> str:
        segment = self._segment
        return self._refusal or why_refused(
            segment.file,
            segment.size_bytes,
            end=end,
            offset=segment.end_offset,
            epoch=self._history.last_epoch,
            is_epoch_covered=bool(self._history.is_epoch_covered),
        )

    # ---- damage in what was durable ----

    def _verify(self, summary: SegmentSummary) -> None:
        """Something in a segment that was durable as a whole is not as its summary has it: say
        which ranges. From each entry of the index on, what follows may be sound again."""
        name = self._segment.name
        whole = bare_segment(self._disk, self._files.directory, name)
        restore_segment(whole, History(name), summary)
        places = [(0, name.base_offset), *self._entries(), (whole.size_bytes, summary.end_offset)]
        has_found = False
        for (start, offset), (end, end_offset) in pairwise(places):
            try:
                whole.verify(start, end)
            except StorageError as error:
                if error.position >= end:
                    continue  # The next range begins there.
                has_found = True
                for header in whole.headers(start, error.position):
                    offset = header.next_offset
                self._add(FindingKind.DAMAGE, error.position, error.found, offset, end_offset)
        if not has_found:
            self._compare(summary)

    def _entries(self) -> list[tuple[int, Offset]]:
        """(position, offset) of the batches that the index knows."""
        if self._index is None:
            return []
        base = self._segment.name.base_offset
        rows = zip(self._index.positions, self._index.offsets, strict=True)
        return [(position, Offset(base + relative)) for position, relative in rows]

    # ---- the files beside it ----

    def _read_index(self) -> SparseIndex | None:
        """The indexes as the files have them; None where those are not what the summary says."""
        summary, segment = self._summary, self._segment
        if summary is None:
            return None
        offsets = read_whole(self._disk, segment.path(INDEX))
        times = read_whole(self._disk, segment.path(TIME_INDEX))
        is_right = True
        for suffix, data, crc in (
            (INDEX, offsets, summary.index_crc),
            (TIME_INDEX, times, summary.time_index_crc),
        ):
            if data is None or checksum(data) != crc:
                is_right = False
                found = "it is missing" if data is None else "it has another checksum"
                self._add_beside(suffix, f"{found}; it is rebuilt when it is needed")
        if not is_right or offsets is None or times is None:
            return None
        return SparseIndex.decode(offsets, times)

    def _check_entry(self, header: BatchHeader, highest: int) -> None:
        """Compare the next index entry with a data batch; `highest` timestamp is before it."""
        index, at = self._index, self._next_entry
        if index is None or at >= len(index.positions) or index.positions[at] > header.position:
            return
        self._next_entry += 1
        relative = header.base_offset - self._segment.name.base_offset
        if index.positions[at] != header.position or index.offsets[at] != relative:
            self._add_index(INDEX, at, header)
        elif not highest <= index.timestamps[at] <= max(highest, self._latest()):
            self._add_index(TIME_INDEX, at, header)

    def _latest(self) -> int:
        """The timestamp that an entry may have although no batch reaches it: if damage hid the
        timestamps at a cut, the latest one counts (`Segment.latest_before`)."""
        return -1 if self._summary is None else self._summary.max_timestamp

    def _check_entries_left(self) -> None:
        if self._index is not None and self._next_entry < len(self._index.positions):
            self._add_index(INDEX, self._next_entry, None)

    def _add_index(self, suffix: str, at: int, header: BatchHeader | None) -> None:
        row_bytes = INDEX_ENTRY_BYTES if suffix == INDEX else TIME_ENTRY_BYTES
        where = "the end" if header is None else f"the batch at byte {header.position}"
        path = self._segment.path(suffix)
        reason = f"an entry that does not agree with {where} of the log"
        self._result.findings.append(Finding(FindingKind.DAMAGE, path, at * row_bytes, reason))

    def _compare(self, summary: SegmentSummary) -> None:
        """Compare the summary with the scan."""
        crcs = (summary.index_crc, summary.time_index_crc)
        found = summarize(self._segment, self._history, index_crcs=crcs)
        # "As late as anything that was here": `Segment.latest_before`.
        is_hidden = (
            summary.max_timestamp > found.max_timestamp
            and summary.max_timestamp_offset == self._segment.name.base_offset
        )
        latest = {"max_timestamp", "max_timestamp_offset"} if is_hidden else set()
        for field in SegmentSummary.__struct_fields__:
            if field in ("producers", "tier_forgotten") or field in latest:
                continue  # That of a head tells the producers; a scan forgets nothing.
            stated, actual = getattr(summary, field), getattr(found, field)
            if field == "tier_markers":
                self._compare_tier_markers(stated, actual)
            elif stated != actual:
                reason = f"{field} {stated!r}, which is {actual!r} in the log"
                path = self._segment.path(SUMMARY)
                self._result.findings.append(Finding(FindingKind.DAMAGE, path, 0, reason))

    def _compare_tier_markers(
        self, stated: list[tuple[Index, bytes]], actual: list[tuple[Index, bytes]]
    ) -> None:
        """The summary has all of them, or those from a checkpoint on."""
        if stated != actual[len(actual) - len(stated) :] or len(stated) > len(actual):
            reason = f"{len(stated)} tier markers, which are not the last of {len(actual)} there"
            path = self._segment.path(SUMMARY)
            self._result.findings.append(Finding(FindingKind.DAMAGE, path, 0, reason))

    def _check_producers(self) -> None:
        path = self._segment.path(PRODUCERS)
        if self._disk.exists(path) and (
            read_producers(self._disk, self._files.directory, self._segment.name) is None
        ):
            self._add_beside(PRODUCERS, "producers that cannot be read; headers are read instead")

    def _add_beside(self, suffix: str, reason: str) -> None:
        path = self._segment.path(suffix)
        self._result.findings.append(Finding(FindingKind.STALE, path, 0, reason))

    def _add(
        self,
        kind: FindingKind,
        position: int,
        reason: str,
        offset: Offset = _OFFSET_UNKNOWN,
        end_offset: Offset = _OFFSET_UNKNOWN,
    ) -> None:
        path = self._segment.path(LOG)
        self._result.findings.append(Finding(kind, path, position, reason, offset, end_offset))
