"""The section of a broker's file that is about object stores.

Why:    buckets are the same for all brokers of a cluster; limits, the cache and credentials are a
        broker's own.
Owns:   nothing.
Source: decisions 0057 and 0058."""

from dataclasses import dataclass

from strandline.config.bucket_urls import (
    BucketUrl,
    bucket_labels,
    check_bucket_labels,
    check_buckets,
    parse_bucket,
)
from strandline.config.keys import LONG_MAX, key
from strandline.model.cluster import Labels

_MIB = 1024 * 1024
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TieredSection:
    """[tiered]: object stores for topics with `remote.storage.enable`. See
    docs/operating/tiered.md."""

    buckets: tuple[str, ...] = key(
        (),
        "The buckets, one a region, each as region=url; the same on every broker. A URL is "
        "file:///directory, s3://bucket/prefix (options region, endpoint, virtual_host, ca_file), "
        "gs://bucket/prefix or az://container/prefix (options account, endpoint, ca_file). Empty: "
        "no tiered storage.",
        check=check_buckets,
        example="east=s3://log-east/prod?region=us-east-1,west=s3://log-west/prod?region=us-west-2",
    )
    bucket_labels: tuple[str, ...] = key(
        (),
        "Further labels of buckets for the residency of placement policies, each as "
        "region:label=value; the same on every broker. A bucket has the label region by its name.",
        check=check_bucket_labels,
        example="east:country=us,west:country=us",
    )
    credentials_file: str = key(
        "",
        "A TOML file with one table per bucket, named by its region, that no other user may read. "
        "The broker reads it again once a store refuses its credentials. Empty: the environment "
        "has them (AWS_ACCESS_KEY_ID and so on), or the machine's own role.",
        example="/etc/strandline/buckets.toml",
    )
    requests_inflight_max: int = key(
        4,
        "The most requests to all stores at one time that carry data, up and down.",
        minimum=1,
        maximum=64,
    )
    inflight_bytes_max: int = key(
        64 * _MIB,
        "The most memory for data on its way to and from all stores.",
        unit="bytes",
        minimum=16 * _MIB,
        maximum=64 * 1024 * _MIB,
    )
    upload_bytes_per_s: int = key(
        0,
        "The most that this broker uploads in a second, to all stores; 0 for no limit.",
        unit="bytes/s",
        minimum=0,
        maximum=LONG_MAX,
    )
    download_bytes_per_s: int = key(
        0,
        "The most that this broker downloads in a second, from all stores; 0 for no limit.",
        unit="bytes/s",
        minimum=0,
        maximum=LONG_MAX,
    )
    rewrite_bytes_per_s: int = key(
        16 * _MIB,
        "The most of its objects that this broker reads in a second to write them again, merged or "
        "compacted; 0 for no limit. That takes up to a quarter of `inflight_bytes_max` of memory "
        "in addition.",
        unit="bytes/s",
        minimum=0,
        maximum=LONG_MAX,
    )
    request_timeout_ms: int = key(
        30_000,
        "How long one request to a store may take, retries included. A part of an upload is a "
        "request of its own.",
        unit="ms",
        minimum=100,
        maximum=600_000,
    )
    upload_stall_timeout_ms: int = key(
        120_000,
        "The leader gives an upload up that made no progress for this long, and starts another.",
        unit="ms",
        minimum=1_000,
        maximum=_DAY_MS,
    )
    check_interval_ms: int = key(
        1_000,
        "How often a leader compares its log with its buckets.",
        unit="ms",
        minimum=10,
        maximum=600_000,
    )
    export_interval_ms: int = key(
        10_000,
        "The shortest time between two exports of a partition's state to a bucket.",
        unit="ms",
        minimum=10,
        maximum=_DAY_MS,
    )
    delete_grace_ms: int = key(
        3_600_000,
        "How long an object stays in its bucket after it was retired. Longer than any read of "
        "one object.",
        unit="ms",
        minimum=0,
        maximum=365 * _DAY_MS,
    )
    cache_directory: str = key(
        "",
        "The directory of the cache of downloaded chunks; empty for `tiered-cache` in the data "
        "directory.",
        example="/var/cache/strandline",
    )
    cache_bytes_max: int = key(
        1024 * _MIB,
        "The size of that cache.",
        unit="bytes",
        minimum=16 * _MIB,
        maximum=LONG_MAX,
    )

    @property
    def is_enabled(self) -> bool:
        """Whether this broker has buckets."""
        return bool(self.buckets)

    @property
    def bucket_urls(self) -> tuple[BucketUrl, ...]:
        """The buckets, in the order of the file."""
        return tuple(parse_bucket(text) for text in self.buckets)

    @property
    def labels_of_buckets(self) -> dict[str, Labels]:
        """{bucket: where it is}, in the order of the file."""
        return bucket_labels(self.buckets, self.bucket_labels)
