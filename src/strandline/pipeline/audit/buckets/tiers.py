"""What the leaders' logs say of the buckets of some partitions.

Why:    a bucket's listing proves nothing: retired and abandoned objects are in it, too.
Source: decision 0057; `client.operations.tier`."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from strandline.client.cluster import Client
from strandline.client.operations.tier import tier_partition, tier_status
from strandline.pipeline.audit.results import Place
from strandline.tiered.collection.collect import UncertainError
from strandline.tiered.collection.orphans import Place as TierPlace
from strandline.tiered.segments.entry import SegmentEntry

RETRY_MS = 200


@dataclass(frozen=True, slots=True)
class TierView:
    """One partition at one moment. `live`: {bucket: its objects, ascending}, of buckets that have
    any. The partition begins at `log_start`, its leader's log at `local_start`."""

    topic_id: UUID
    log_start: int
    local_start: int
    live: Mapping[str, tuple[SegmentEntry, ...]]

    @property
    def ends(self) -> dict[str, int]:
        """{bucket: where its last object ends}."""
        return {bucket: int(live[-1].end_offset) for bucket, live in self.live.items()}

    @property
    def names(self) -> frozenset[tuple[str, str]]:
        """(bucket, name) of every object."""
        return frozenset((bucket, one.name) for bucket, live in self.live.items() for one in live)


@dataclass(frozen=True, slots=True)
class Tiers:
    """`views`: partitions that have something in a bucket; `unknown`: {partition: why it is not
    known what buckets have of it}."""

    views: dict[Place, TierView]
    unknown: dict[Place, str]


def look_at_tiers(client: Client, places: Collection[Place], *, wait_ms: int) -> Tiers:
    """Ask the leaders about these partitions; for so long, those whose state is about to change."""
    until_ms = client.transport.monotonic_ms() + wait_ms
    tiers = Tiers({}, {})
    left = list(places)
    while left:
        tiers.unknown.clear()
        _look_at(client, left, tiers)
        left = [place for place in left if place in tiers.unknown]
        if client.transport.monotonic_ms() >= until_ms:
            break
        if left:
            client.transport.sleep_ms(RETRY_MS)
    return tiers


def _look_at(client: Client, places: Collection[Place], tiers: Tiers) -> None:
    status = tier_status(client, sorted({topic for topic, _ in places}))
    rows = {(one.topic, one.partition): one for one in status.partitions}
    for place in places:
        row = rows.get(place)
        if row is None:
            reason = _reason_for(place, status.missing)
            if reason:
                tiers.unknown[place] = reason
        elif any(one.object_count for one in row.buckets):
            _look(client, place, row.topic_id, tiers)


def _look(client: Client, place: Place, topic_id: UUID, tiers: Tiers) -> None:
    try:
        found = tier_partition(client, TierPlace(topic_id, place[1]))
    except UncertainError as error:
        tiers.unknown[place] = f"what buckets hold is not known: {error}"
        return
    if found is None:
        tiers.unknown[place] = "the topic was deleted meanwhile"
        return
    row, state = found
    live = {image.bucket: image.live for image in state.buckets if image.live}
    if live:
        view = TierView(row.topic_id, row.log_start_offset, row.local_start_offset, live)
        tiers.views[place] = view


def _reason_for(place: Place, missing: Iterable[str]) -> str:
    """Why a leader says nothing of a partition; empty if it has nothing to do with buckets."""
    name = f"{place[0]}-{place[1]} "
    reason = next((one for one in missing if one.startswith((name, "broker "))), "")
    return f"what buckets hold is not known: {reason}" if reason else ""
