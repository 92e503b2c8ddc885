"""Which offsets are read out of buckets, and where a read of buckets alone ends.

Why:    one plan says for each offset where it comes from, so that none is read twice or missed at
        the seam, however segments move meanwhile.
How:    the leaders' committed states (DescribeTier) name the live objects of each bucket. A split
        is cut where a bucket begins or ends:

            offsets   start .............................................. end
            east      [ live objects ............ )
            west      [ live objects ........................ )
            splits    | buckets east, west       | bucket west | brokers   |

        With readFrom=bucket a partition ends where the last live object does.
Source: decisions 0057 and 0065."""

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from strandline.base.errors import ApiError, StrandlineError
from strandline.client.buckets.options import BucketOptions
from strandline.client.cluster import Client
from strandline.client.operations.tier import tier_state, tier_status
from strandline.client.rights import REFUSALS, missing_right
from strandline.model.access import Kind, Operation
from strandline.model.ids import Offset
from strandline.protocol.messages.describe_tier import TierPartitionStatus
from strandline.spark.reading.bounds import EARLIEST, TopicPartition, name_of
from strandline.spark.reading.cluster import ClusterReader
from strandline.spark.reading.options import ReachOptions
from strandline.spark.reading.splits import BUCKETS, Split
from strandline.tiered.collection.collect import UncertainError
from strandline.tiered.collection.orphans import Place
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.state.bucket import entries_between

_LOG = logging.getLogger(__name__)
RETRY_MS = 500
_HINT = "readFrom=auto takes the records of such offsets from brokers"
Live = Mapping[str, Sequence[SegmentEntry]]
"""{bucket: its live objects, ascending, without a gap}, of one partition."""


class TierError(StrandlineError):
    """What buckets have is not known, or is less than the query asks of them."""


# ---- splits --------------------------------------------------------------------------------------


def place_splits(client: Client, splits: Sequence[Split], reach: ReachOptions) -> list[Split]:
    """The same offsets in the same order, those that are in buckets as splits of their own. Raises
    TierError where only buckets may be read, and do not have them."""
    (placed,) = place_groups(client, [splits], reach)
    return placed


def place_groups(
    client: Client, groups: Sequence[Sequence[Split]], reach: ReachOptions
) -> list[list[Split]]:
    """The same for the splits of several tasks, by one look at the tiers."""
    options = reach.buckets
    if options is None:
        return [list(group) for group in groups]
    splits = [one for group in groups for one in group]
    try:
        live = _settled_live(client, splits, reach, options)
    except (TierError, UncertainError) as error:
        if options.is_exclusive:
            raise TierError(f"{error}: {_HINT}") from error
        _LOG.warning("%s: reading from brokers", error)
        live = {}
    return [[part for one in group for part in _placed(one, live, options)] for group in groups]


def _placed(
    split: Split, live: Mapping[TopicPartition, Live], options: BucketOptions
) -> list[Split]:
    parts = cut(split, live.get((split.topic, split.partition), {}))
    for one in parts:
        if options.is_exclusive and one.place != BUCKETS:
            raise TierError(
                f"partition {name_of((one.topic, one.partition))}: offsets {one.start} to "
                f"{one.end} are in none of the buckets {', '.join(options.names)}: {_HINT}"
            )
    return parts


def cut(split: Split, live: Live) -> list[Split]:
    """A split in parts: each is in all buckets that its first offset is in, or with brokers."""
    parts = []
    at = split.start
    while at < split.end:
        ends = {
            bucket: entries[-1].end_offset
            for bucket, entries in live.items()
            if entries and entries[0].base_offset <= at < entries[-1].end_offset
        }
        if ends:
            end = min(split.end, *ends.values())
            objects = {
                bucket: tuple(entries_between(live[bucket], Offset(at), Offset(end)))
                for bucket in ends
            }
            parts.append(replace(split, start=at, end=end, place=BUCKETS, objects=objects))
        else:
            begins = [entries[0].base_offset for entries in live.values() if entries]
            end = min((one for one in begins if at < one < split.end), default=split.end)
            parts.append(replace(split, start=at, end=end))
        at = end
    return parts


