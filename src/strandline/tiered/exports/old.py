"""Which exports and pages of a partition may be removed from a bucket.

Why:    an export is written again and again. A reader may still be at an older one.
How:    the newest few stay, and each that was the newest one within the grace; of those that were
        it more than `ALL_KEPT_MS` ago, the last one of each hour, for restores. A page stays while
        an export names it, and while it is younger than the grace: a writer puts pages first.
        All times are the store's own, so its clock is compared with itself only.
Source: decision 0061."""

from collections.abc import Sequence
from itertools import pairwise

from strandline.tiered.exports.encoding import Head, decode
from strandline.tiered.exports.names import PartitionPlace, parse_number
from strandline.tiered.framing import DamagedObjectError
from strandline.tiered.objects.store import ObjectAbsentError, ObjectInfo, ObjectStore

KEPT_MIN = 3
"""The newest exports stay whatever their age."""
ALL_KEPT_MS = 3_600_000
_HOUR_MS = 3_600_000
_DELETE_AT_ONCE = 1_000


def old_exports(listed: Sequence[ObjectInfo], *, grace_ms: int) -> list[str]:
    """Those out of all exports, in the order of their names, that may go.

    The last one's time stands for the present: it is not later than that."""
    if not listed:
        return []
    now_ms = max(one.modified_ms for one in listed)
    return [
        one.name
        for one, successor in pairwise(listed[: 1 - KEPT_MIN])
        if successor.modified_ms < now_ms - grace_ms
        or (successor.modified_ms < now_ms - ALL_KEPT_MS and _is_same_hour(one, successor))
    ]


def _is_same_hour(one: ObjectInfo, other: ObjectInfo) -> bool:
    return one.modified_ms // _HOUR_MS == other.modified_ms // _HOUR_MS


async def remove_old(store: ObjectStore, place: PartitionPlace, *, grace_ms: int) -> int:
    """Remove old exports and pages of a partition; how many. Raises StoreError."""
    prefix = place.exports_prefix
    listed = [
        one
        async for one in store.list(prefix)
        if parse_number(one.name.removeprefix(prefix)) is not None
    ]
    listed.sort()
    old = old_exports(listed, grace_ms=grace_ms)
    gone = set(old)
    kept = [one for one in listed if one.name not in gone]
    # Pages are judged by what is left. An export goes before its pages, never after.
    await _delete(store, old)
    pages = await _old_pages(store, place, kept, grace_ms)
    await _delete(store, pages)
    return len(old) + len(pages)


async def _old_pages(
    store: ObjectStore, place: PartitionPlace, kept: Sequence[ObjectInfo], grace_ms: int
) -> list[str]:
    listed = [one async for one in store.list(place.pages_prefix)]
    if not listed or not kept:
        return []
    before_ms = max(one.modified_ms for one in (*listed, *kept)) - grace_ms
    old = [one.name for one in listed if one.modified_ms < before_ms]
    if not old:
        return []
    named: set[str] = set()
    for one in kept:
        try:
            head = decode(one.name, await store.get(one.name), Head)
        except ObjectAbsentError:
            continue
        except DamagedObjectError:
            return []  # It is not known which pages it names.
        named |= {place.page_name(ref.base_offset, ref.attempt) for ref in head.pages}
    return [one for one in old if one not in named]


async def _delete(store: ObjectStore, names: Sequence[str]) -> None:
    for at in range(0, len(names), _DELETE_AT_ONCE):
        await store.delete(names[at : at + _DELETE_AT_ONCE])
