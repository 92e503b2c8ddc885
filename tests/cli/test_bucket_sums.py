"""The figures of a bill, bucket by bucket."""

from strandline.cli.text.bucket_sums import HEADS, bucket_sums
from strandline.client.operations.tier import TierStatus
from strandline.protocol.messages.describe_tier import (
    TierBucketStatus,
    TierBucketTraffic,
    TierPartitionStatus,
)


def partition(*buckets: TierBucketStatus) -> TierPartitionStatus:
    return TierPartitionStatus(topic="t", buckets=list(buckets))


def test_partitions_and_brokers_are_added_up() -> None:
    east = TierBucketStatus(bucket="east", object_count=2, size_bytes=100, pending_bytes=7)
    late = TierBucketStatus(
        bucket="east", object_count=3, size_bytes=50, pending_bytes=1, pending_since_ms=5_000
    )
    later = TierBucketStatus(bucket="east", pending_since_ms=9_000, removal_bytes=4)
    asked = [
        TierBucketTraffic(bucket="east", put_count=3, get_count=1, sent_bytes=30),
        TierBucketTraffic(bucket="west", list_count=1),
        TierBucketTraffic(bucket="east", put_count=2, delete_count=5, received_bytes=8),
    ]
    found = TierStatus([partition(east, later), partition(late)], [], asked)
    rows = [dict(zip(HEADS, one.row(11_000), strict=True)) for one in bucket_sums(found)]
    assert [row["BUCKET"] for row in rows] == ["east", "west"]
    assert rows[0] == {
        "BUCKET": "east",
        "PARTITIONS": 3,
        "OBJECTS": 5,
        "BYTES": 150,
        "RETIRED-BYTES": 4,
        "PENDING-BYTES": 8,
        "PENDING-AGE-S": 6,
        "PUTS": 5,
        "GETS": 1,
        "LISTS": 0,
        "DELETES": 5,
        "SENT-BYTES": 30,
        "RECEIVED-BYTES": 8,
    }
    assert (rows[1]["PENDING-AGE-S"], rows[1]["LISTS"]) == ("-", 1)
    assert bucket_sums(found)[1].json["pending_since_ms"] is None