def _settled_live(
    client: Client, splits: Sequence[Split], reach: ReachOptions, options: BucketOptions
) -> dict[TopicPartition, Live]:
    """As `_live`, but a leader that is new or about to change is asked again for a while where
    brokers cannot go on."""
    until_ms = client.transport.monotonic_ms() + reach.plan_timeout_ms
    while True:
        try:
            return _live(client, splits, options)
        except (TierError, UncertainError):
            left_ms = until_ms - client.transport.monotonic_ms()
            if not options.is_exclusive or left_ms < RETRY_MS:
                raise
        client.transport.sleep_ms(RETRY_MS)


def _live(
    client: Client, splits: Sequence[Split], options: BucketOptions
) -> dict[TopicPartition, Live]:
    """What the buckets have of the partitions of these splits; only of those whose offsets a bucket
    has, for the state of years is large. Raises TierError, UncertainError."""
    wanted: dict[TopicPartition, list[Split]] = defaultdict(list)
    for split in splits:
        wanted[split.topic, split.partition].append(split)
    rows = _rows(client, wanted, options) if wanted else {}
    found: dict[TopicPartition, Live] = {}
    for place, row in rows.items():
        start = min(one.start for one in wanted[place])
        end = max(one.end for one in wanted[place])
        topic_id = wanted[place][0].topic_id
        if not any(
            one.object_count and one.start_offset < end and start < one.end_offset
            for one in row.buckets
            if one.bucket in options.names
        ):
            continue
        if topic_id and str(row.topic_id) != topic_id:
            continue  # Made anew: the brokers' answer to a fetch by the old id says so.
        state = tier_state(client, Place(UUID(str(row.topic_id)), row.partition))
        images = () if state is None else state.buckets
        found[place] = {
            image.bucket: image.live for image in images if image.bucket in options.names
        }
    return found


def _rows(
    client: Client, places: Iterable[TopicPartition], options: BucketOptions
) -> dict[TopicPartition, TierPartitionStatus]:
    """{partition: what its leader says}, without those that have nothing to do with buckets. Raises
    TierError if a leader did not say."""
    wanted = set(places)
    try:
        status = tier_status(client, sorted({topic for topic, _ in wanted}))
    except ApiError as error:
        if error.code not in REFUSALS:
            raise
        raise TierError(str(missing_right(client, Operation.DESCRIBE, Kind.CLUSTER))) from error
    found = {(one.topic, one.partition): one for one in status.partitions}
    missing = sorted(wanted - found.keys())
    if missing and (status.missing or options.is_exclusive):
        reason = status.missing[0] if status.missing else "its leader knows of no bucket for it"
        raise TierError(f"partition {name_of(missing[0])}: what buckets hold is unknown: {reason}")
    return {place: row for place, row in found.items() if place in wanted}


# ---- where a read of buckets alone ends ----------------------------------------------------------


class BucketClusterReader(ClusterReader):
    """The partitions as far as buckets have them."""

    def __init__(self, client: Client, options: BucketOptions, *, read_committed: bool) -> None:
        super().__init__(client, read_committed=read_committed)
        self._buckets_client = client
        self._buckets = options

    def offsets(self, asked: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """As in `ClusterReader`, but none is above the end of the last live object; LATEST is that
        end, or the partition's start if nothing is in a bucket."""
        found = super().offsets(asked)
        late = {one: EARLIEST for one, when in asked.items() if when != EARLIEST}
        if not late:
            return found
        starts = super().offsets(late)
        ends = tiered_ends(self._buckets_client, late, self._buckets)
        return found | {one: min(found[one], max(starts[one], ends[one])) for one in late}


def tiered_ends(
    client: Client, places: Iterable[TopicPartition], options: BucketOptions
) -> dict[TopicPartition, int]:
    """{partition: the end of its last object in these buckets; 0 if none is there}. Raises
    TierError if a leader does not say."""
    names = options.names
    return {
        place: max((one.end_offset for one in row.buckets if one.bucket in names), default=0)
        for place, row in _rows(client, places, options).items()
    }


def cluster_reader(client: Client, reach: ReachOptions) -> ClusterReader:
    """What planning asks, as far as the query may read."""
    if reach.buckets is not None and reach.buckets.is_exclusive:
        return BucketClusterReader(client, reach.buckets, read_committed=reach.read_committed)
    return ClusterReader(client, read_committed=reach.read_committed)
