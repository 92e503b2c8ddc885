"""What tiering counts on one broker, for metrics and reports.

Owns:   the counts, from the broker's start.
Source: decisions 0023 and 0059."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class TierFigures:
    """See the module. Keys are (region the bytes came from, bucket), or a bucket."""

    upload_counts: dict[tuple[str, str], int] = field(default_factory=dict)
    uploaded_bytes: dict[tuple[str, str], int] = field(default_factory=dict)
    """Of objects that were confirmed."""
    sent_bytes: dict[tuple[str, str], int] = field(default_factory=dict)
    """Of all puts, those that failed included."""
    error_counts: dict[str, int] = field(default_factory=dict)
    """Failed uploads, and puts or deletions that a store did not carry out."""
    deleted_counts: dict[str, int] = field(default_factory=dict)
    """Objects that were deleted from a bucket."""

    replaced_counts: dict[str, int] = field(default_factory=dict)
    """Objects that another one has taken the place of."""
    rewritten_bytes: dict[str, int] = field(default_factory=dict)
    """Of their data."""

    repaired_counts: dict[str, int] = field(default_factory=dict)
    """Objects that were put again because the bucket had lost or damaged them."""

    def count_rewrite(self, bucket: str, count: int, size_bytes: int) -> None:
        """One object, in its bucket, takes the place of so many."""
        self.replaced_counts[bucket] = self.replaced_counts.get(bucket, 0) + count
        self.rewritten_bytes[bucket] = self.rewritten_bytes.get(bucket, 0) + size_bytes

    def count_upload(self, region: str, bucket: str, size_bytes: int) -> None:
        """An object is in its bucket."""
        key = (region, bucket)
        self.upload_counts[key] = self.upload_counts.get(key, 0) + 1
        self.uploaded_bytes[key] = self.uploaded_bytes.get(key, 0) + size_bytes

    def count_sent(self, region: str, bucket: str, size_bytes: int) -> None:
        """A put has ended, well or not."""
        key = (region, bucket)
        self.sent_bytes[key] = self.sent_bytes.get(key, 0) + size_bytes

    def count_error(self, bucket: str) -> None:
        """Something did not succeed."""
        self.error_counts[bucket] = self.error_counts.get(bucket, 0) + 1

    def count_repaired(self, bucket: str) -> None:
        """A missing or damaged object is there again."""
        self.repaired_counts[bucket] = self.repaired_counts.get(bucket, 0) + 1

    def count_deleted(self, bucket: str, count: int) -> None:
        """Objects are gone."""
        self.deleted_counts[bucket] = self.deleted_counts.get(bucket, 0) + count
