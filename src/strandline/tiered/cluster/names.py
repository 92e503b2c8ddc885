"""Names of what a bucket says of a whole cluster.

    <cluster id>/controller/<epoch>-<offset>-<written ms>            a snapshot of the controller
    <cluster id>/offsets/<partition>/<epoch>-<offset>-<written ms>   committed offsets of groups

Why:    a restore takes the newest that is not later than a time: a listing alone has to tell.
How:    epoch and offset are of the log that the object speaks of, so a later truth has the higher
        name, and a leader that was deposed can only write an older true statement. The time is
        that of the writer's clock.
Source: decisions 0057 and 0063."""

from collections.abc import AsyncIterator

import msgspec

from strandline.model.ids import Epoch, Offset
from strandline.tiered.numbers import join_numbers, split_numbers
from strandline.tiered.objects.store import ObjectStore

_DIGITS = 10, 19, 15
"""Of the epoch, the offset and the time."""


class ClusterNumber(msgspec.Struct, frozen=True, order=True, array_like=True):
    """Which object: the higher one is the newer truth."""

    epoch: Epoch
    offset: Offset
    written_ms: int
    """By the writer's clock, in milliseconds since 1970."""

    def __str__(self) -> str:
        return join_numbers((self.epoch, self.offset, self.written_ms), _DIGITS)


def parse_number(text: str) -> ClusterNumber | None:
    """The number that a name ends with; None if it is none."""
    numbers = split_numbers(text, _DIGITS)
    if numbers is None:
        return None
    epoch, offset, written_ms = numbers
    return ClusterNumber(Epoch(epoch), Offset(offset), written_ms)


def controller_prefix(cluster_id: str) -> str:
    """Of the snapshots of a cluster's controller."""
    return f"{cluster_id}/controller/"


def offsets_prefix(cluster_id: str, partition: int | None = None) -> str:
    """Of the committed offsets of a cluster, or of one partition of `__consumer_offsets`."""
    return f"{cluster_id}/offsets/" + ("" if partition is None else f"{partition}/")


async def list_numbers(store: ObjectStore, prefix: str) -> list[ClusterNumber]:
    """The numbers below a prefix, the newest first. Raises StoreError."""
    found = [number async for _, number in _numbered(store, prefix)]
    return sorted(found, reverse=True)


async def list_offsets(store: ObjectStore, cluster_id: str) -> dict[int, list[ClusterNumber]]:
    """{partition of `__consumer_offsets`: the numbers of its exports, the newest first}. Raises
    StoreError."""
    found: dict[int, list[ClusterNumber]] = {}
    async for place, number in _numbered(store, offsets_prefix(cluster_id)):
        if place.isascii() and place.isdecimal():
            found.setdefault(int(place), []).append(number)
    return {partition: sorted(some, reverse=True) for partition, some in sorted(found.items())}


def before(numbers: list[ClusterNumber], as_of_ms: int | None) -> list[ClusterNumber]:
    """Those that were written at or before a time, in their order; all without a time."""
    return [one for one in numbers if as_of_ms is None or one.written_ms <= as_of_ms]


async def _numbered(store: ObjectStore, prefix: str) -> AsyncIterator[tuple[str, ClusterNumber]]:
    """(what stands between the prefix and the number, the number)"""
    async for one in store.list(prefix):
        place, _, last = one.name.removeprefix(prefix).rpartition("/")
        number = parse_number(last)
        if number is not None:
            yield place, number
