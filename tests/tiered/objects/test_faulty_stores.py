"""A real S3 server behind a proxy that fails as stores do (reference 2.6): after anything but
success a write is read back, and an error is no absence."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.tiered.objects.faulty_proxy import Fault, FaultyProxy, faulty_proxy
from tests.tiered.objects.opened import Opener, error_of, names
from tests.tiered.objects.s3_server import CREDENTIALS

from strandline.tiered.objects.bucket_store import PART_BYTES, BucketStore
from strandline.tiered.objects.store import ObjectExistsError, StoreError

EXPIRED = b"<Error><Code>ExpiredToken</Code><Message>topsecret</Message></Error>"
UNKNOWN_USER = b"<Error><Code>XAdminUserNotFound</Code></Error>"
Check = Callable[[BucketStore, FaultyProxy], Awaitable[None]]
GIVEN_UP_MS = 2_000
"""A request that hangs is waited for so long; the next one must be answered in that time."""


def behind_proxy(port: int, opener: Opener, check: Check, *, timeout_ms: int = 4_000) -> None:
    async def main() -> None:
        async with faulty_proxy(port) as proxy:
            await check(opener.s3(proxy.port, timeout_ms=timeout_ms), proxy)
            assert not proxy.faults, "every fault came true"

    asyncio.run(main())


@pytest.mark.parametrize(
    "fault",
    [
        Fault("PUT", status=503),
        Fault("PUT", status=503, applied=True),
        Fault("PUT"),
        Fault("PUT", applied=True),
        Fault("PUT", status=409, applied=True),
        Fault("PUT", status=403, applied=True),
        Fault("PUT", hangs=True, applied=True),
    ],
    ids=str,
)
def test_a_write_that_is_in_the_store_is_a_success_whatever_the_answer(
    s3_port: int, opener: Opener, fault: Fault
) -> None:
    async def check(store: BucketStore, proxy: FaultyProxy) -> None:
        proxy.faults.append(fault)
        await store.put("put", [b"12", b"3"])
        proxy.faults.append(fault)
        await store.create("create", b"45")
        assert await store.get("put") == b"123"
        assert await store.get("create") == b"45"

    behind_proxy(s3_port, opener, check, timeout_ms=GIVEN_UP_MS if fault.hangs else 4_000)


@pytest.mark.parametrize(
    "fault",
    [
        # "409: retry", in AWS's words; obstore says that the object exists.
        Fault("PUT", status=409),
        Fault("PUT", status=403),
        Fault("PUT", status=400, body=EXPIRED),
        Fault("PUT", hangs=True),
    ],
    ids=str,
)
def test_a_write_that_is_not_there_is_an_error_and_never_a_taken_name(
    s3_port: int, opener: Opener, fault: Fault
) -> None:
    async def check(store: BucketStore, proxy: FaultyProxy) -> None:
        for write in (store.put("put", [b"1"]), store.create("create", b"1")):
            proxy.faults.append(fault)
            error = await error_of(write)
            assert isinstance(error, StoreError)
            assert not isinstance(error, ObjectExistsError)
            assert "bucket east" in str(error)
        assert await names(store) == []
        await store.put("put", [b"2"])
        await store.create("create", b"2")

    behind_proxy(s3_port, opener, check, timeout_ms=GIVEN_UP_MS if fault.hangs else 4_000)


def test_a_foreign_object_behind_an_unclear_answer_is_a_taken_name(
    s3_port: int, opener: Opener
) -> None:
    async def check(store: BucketStore, proxy: FaultyProxy) -> None:
        await store.create("claim", b"theirs")
        proxy.faults += [Fault("PUT", status=503), Fault("PUT", status=503)]
        assert isinstance(await error_of(store.create("claim", b"ours")), ObjectExistsError)

    behind_proxy(s3_port, opener, check)


def test_a_name_is_not_taken_because_one_answer_had_wrong_bytes(
    s3_port: int, opener: Opener
) -> None:
    async def check(store: BucketStore, proxy: FaultyProxy) -> None:
        await store.create("claim", b"ours")
        proxy.faults.append(Fault("GET", flips=True))
        error = await error_of(store.create("claim", b"ours"))
        assert type(error) is StoreError
        assert "reads differently each time" in str(error)

    behind_proxy(s3_port, opener, check)


@pytest.mark.parametrize(
    "fault",
    [Fault("GET", status=503), Fault("GET"), Fault("GET", keep_bytes=2)],
    ids=str,
)
def test_a_read_is_tried_again(s3_port: int, opener: Opener, fault: Fault) -> None:
    async def check(store: BucketStore, proxy: FaultyProxy) -> None:
        await store.put("a", [b"0123456789"])
        proxy.faults.append(fault)
        assert await store.get("a") == b"0123456789"
        proxy.faults.append(fault)
        assert await store.get_range("a", 2, 9) == b"2345678"

    behind_proxy(s3_port, opener, check)


@pytest.mark.parametrize(
    "fault",
    [
        Fault("GET", status=404),
        Fault("GET", status=403),
        Fault("GET", status=400, body=EXPIRED),
        Fault("GET", hangs=True),
    ],
    ids=str,
)
def test_an_error_is_no_absence(s3_port: int, opener: Opener, fault: Fault) -> None:
    async def check(store: BucketStore, proxy: FaultyProxy) -> None:
        await store.put("a", [b"0123456789"])
        for read in (store.get("a"), store.get_range("a", 2, 9)):
            proxy.faults.append(fault)
            assert type(await error_of(read)) is StoreError
        assert await store.get("a") == b"0123456789"

    behind_proxy(s3_port, opener, check, timeout_ms=GIVEN_UP_MS if fault.hangs else 4_000)


def test_an_object_of_a_bucket_that_is_gone_is_not_absent(s3_port: int, opener: Opener) -> None:
    async def main() -> None:
        store = opener.s3(s3_port, bucket="gone")
        for work in (store.get("a"), store.get_range("a", 0, 1), names(store)):
            error = await error_of(work)
            assert type(error) is not None and isinstance(error, StoreError)
            assert "Absent" not in type(error).__name__

    asyncio.run(main())


def test_a_listing_that_fails_is_an_error_and_no_short_list(s3_port: int, opener: Opener) -> None:
    async def check(store: BucketStore, proxy: FaultyProxy) -> None:
        await store.put("a", [b"1"])
        proxy.faults.append(Fault("GET", "list-type", status=403))
        assert isinstance(await error_of(names(store)), StoreError)
        proxy.faults.append(Fault("GET", "list-type", status=503))
        assert await names(store) == ["a"]

    behind_proxy(s3_port, opener, check)


@pytest.mark.parametrize(
    "fault",
    [
        Fault("PUT", "partNumber=2", status=503),
        Fault("PUT", "partNumber=2", applied=True),
        Fault("POST", "uploadId", applied=True),
        Fault("POST", "uploadId", status=503, applied=True),
        Fault("POST", "uploads", status=503),
    ],
    ids=str,
)
def test_a_large_object_survives_a_part_that_fails(
    s3_port: int, opener: Opener, fault: Fault
) -> None:
    data = bytes(PART_BYTES) + b"1" * 100

    async def check(store: BucketStore, proxy: FaultyProxy) -> None:
        proxy.faults.append(fault)
        await store.put("large", [data])
        assert await store.get_range("large", PART_BYTES - 1, len(data)) == data[PART_BYTES - 1 :]

    behind_proxy(s3_port, opener, check)


def test_a_large_object_whose_part_is_refused_is_not_there(s3_port: int, opener: Opener) -> None:
    async def check(store: BucketStore, proxy: FaultyProxy) -> None:
        proxy.faults.append(Fault("PUT", "partNumber=2", status=403))
        assert isinstance(await error_of(store.put("large", [bytes(PART_BYTES + 1)])), StoreError)
        assert await names(store) == []

    behind_proxy(s3_port, opener, check)


def test_a_large_upload_without_progress_ends(s3_port: int, opener: Opener) -> None:
    async def check(store: BucketStore, proxy: FaultyProxy) -> None:
        proxy.faults.append(Fault("PUT", "partNumber", hangs=True))
        assert isinstance(await error_of(store.put("large", [bytes(PART_BYTES + 1)])), StoreError)
        assert await names(store) == []

    behind_proxy(s3_port, opener, check, timeout_ms=1_000)


@pytest.mark.parametrize(
    "refused",
    [Fault("PUT", status=400, body=EXPIRED), Fault("PUT", status=404, body=UNKNOWN_USER)],
    ids=str,
)
def test_new_credentials_in_the_file_are_taken_once_the_old_ones_are_refused(
    s3_port: int, opener: Opener, refused: Fault
) -> None:
    opener.credentials.write_text('[east]\naccess_key_id = "old"\nsecret_access_key = "old"\n')

    async def check(store: BucketStore, proxy: FaultyProxy) -> None:
        proxy.faults.append(refused)
        assert "credentials refused" in str(await error_of(store.put("b", [b"1"])))
        opener.credentials.write_text(f"[east]\n{CREDENTIALS}")
        proxy.faults.append(refused)
        before = proxy.count("PUT")
        await store.put("b", [b"1"])
        assert proxy.count("PUT") == before + 2

    behind_proxy(s3_port, opener, check)


def test_an_error_shows_no_query_of_a_url(s3_port: int, opener: Opener) -> None:
    async def check(store: BucketStore, proxy: FaultyProxy) -> None:
        proxy.faults.append(Fault("GET", "list-type", status=403, body=b"no"))
        error = await error_of(names(store))
        assert "list-type" not in str(error) and "403" in str(error)

    behind_proxy(s3_port, opener, check)
