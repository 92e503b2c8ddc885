"""S3, GCS and Azure, by obstore.

Why:    three protocols, their signatures and their roles are not what this product exists for.
How:    obstore is imported when the first bucket opens. It retries within half of the deadline, so
        that a request ends in time. Its errors tell little apart; `bucket_store.py` reads back.
            If a store refuses the credentials and the file has others by now, the request is sent
        once more with those.
Owns:   one client of a bucket, made anew with new credentials.
Source: decision 0058; reference 2.3."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from operator import methodcaller
from typing import TYPE_CHECKING, Any, TypeVar

from strandline.base.disk import Buffer
from strandline.base.errors import OperatorError
from strandline.config.bucket_urls import BucketUrl
from strandline.tiered.objects.backend import (
    PART_BYTES,
    Backend,
    NotFoundAnswerError,
    TakenAnswerError,
)
from strandline.tiered.objects.credentials import CredentialsFile
from strandline.tiered.objects.store import ObjectInfo, StoreError

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Client

PAGE_COUNT = 1_000
RETRIES_MAX = 3
CONNECT_TIMEOUT_MS_MAX = 5_000
REASON_CHARACTERS_MAX = 300
_REFUSALS = re.compile(
    r"ExpiredToken|TokenRefreshRequired|InvalidAccessKeyId|SignatureDoesNotMatch|InvalidToken"
    r"|XAdminUserNotFound"  # versitygw, whose status is 404.
)
_ROLE = re.compile(r"https?://(169\.254\.169\.254|metadata\.google\.internal)[/:]")
"""Where a machine of a cloud asks for the credentials of its role."""
_QUERY = re.compile(r"(https?://[^\s?]*)\?[^\s\"')]*")
_T = TypeVar("_T")


class RemoteBackend:
    """See `backend.Backend`, and the module."""

    def __init__(self, url: BucketUrl, credentials: CredentialsFile, *, timeout_ms: int) -> None:
        self._url = url
        self._file = credentials
        self._timeout_ms = timeout_ms
        self._credentials = credentials.read(url.name, url.scheme)
        self._ca = _read_ca(url)
        self._client: Client | None = None
        self._whole: Client | None = None

    async def put(self, name: str, data: bytes) -> None:
        """See `Backend.put`."""
        await self._ask(lambda client: client.put_async(name, data, use_multipart=False))

    async def put_parts(
        self, name: str, parts: AsyncIterator[Sequence[Buffer]], *, parts_max: int
    ) -> None:
        """See `Backend.put_parts`. The library puts the buffers of a part together by itself."""

        async def buffers() -> AsyncIterator[Buffer]:
            async for part in parts:
                for one in part:
                    yield one

        # Parts cannot be sent a second time, so other credentials come with the next upload.
        await self._once(
            lambda client: client.put_async(
                name,
                buffers(),
                use_multipart=True,
                chunk_size=PART_BYTES,
                max_concurrency=parts_max,
            )
        )

    async def create(self, name: str, data: bytes) -> None:
        """See `Backend.create`."""
        await self._ask(lambda client: client.put_async(name, data, mode="create"))

    async def get(self, name: str, *, bytes_max: int) -> bytes:
        """See `Backend.get`."""

        async def read(client: "Client") -> bytes:
            answer = await client.get_async(name)
            size = answer.meta["size"]
            if size > bytes_max:
                raise StoreError(f"{name} has {size} bytes, more than {bytes_max}")
            data = bytes(await answer.bytes_async())
            if len(data) != size:
                raise StoreError(f"{len(data)} of {size} bytes came")
            return data

        return await self._ask(read)

    async def get_range(self, name: str, start: int, end: int) -> Buffer:
        """See `Backend.get_range`. The library's own memory: a copy of 8 MiB would hold the loop up
        for milliseconds."""

        async def read(client: "Client") -> Buffer:
            return memoryview(await client.get_range_async(name, start=start, end=end))

        return await self._ask(read)

    async def size(self, name: str) -> int:
        """See `Backend.size`."""

        async def read(client: "Client") -> int:
            return int((await client.head_async(name))["size"])

        return await self._ask(read)

    async def is_absent(self, name: str) -> bool:
        """See `Backend.is_absent`: the first name after the one just before it."""
        before = name[:-1] + chr(ord(name[-1]) - 1) + "~"

        async def first(client: "Client") -> bool:
            parent = name.rpartition("/")[0] or None
            async for page in client.list(parent, offset=before, chunk_size=1):
                return not page or page[0]["path"] != name
            return True

        return await self._ask(first)

    async def pages(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        """See `Backend.pages`. obstore lists directories, so names are chosen here."""
        parent = prefix.rpartition("/")[0] or None
        client = self._open()
        stream = client.list(parent, chunk_size=PAGE_COUNT)
        while True:
            page = await self._once(lambda _: anext(stream, None))
            if page is None:
                return
            yield [
                ObjectInfo(one["path"], one["size"], int(one["last_modified"].timestamp() * 1000))
                for one in page
                if one["path"].startswith(prefix)
            ]

    def copies_from(self, source: Backend) -> bool:
        """See `Backend.copies_from`. A store copies inside one bucket."""
        return isinstance(source, RemoteBackend) and self._url.is_beside(source._url)

    async def copy_from(self, source: Backend, name: str, new_name: str) -> None:
        """See `Backend.copy_from`: with the credentials of the prefix that gets the copy."""
        assert isinstance(source, RemoteBackend)
        origin, target = source._url.path_of(name), self._url.path_of(new_name)
        await self._ask(lambda _: self._open_whole().copy_async(origin, target, overwrite=True))

    async def delete(self, names: Sequence[str]) -> None:
        """See `Backend.delete`. GCS and Azure answer with an error for what is absent."""
        if self._url.scheme == "s3":
            await self._ask(lambda client: client.delete_async(list(names)))
            return
        for name in names:
            try:
                await self._ask(methodcaller("delete_async", name))
            except NotFoundAnswerError:
                continue

    # ---- the client ------------------------------------------------------------------------------

    async def _ask(self, request: "Callable[[Client], Awaitable[_T]]") -> _T:
        try:
            return await self._once(request)
        except _CredentialsError:
            if not await asyncio.to_thread(self._reread):
                raise
            return await self._once(request)

    async def _once(self, request: "Callable[[Client], Awaitable[_T]]") -> _T:
        from obstore import exceptions

        try:
            return await request(self._open())
        except FileNotFoundError as error:
            if _REFUSALS.search(str(error)):
                raise _CredentialsError(f"credentials refused: {_reason(error)}") from None
            raise NotFoundAnswerError(_reason(error)) from None
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError) as error:
            raise TakenAnswerError(_reason(error)) from None
        except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
            raise _CredentialsError(f"credentials refused: {_reason(error)}") from None
        except (exceptions.BaseError, ValueError, OSError) as error:
            if _REFUSALS.search(str(error)):
                raise _CredentialsError(f"credentials refused: {_reason(error)}") from None
            if _ROLE.search(str(error)):
                raise _CredentialsError(
                    "there are no credentials in a file or in the environment, and the machine's "
                    f"role gives none: {_reason(error)}"
                ) from None
            raise StoreError(_reason(error)) from None

    def _reread(self) -> bool:
        """Whether the file has other credentials by now."""
        try:
            now = self._file.read(self._url.name, self._url.scheme)
        except OperatorError:
            return False
        if now == self._credentials:
            return False
        self._credentials, self._client, self._whole = now, None, None
        return True

    def _open_whole(self) -> "Client":
        """A client of the whole bucket, whatever the prefix."""
        if self._whole is None:
            url = replace(self._url, prefix="")
            self._whole = _client(url, self._credentials, ca=self._ca, timeout_ms=self._timeout_ms)
        return self._whole

    def _open(self) -> "Client":
        if self._client is None:
            self._client = _client(
                self._url, self._credentials, ca=self._ca, timeout_ms=self._timeout_ms
            )
        return self._client


class _CredentialsError(StoreError):
    """The store does not take these credentials, or no longer."""


def _read_ca(url: BucketUrl) -> str:
    """The certificates of the authority that the store's certificate is by, as PEM; empty: those
    that the machine trusts. Raises OperatorError if the URL names a file without any."""
    path = url.option("ca_file")
    if not path:
        return ""
    try:
        with open(path, encoding="ascii") as file:
            found = file.read()
        ssl.create_default_context(cadata=found or "empty")
    except OSError as error:
        if isinstance(error, ssl.SSLError):
            raise OperatorError(f"bucket {url.name}: ca_file {path}: is no certificate") from None
        raise OperatorError(f"bucket {url.name}: ca_file {path}: {error.strerror}") from None
    except ValueError:
        raise OperatorError(f"bucket {url.name}: ca_file {path}: is no PEM file") from None
    return found


def _client(
    url: BucketUrl, credentials: Mapping[str, str], *, ca: str, timeout_ms: int
) -> "Client":
    """A client with this deadline: no retry begins after half of it, and none takes longer."""
    from obstore.store import AzureStore, GCSStore, S3Store

    endpoint = url.option("endpoint")
    half = timedelta(milliseconds=timeout_ms / 2)
    connect = timedelta(milliseconds=min(timeout_ms / 4, CONNECT_TIMEOUT_MS_MAX))
    options: Any = {
        "client_options": {
            "timeout": half,
            "connect_timeout": connect,
            "allow_http": endpoint.startswith("http://"),
        },
        "retry_config": {
            "max_retries": RETRIES_MAX,
            "retry_timeout": half,
            "backoff": {
                "init_backoff": timedelta(milliseconds=100),
                "max_backoff": half / 2,
                "base": 2,
            },
        },
    }
    if ca:
        options["client_options"]["root_certificate"] = ca
    if url.prefix:
        options["prefix"] = url.prefix
    config: Any = dict(credentials)
    if endpoint:
        config["endpoint"] = endpoint
    match url.scheme:
        case "s3":
            if url.option("region"):
                config["region"] = url.option("region")
            # TLS protects the body; over plain HTTP its signature does.
            config["unsigned_payload"] = not endpoint.startswith("http://")
            config["virtual_hosted_style_request"] = url.option("virtual_host") == "true"
            return S3Store(url.container, config=config, **options)
        case "gs":
            return GCSStore(url.container, config=config, **options)
        case _:
            if url.option("account"):
                config["account_name"] = url.option("account")
            return AzureStore(url.container, config=config, **options)


def _reason(error: BaseException) -> str:
    """The first line of an error, without what a URL asks: that may hold a signature."""
    text = " ".join(str(error).split("Debug source")[0].split())
    return _QUERY.sub(r"\1", text)[:REASON_CHARACTERS_MAX]
