"""What may be read of one partition of another cluster, as its bucket says.

Why:    a consumer of a copy sees what it would see at the source, up to some moment, and never less
        than it saw before.
How:    LOADING --an export--> READY --a higher export--> READY
        LOADING | READY --no export, and the topic's object is gone--> DELETED --it is back--> READY

        Only a higher number is taken over. Its end is not below the present one, unless the source
        has a declared loss (a later grant): then records are gone there, and here. A bucket that
        the source has emptied, and uses again, is waited for until it reaches the present end.
Owns:   the export that is served.
Source: decisions 0057 and 0061."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from enum import StrEnum

from strandline.model.ids import Epoch, Offset, grant_of
from strandline.tiered.exports.export import Export
from strandline.tiered.exports.layout import Page
from strandline.tiered.exports.names import ExportNumber
from strandline.tiered.exports.reading import ReadExport
from strandline.tiered.segments.entry import SegmentEntry

NO_EPOCH = Epoch(-1)
NO_OFFSET = Offset(-1)
NEVER_MS = -1
MADE_ANEW = (
    "the source has another topic of this name now, whose offsets belong to other records: delete "
    "this topic and create it again to read that one"
)


class ViewState(StrEnum):
    """How far a copy is."""

    LOADING = "loading"
    """No export has been read yet; `ReplicaView.failure` says why, if there is a reason."""
    READY = "ready"
    DELETED = "source deleted"
    """The bucket has the topic no more."""


class ReplicaView:
    """See the module. `bucket`: the name under which the bucket's objects are read."""

    def __init__(self, bucket: str, on_change: Callable[[], None]) -> None:
        self.bucket = bucket
        self.state = ViewState.LOADING
        self.export: Export | None = None
        self.pages: tuple[Page, ...] = ()
        self.failure = ""
        """Why the last look at the bucket failed; empty after one that did not."""
        self.as_of_ms = NEVER_MS
        """When the source's leader had nothing newer than `export`, by the clock there."""
        self.checked_ms = NEVER_MS
        """When the last look at the bucket that did not fail began, by the monotonic clock."""
        self.tried_ms = NEVER_MS
        """The same, of the last look whatever came of it."""
        self.listed_ms = NEVER_MS
        """When the last listing that did not fail began."""
        self.must_list = False
        """Whether a reader wants to know for certain where the partition ends."""
        self._epochs: tuple[tuple[Epoch, Offset], ...] = ()
        self._on_change = on_change

    # ---- what may be read ------------------------------------------------------------------------

    @property
    def is_ready(self) -> bool:
        """Whether there is something to answer from."""
        return self.state is ViewState.READY

    @property
    def number(self) -> ExportNumber | None:
        """Which export is served."""
        return None if self.export is None else self.export.number

    @property
    def start_offset(self) -> Offset:
        """The first offset that may be read."""
        return Offset(0) if self.export is None else self.export.start_offset

    @property
    def high_watermark(self) -> Offset:
        """The offset after the last record that may be read."""
        return Offset(0) if self.export is None else self.export.end_offset

    def live(self, bucket: str) -> Sequence[SegmentEntry]:
        """The objects, ascending and without a gap; see `tiered.reading`."""
        return self.export.live if self.export is not None and bucket == self.bucket else ()

    def epoch_at(self, offset: Offset) -> Epoch:
        """The epoch of the record there; of the last one, from the end on; -1 if there is none."""
        at = bisect_right(self._epochs, offset, key=_offset_of) - 1
        return self._epochs[at][0] if at >= 0 else NO_EPOCH

    def epoch_end_offset(self, epoch: Epoch) -> tuple[Epoch, Offset]:
        """(the greatest epoch <= `epoch`, where it ends); (-1, -1) for one that is yet to come. An
        epoch from before the partition's start ends there."""
        epochs = self._epochs
        if not epochs or epoch > epochs[-1][0]:
            return NO_EPOCH, NO_OFFSET
        if epoch == epochs[-1][0]:
            return epoch, self.high_watermark
        at = bisect_right(epochs, epoch, key=_epoch_of)
        known = epochs[at - 1][0] if at else epoch
        return known, max(epochs[at][1], self.start_offset)

    def staleness_ms(self, wall_ms: int) -> int:
        """How old the newest statement is; -1 if there is none. The clocks of two clusters are
        compared: their difference is part of it."""
        return NEVER_MS if self.as_of_ms == NEVER_MS else max(0, wall_ms - self.as_of_ms)

    # ---- what is found ---------------------------------------------------------------------------

    def adopt(self, found: ReadExport) -> str:
        """Serve a newer export; why not, in one line, if it contradicts the present one."""
        export = found.export
        number = self.number
        if number is not None and export.number <= number:
            if export.number == number:
                self.state = ViewState.READY
            return ""
        is_same_past = number is not None and (
            grant_of(export.number.epoch) == grant_of(number.epoch)
        )
        if is_same_past and export.end_offset < self.high_watermark:
            if self.export is not None and not self.export.live:
                return ""  # A bucket that was emptied fills again, up to where readers are.
            return (
                f"export {export.number} ends at {export.end_offset}, and {number} at "
                f"{self.high_watermark}: it is not served"
            )
        self.export, self.pages = export, found.pages
        self._epochs = export.epochs
        self.state = ViewState.READY
        self.confirm(export.written_ms)
        self._on_change()
        return ""

    def confirm(self, as_of_ms: int) -> None:
        """Nothing newer than this export existed then."""
        self.as_of_ms = max(self.as_of_ms, as_of_ms)

    def on_listed(self, began_ms: int) -> None:
        """The bucket has been listed."""
        self.listed_ms, was_wanted, self.must_list = began_ms, self.must_list, False
        if was_wanted:
            self._on_change()

    def delete(self, *, is_made_anew: bool = False) -> None:
        """The source's topic is gone; `is_made_anew`: the source has another one of its name."""
        self.failure = MADE_ANEW if is_made_anew else ""
        if self.state is not ViewState.DELETED:
            self.state = ViewState.DELETED
            self._on_change()


def _offset_of(epoch: tuple[Epoch, Offset]) -> Offset:
    return epoch[1]


def _epoch_of(epoch: tuple[Epoch, Offset]) -> Epoch:
    return epoch[0]
