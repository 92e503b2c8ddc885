"""Which objects of a bucket no log knows. Pure.

Why:    a broker that died may put an object after its attempt was given up and forgotten, and a
        declared loss may cut markers off. Nothing else ever deletes these.
How:    The listing comes first, then the leader's state: a put follows its intent, so an object
        that was listed and is unknown afterwards is no upload under way. Young objects stay all the
        same, and those that an export in the bucket names. A name of another form is no concern of
        ours. An error is no absence: what is not certain stays.
Source: decisions 0057 and 0058."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

from strandline.tiered.objects.store import ObjectInfo
from strandline.tiered.segments.names import parse_segment_name


class Place(NamedTuple):
    """A partition, as names in a bucket have it."""

    topic_id: UUID
    partition: int


class Listed(NamedTuple):
    """The segments of one partition in a listing, in the order of their names."""

    place: Place
    objects: tuple[ObjectInfo, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """What is certain of a partition after the listing. `names`: objects that its leader's log has:
    live, on their way, retired, abandoned; `exported`: those that an export in the bucket names."""

    names: Collection[str] = ()
    exported: Collection[str] = ()
    is_topic_gone: bool = False
    """The controller has no such topic: nothing of it is needed."""


@dataclass(slots=True)
class Sorted:
    """Objects by what they are."""

    known: list[ObjectInfo] = field(default_factory=list)
    young: list[ObjectInfo] = field(default_factory=list)
    exported: list[ObjectInfo] = field(default_factory=list)
    """Named by an export in the bucket, and unknown to the log: after a declared loss."""
    orphans: list[ObjectInfo] = field(default_factory=list)


def segments_of(listing: Iterable[ObjectInfo], cluster_id: str) -> Iterator[Listed]:
    """The segments of a cluster, partition by partition; other names are left out."""
    named = ((_place_of(one.name, cluster_id), one) for one in listing)
    ours = ((place, one) for place, one in named if place is not None)
    for place, group in groupby(ours, key=lambda row: row[0]):
        yield Listed(place, tuple(one for _, one in group))


def sort_objects(listed: Listed, known: Known, *, now_ms: int, grace_ms: int) -> Sorted:
    """Judge the objects of a partition. `now_ms`: not later than the listing, by our clock."""
    result = Sorted()
    for one in listed.objects:
        if one.name in known.names:
            result.known.append(one)
        elif one.modified_ms > now_ms - grace_ms:
            result.young.append(one)
        elif one.name in known.exported and not known.is_topic_gone:
            result.exported.append(one)
        else:
            result.orphans.append(one)
    return result


def _place_of(name: str, cluster_id: str) -> Place | None:
    found = parse_segment_name(name)
    if found is None or found.cluster_id != cluster_id:
        return None
    try:
        return Place(UUID(found.topic_id), found.partition)
    except ValueError:
        return None
