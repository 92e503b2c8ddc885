"""Opens one bucket by its URL.

Source: decision 0058."""

from strandline.config.bucket_urls import BucketUrl
from strandline.tiered.objects.backend import Backend
from strandline.tiered.objects.bucket_store import BucketStore
from strandline.tiered.objects.credentials import CredentialsFile
from strandline.tiered.objects.directory import DirectoryBackend
from strandline.tiered.objects.limits import StoreLimits
from strandline.tiered.objects.remote import RemoteBackend


def open_store(
    url: BucketUrl,
    *,
    credentials: CredentialsFile = CredentialsFile(),  # noqa: B008
    limits: StoreLimits | None = None,
    timeout_ms: int = 30_000,
) -> BucketStore:
    """The store of a bucket. Nothing is asked of it yet: a bucket may be down when a broker
    starts. Raises OperatorError if the credentials cannot be read."""
    backend: Backend
    if url.scheme == "file":
        backend = DirectoryBackend(url.container)
    else:
        backend = RemoteBackend(url, credentials, timeout_ms=timeout_ms)
    title = f"bucket {url.name} ({url})" if url.name else str(url)
    return BucketStore(backend, title=title, limits=limits or StoreLimits(), timeout_ms=timeout_ms)
