"""All buckets of a broker, by region, under one set of limits.

Owns:   one store per bucket.
Source: decisions 0057 and 0058."""

from collections.abc import Callable
from dataclasses import replace

from strandline.base.errors import OperatorError
from strandline.config.bucket_urls import BucketUrl
from strandline.config.tiered_section import TieredSection
from strandline.model.cluster import Labels
from strandline.tiered.objects.bucket_store import BucketStore
from strandline.tiered.objects.credentials import CredentialsFile
from strandline.tiered.objects.limits import StoreLimits
from strandline.tiered.objects.opening import open_store
from strandline.tiered.objects.store import ObjectStore, StoreError
from strandline.tiered.objects.traffic import Traffic

OpenStore = Callable[[BucketUrl], ObjectStore]


class Buckets:
    """{bucket: its store}. A bucket is named by its region."""

    def __init__(
        self,
        stores: dict[str, ObjectStore],
        labels: dict[str, Labels],
        open_url: OpenStore | None = None,
    ) -> None:
        assert stores.keys() == labels.keys()
        self._stores = stores
        self._open_url = open_url
        self._opened: dict[BucketUrl, ObjectStore] = {}
        self.labels = labels
        """{bucket: where it is}, in the order of the configuration."""

    @classmethod
    def of(cls, section: TieredSection) -> "Buckets":
        """The buckets of a broker's file; raises OperatorError if credentials cannot be read."""
        limits = StoreLimits(
            requests_inflight_max=section.requests_inflight_max,
            inflight_bytes_max=section.inflight_bytes_max,
            upload_bytes_per_s=section.upload_bytes_per_s,
            download_bytes_per_s=section.download_bytes_per_s,
        )
        credentials = CredentialsFile(section.credentials_file)

        def open_url(url: BucketUrl) -> ObjectStore:
            return open_store(
                url, credentials=credentials, limits=limits, timeout_ms=section.request_timeout_ms
            )

        stores = {url.name: open_url(url) for url in section.bucket_urls}
        return cls(stores, section.labels_of_buckets, open_url)

    def open(self, url: BucketUrl) -> ObjectStore:
        """The store of a bucket that is not in the configuration: another cluster's, for a read
        replica. Its credentials are in the table of the bucket's own name, or in the environment.
        Raises StoreError if they cannot be read."""
        url = replace(url, name=url.container)
        if url not in self._opened:
            if self._open_url is None:
                raise StoreError(f"{url} cannot be opened here")
            try:
                self._opened[url] = self._open_url(url)
            except OperatorError as error:
                raise StoreError(str(error)) from error
        return self._opened[url]

    @property
    def names(self) -> tuple[str, ...]:
        """Every bucket, in the order of the configuration."""
        return tuple(self._stores)

    def store(self, bucket: str) -> ObjectStore:
        """The store of a bucket. Raises StoreError if the configuration has none of this name: the
        log may name a bucket that was taken out of it."""
        found = self._stores.get(bucket)
        if found is None:
            raise StoreError(f"no bucket {bucket} in [tiered] buckets of this broker's file")
        return found

    @property
    def traffic(self) -> dict[str, Traffic]:
        """{bucket: what this process has asked of it}."""
        return {
            name: store.traffic
            for name, store in self._stores.items()
            if isinstance(store, BucketStore)
        }

    def nearest(self, labels: Labels) -> tuple[str, ...]:
        """Every bucket, that of the region first; the others as the configuration has them."""
        return tuple(sorted(self._stores, key=lambda name: name != labels.region))
