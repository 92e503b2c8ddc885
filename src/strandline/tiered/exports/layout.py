"""Which entries of an export are in which page.

    live entries:   [page, from its entry `skip` on] [page] ... [page] [tail, in the head itself]

Why:    an export is written again and again, and most of its entries are those of the one before.
        Pages never change, so the next export names those of the last one again.
How:    a page is kept if all of its entries are still live and in order, but for some at its front:
        retention has removed those. What is between two kept pages gets pages of its own. A tail
        that grows too long becomes pages; the last page is filled up first, under another name.
Owns:   nothing.
Source: decision 0061."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from strandline.model.ids import Offset
from strandline.tiered.exports.encoding import PageRef, encode_page
from strandline.tiered.framing import crc_of
from strandline.tiered.segments.entry import SegmentEntry

PAGE_ENTRIES_MAX = 1_000
TAIL_BYTES_MAX = 24 << 10
PAGES_MAX = 200
"""So many pages are in a head of 64 KiB; with more, all entries are laid out again."""


class Page(NamedTuple):
    """A page that is in the bucket, and all of its entries."""

    ref: PageRef
    entries: tuple[SegmentEntry, ...]

    @property
    def counted(self) -> tuple[SegmentEntry, ...]:
        """Its entries that count."""
        return self.entries[self.ref.skip :]


class NewPage(NamedTuple):
    """A page to be put into the bucket."""

    page: Page
    data: bytes


class Layout(NamedTuple):
    """Pages in their order, new ones among them, and the entries after them."""

    pages: tuple[Page, ...]
    new: tuple[NewPage, ...]
    tail: tuple[SegmentEntry, ...]


def lay_out(live: Sequence[SegmentEntry], known: Sequence[Page], attempt: str) -> Layout:
    """Pages for these entries. `known`: those of an export that is in the bucket; `attempt`: a
    part of new names, which no other attempt has."""
    pages: list[Page] = []
    new: list[NewPage] = []
    at = 0
    for page, start in _kept(live, known):
        for one in _chunks(live[at:start], attempt):
            new.append(one)
            pages.append(one.page)
        pages.append(page)
        at = start + len(page.counted)
    tail = tuple(live[at:])
    if len(msgspec.msgpack.encode(tail)) > TAIL_BYTES_MAX:
        if pages and len(pages[-1].counted) < PAGE_ENTRIES_MAX:
            last = pages.pop()
            new = [one for one in new if one.page is not last]
            tail = last.counted + tail
        added = list(_chunks(tail, attempt))
        new += added
        pages += [one.page for one in added]
        tail = ()
    if len(pages) > PAGES_MAX and known:
        return lay_out(live, (), attempt)
    return Layout(tuple(pages), tuple(new), tail)


def _kept(live: Sequence[SegmentEntry], known: Sequence[Page]) -> Iterator[tuple[Page, int]]:
    """Pages of `known` that can be named again, and where their first entry is in `live`."""
    places = {one.name: at for at, one in enumerate(live)} if known else {}
    least = 0
    for page in known:
        skip = next((at for at, one in enumerate(page.entries) if one.name in places), None)
        if skip is None:
            continue
        rest = page.entries[skip:]
        start = places[rest[0].name]
        if start >= least and tuple(live[start : start + len(rest)]) == rest:
            yield Page(msgspec.structs.replace(page.ref, skip=skip), page.entries), start
            least = start + len(rest)


def _chunks(entries: Sequence[SegmentEntry], attempt: str) -> Iterator[NewPage]:
    for at in range(0, len(entries), PAGE_ENTRIES_MAX):
        chunk = tuple(entries[at : at + PAGE_ENTRIES_MAX])
        data = encode_page(chunk)
        ref = PageRef(Offset(chunk[0].base_offset), attempt, len(chunk), crc_of(data))
        yield NewPage(Page(ref, chunk), data)
