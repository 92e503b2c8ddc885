"""Exports one partition, which this broker leads, into one bucket.

Why:    the leader's state is the work list: an export is due whenever the bucket's newest one says
        something else. No event has to be remembered for that.
How:    UNKNOWN --the bucket's newest export is read--> KNOWN --state differs, and the interval is
        over--> an export is written --success--> KNOWN;   --unclear, or lost later--> UNKNOWN

        Until it is known what the bucket has, nothing is written and nothing may be deleted.
Owns:   `newest`, and the pages that it names.
Source: decisions 0057 and 0061."""

from collections.abc import Callable

import msgspec

from strandline.tiered.exports.export import Export
from strandline.tiered.exports.layout import Page
from strandline.tiered.exports.names import PartitionPlace
from strandline.tiered.exports.old import remove_old
from strandline.tiered.exports.reading import Report, read_newest
from strandline.tiered.exports.writing import write_export, write_topic
from strandline.tiered.objects.store import (
    ObjectAbsentError,
    ObjectExistsError,
    ObjectStore,
    StoreError,
)

WRITES_PER_REMOVAL = 8
"""Old exports are looked for after so many new ones."""


class Exporter:
    """See the module. One call at a time. `draw_attempt`: a part of a name, never the same."""

    def __init__(
        self,
        store: ObjectStore,
        place: PartitionPlace,
        *,
        draw_attempt: Callable[[], str],
        report: Report,
        grace_ms: int,
    ) -> None:
        self._store = store
        self._place = place
        self._draw_attempt = draw_attempt
        self._report = report
        self._grace_ms = grace_ms
        self._pages: tuple[Page, ...] = ()
        self._writes = 0
        self._is_known = False
        self.newest: Export | None = None
        """The newest export that is surely in the bucket; None if there is none, or while that is
        not known."""
        # Names that exports counted which failed, since the last success: these may arrive still.
        self._unsure: set[str] = set()

    def says(self, state: Export) -> bool:
        """Whether the bucket's newest export says this already."""
        return self.newest is not None and is_alike(self.newest, state)

    def has_no_live(self, name: str) -> bool:
        """Whether an export that does not count this object is the newest one in the bucket,
        whatever arrives late. Only then may a retired object be deleted, and only after the
        grace."""
        return (
            self.newest is not None and not self.newest.has_live(name) and name not in self._unsure
        )

    async def write(self, state: Export) -> bool:
        """Have the bucket say this; whether an export was written. Raises StoreError: then it is
        tried again with a later state."""
        if not self._is_known:
            await self._find_newest()
        if self.newest is None:
            await write_topic(
                self._store, state.cluster_id, state.topic, state.topic_id, state.written_ms
            )
        elif is_alike(self.newest, state) or self.newest.number >= state.number:
            return False  # A later leader has exported if it is not alike: this one was deposed.
        try:
            self._pages = await write_export(self._store, state, self._pages, self._draw_attempt())
        except (StoreError, ObjectExistsError):
            self._is_known = False
            self._unsure.update(one.name for one in state.live)
            raise
        self.newest = state
        self._unsure.clear()
        self._writes += 1
        if self._writes % WRITES_PER_REMOVAL == 0:
            await remove_old(self._store, self._place, grace_ms=self._grace_ms)
        return True

    async def check(self) -> bool:
        """Whether the newest export is in the bucket still. If it is not, the next `write` puts one
        there. Raises StoreError: then nothing is known."""
        if self.newest is None:
            return True
        try:
            await self._store.get_range(self._place.export_name(self.newest.number), 0, 1)
        except ObjectAbsentError:
            self._report(f"{self._place.prefix}: export {self.newest.number} is lost")
            self._is_known, self.newest, self._pages = False, None, ()
            return False
        return True

    async def _find_newest(self) -> None:
        found = await read_newest(self._store, self._place, report=self._report)
        if found is not None:
            self.newest, self._pages = found.export, found.pages
        else:
            self.newest, self._pages = None, ()
        self._is_known = True


def is_alike(one: Export, other: Export) -> bool:
    """Whether both say the same to a reader: all but the time, the number, marks that move without
    the tier, and objects that do not count."""
    neutral = {"written_ms": 0, "high_watermark": one.high_watermark, "retired": ()}
    named = {"number": one.number, **neutral}
    return msgspec.structs.replace(one, **neutral) == msgspec.structs.replace(other, **named)
