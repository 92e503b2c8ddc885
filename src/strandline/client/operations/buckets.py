"""Which bucket a name stands for, and what is in that bucket alone.

Source: decision 0068."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from strandline.client.cluster import Client
from strandline.protocol.messages.describe_tier import TierPartitionStatus
from strandline.protocol.messages.identify_bucket import (
    IdentifyBucketRequest,
    IdentifyBucketResponse,
)


class OnlyThere(NamedTuple):
    """Records [start, end) of a partition that neither a disk nor another bucket has."""

    topic: str
    partition: int
    start: int
    end: int


def identify_bucket(
    client: Client, bucket: str, bucket_id: str = "", replaced_id: str = ""
) -> IdentifyBucketResponse:
    """What the cluster knows of a bucket; with an id, that it is this one from now on. Raises
    ApiError with the reason if the controller refuses."""
    request = IdentifyBucketRequest(bucket, bucket_id, replaced_id)
    return client.ask_controller(request, IdentifyBucketResponse, f"bucket {bucket}")


def only_in_bucket(rows: Iterable[TierPartitionStatus], bucket: str) -> list[OnlyThere]:
    """What would be lost with a bucket, by what the partitions' logs say."""
    found = []
    for row in rows:
        own = [one for one in row.buckets if one.bucket == bucket and one.object_count]
        others = [
            (one.start_offset, one.end_offset)
            for one in row.buckets
            if one.bucket != bucket and one.object_count
        ]
        for one in own:
            start = max(one.start_offset, row.log_start_offset)
            end = min(one.end_offset, row.local_start_offset)
            for low, high in _without(start, end, others):
                found.append(OnlyThere(row.topic, row.partition, low, high))
    return found


def _without(start: int, end: int, ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The parts of [start, end) that are in none of the ranges."""
    left = []
    for low, high in sorted(ranges):
        if start < min(low, end):
            left.append((start, min(low, end)))
        start = max(start, high)
    if start < end:
        left.append((start, end))
    return left
