"""Opens the stores of a test."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.tiered.objects.real_servers import Running

from strandline.config.bucket_urls import parse_bucket
from strandline.tiered.objects.bucket_store import BucketStore
from strandline.tiered.objects.credentials import CredentialsFile
from strandline.tiered.objects.opening import open_store
from strandline.tiered.objects.store import ObjectStore

BUCKET = "logs"
T = TypeVar("T")


@dataclass
class Opener:
    """See the module. `prefix`: of all its stores in S3."""

    root: Path
    credentials: Path
    prefix: str

    def directory(self, name: str = "bucket", *, timeout_ms: int = 10_000) -> BucketStore:
        url = parse_bucket(f"east=file://{self.root / name}")
        return open_store(url, timeout_ms=timeout_ms)

    def s3(self, port: int, *, bucket: str = BUCKET, timeout_ms: int = 10_000) -> BucketStore:
        url = parse_bucket(
            f"east=s3://{bucket}/{self.prefix}?region=us-east-1&endpoint=http://127.0.0.1:{port}"
        )
        file = CredentialsFile(str(self.credentials))
        return open_store(url, credentials=file, timeout_ms=timeout_ms)

    def real(self, server: Running, *, timeout_ms: int = 10_000) -> BucketStore:
        """Of a real server, below this test's prefix."""
        file = self.root / "real.toml"
        file.write_text(f"[east]\n{server.credentials}")
        file.chmod(0o600)
        url = parse_bucket(f"east={server.url.replace('PREFIX', self.prefix)}")
        return open_store(url, credentials=CredentialsFile(str(file)), timeout_ms=timeout_ms)


async def names(store: ObjectStore, prefix: str = "") -> list[str]:
    return [one.name async for one in store.list(prefix)]


async def error_of(work: Awaitable[object]) -> Exception | None:
    """What a call raised."""
    try:
        await work
    except Exception as error:
        return error
    return None


def run(work: Awaitable[T]) -> T:
    async def main() -> T:
        return await work

    return asyncio.run(main())
