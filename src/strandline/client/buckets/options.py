"""Which buckets a client reads, and how they are opened.

Why:    options are in plans, logs and command lines, so they name places only. Secrets are in a
        file of each executor, or in its environment.
Source: decision 0065; `[tiered] buckets` of a broker's file."""

from dataclasses import dataclass
from typing import Literal

from strandline.base.errors import OperatorError
from strandline.config.bucket_urls import BucketUrl, check_buckets, parse_bucket

ReadFrom = Literal["broker", "bucket", "auto"]
"""broker: all records; bucket: records that are in buckets, and no others; auto: records that are
in buckets come from there, the others from brokers."""


@dataclass(frozen=True, slots=True)
class BucketOptions:
    """Buckets that executors read themselves. `places`: `region=URL` of each."""

    read_from: ReadFrom
    """Never `broker`."""
    places: tuple[str, ...]
    """In the order in which they are tried, the reader's own region excepted, which is first."""
    credentials_file: str = ""
    """A path on each executor; empty: its environment has the credentials."""

    @property
    def urls(self) -> tuple[BucketUrl, ...]:
        """Where the buckets are."""
        return tuple(parse_bucket(one) for one in self.places)

    @property
    def names(self) -> tuple[str, ...]:
        """The buckets, each named by its region."""
        return tuple(one.name for one in self.urls)

    @property
    def is_exclusive(self) -> bool:
        """Whether no record may come from a broker."""
        return self.read_from == "bucket"

    @property
    def words(self) -> dict[str, str]:
        """The options of the data source that say the same."""
        found = {"readFrom": self.read_from, "buckets": ",".join(self.places)}
        if self.credentials_file:
            found["bucketCredentialsFile"] = self.credentials_file
        return found

    def nearest(self, region: str) -> tuple[str, ...]:
        """Every bucket, that of the region first."""
        return tuple(sorted(self.names, key=lambda name: name != region))


def bucket_options(
    read_from: ReadFrom, buckets: str, credentials_file: str
) -> BucketOptions | None:
    """The same, of words that a command or a query gives. Raises OperatorError."""
    places = tuple(one.strip() for one in buckets.split(",") if one.strip())
    if read_from == "broker":
        return None
    if not places:
        raise OperatorError(
            f"readFrom {read_from}: give buckets, as in [tiered] buckets of a broker's file: "
            "region=s3://bucket/prefix"
        )
    reason = check_buckets(places)
    if reason is not None:
        raise OperatorError(f"buckets {reason}")
    return BucketOptions(read_from, places, credentials_file)
