"""What all partitions have in each bucket, and what was asked of it: the figures of a bill.

Source: decision 0058; docs/operating/tiered.md, "What it costs"."""

from dataclasses import asdict, dataclass

from strandline.base.json_value import Json
from strandline.client.operations.tier import TierStatus

HEADS = (
    *("BUCKET", "PARTITIONS", "OBJECTS", "BYTES", "RETIRED-BYTES", "PENDING-BYTES"),
    *("PENDING-AGE-S", "PUTS", "GETS", "LISTS", "DELETES", "SENT-BYTES", "RECEIVED-BYTES"),
)


@dataclass(slots=True)
class BucketSum:
    """One bucket. `pending_since_ms`: since when the oldest closed segment waits, in ms since 1970;
    -1 for none. The requests are those of all brokers that answered, since each one started."""

    bucket: str
    partitions: int = 0
    objects: int = 0
    bytes: int = 0
    retired_bytes: int = 0
    pending_bytes: int = 0
    pending_since_ms: int = -1
    puts: int = 0
    gets: int = 0
    lists: int = 0
    deletes: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0

    def row(self, now_ms: int) -> tuple[str | int, ...]:
        """As `HEADS`."""
        since_ms = self.pending_since_ms
        age: str | int = "-" if since_ms < 0 else max(0, now_ms - since_ms) // 1000
        return (
            *(self.bucket, self.partitions, self.objects, self.bytes, self.retired_bytes),
            *(self.pending_bytes, age, self.puts, self.gets, self.lists, self.deletes),
            *(self.sent_bytes, self.received_bytes),
        )

    @property
    def json(self) -> Json:
        """All of it."""
        since_ms = self.pending_since_ms
        return asdict(self) | {"pending_since_ms": since_ms if since_ms >= 0 else None}


def bucket_sums(found: TierStatus) -> list[BucketSum]:
    """One for each bucket that a partition or a broker names, in order."""
    sums: dict[str, BucketSum] = {}
    for partition in found.partitions:
        for one in partition.buckets:
            total = sums.setdefault(one.bucket, BucketSum(one.bucket))
            total.partitions += 1
            total.objects += one.object_count
            total.bytes += one.size_bytes
            total.retired_bytes += one.removal_bytes
            total.pending_bytes += one.pending_bytes
            if one.pending_since_ms >= 0:
                known = total.pending_since_ms
                since_ms = one.pending_since_ms
                total.pending_since_ms = since_ms if known < 0 else min(known, since_ms)
    for asked in found.traffic:
        total = sums.setdefault(asked.bucket, BucketSum(asked.bucket))
        total.puts += asked.put_count
        total.gets += asked.get_count
        total.lists += asked.list_count
        total.deletes += asked.delete_count
        total.sent_bytes += asked.sent_bytes
        total.received_bytes += asked.received_bytes
    return [sums[bucket] for bucket in sorted(sums)]
