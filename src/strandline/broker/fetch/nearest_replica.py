"""Chooses the replica that a consumer is sent to, because it is nearer than the leader.

Why:    reading across regions is slow and costs money, and a nearer replica often has the records.
How:    A consumer says where it is (`client.rack`): a region, which is the rack that Metadata
        shows; `region/zone`; `region/zone/rack`; or a zone that only one region has.
            The more levels a replica's labels share with that, from the region down, the nearer it
        is. A consumer is never sent to a replica that is not nearer than the leader. Among equally
        near ones a hash of client and partition chooses, so that load spreads and a client stays.
            A consumer that comes back within `SPARED_MS` did not get there what it wants, whatever
        the reason: until that time is over the leader serves it.
Owns:   which consumers were sent on lately; one table per broker.
Source: KIP-392; decision 0031."""

from collections.abc import Iterable, Mapping
from zlib import crc32

from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId, GroupId

Path = tuple[str, ...]
"""(region, zone, rack), as far as the client says."""

SPARED_MS = 60_000
"""The leader serves a consumer that has come back for so long."""

KEPT_COUNT_MAX = 100_000
"""How many consumers the table remembers; the oldest are forgotten first."""


def path_of(rack: str, places: Iterable[Labels]) -> Path:
    """The place of a client that says `rack`; empty if that names no place here."""
    known = {(one.region, one.zone) for one in places if one.region}
    path = tuple(rack.split("/"))
    if any(region == path[0] for region, _ in known):
        return path
    regions = {region for region, zone in known if zone and (zone,) == path}
    return (regions.pop(), rack) if len(regions) == 1 else ()


def is_at(rack: str, labels: Labels) -> bool:
    """Whether no replica can be nearer to a client that says `rack` than these labels."""
    path = tuple(rack.split("/"))
    return levels_in_common(path, labels) == len(path)


def levels_in_common(path: Path, labels: Labels) -> int:
    """0 for none, 1 for the region, 2 for the zone, 3 for the rack."""
    count = 0
    for said, there in zip(path, (labels.region, labels.zone, labels.rack), strict=False):
        if not there or said != there:
            break
        count += 1
    return count


def nearest(
    path: Path, leader: BrokerId, places: Mapping[BrokerId, Labels]
) -> tuple[BrokerId, ...]:
    """The replicas nearest to `path`, by id; empty if none is nearer than the leader.

    `places`: where the replicas are, the leader's included where it is known."""
    levels = {one: levels_in_common(path, labels) for one, labels in places.items()}
    most = max(levels.values(), default=0)
    if most <= levels.get(leader, 0):
        return ()
    return tuple(sorted(one for one in levels if levels[one] == most))


def one_of(candidates: tuple[BrokerId, ...], client: str, group: GroupId) -> BrokerId:
    """The same candidate for a client and a partition, as long as it is one."""
    return max(candidates, key=lambda one: (crc32(f"{one}/{group}/{client}".encode()), one))


class SentOn:
    """Which consumers were sent on lately; see the module."""

    def __init__(self) -> None:
        # {(connection, group): when, in monotonic ms}, in the order of these times.
        self._sent: dict[tuple[int, GroupId], int] = {}

    def is_spared(self, connection: int, group: GroupId, now_ms: int) -> bool:
        """Whether the client was sent on so lately that the leader serves it."""
        sent_ms = self._sent.get((connection, group))
        return sent_ms is not None and now_ms - sent_ms < SPARED_MS

    def add(self, connection: int, group: GroupId, now_ms: int) -> None:
        """The client is sent on now."""
        self._sent.pop((connection, group), None)
        self._sent[connection, group] = now_ms
        while len(self._sent) > KEPT_COUNT_MAX:
            del self._sent[next(iter(self._sent))]
