"""What every store promises (`tiered.objects.store`): a directory, a small S3 server, and the real
servers that are there."""

import asyncio
import random
from dataclasses import replace

import pytest
from tests.tiered.objects.opened import Opener, error_of, names, run
from tests.tiered.objects.real_servers import SERVERS, RealServers

from strandline.tiered.objects.backend import PART_BYTES
from strandline.tiered.objects.bucket_store import BucketStore
from strandline.tiered.objects.store import ObjectAbsentError, ObjectExistsError, StoreError

RACERS = 8


@pytest.fixture(params=["directory", "moto", *SERVERS])
def store(request: pytest.FixtureRequest, opener: Opener, real_servers: RealServers) -> BucketStore:
    if request.param == "directory":
        return opener.directory()
    if request.param in SERVERS:
        return opener.real(real_servers(request.param))
    return opener.s3(request.getfixturevalue("moto_port"))


def test_what_was_put_is_read_whole_and_in_ranges(store: BucketStore) -> None:
    async def main() -> None:
        await store.put("a/b", [b"0123", memoryview(b"xx4567")[2:], bytearray(b"89")])
        assert await store.get("a/b") == b"0123456789"
        assert await store.get_range("a/b", 0, 1) == b"0"
        assert await store.get_range("a/b", 3, 10) == b"3456789"
        await store.put("empty", [])
        assert await store.get("empty") == b""

    run(main())


def test_a_large_object_goes_up_in_parts(store: BucketStore) -> None:
    data = random.Random(1).randbytes(2 * PART_BYTES + 5)

    async def main() -> None:
        await store.put("large", [data[:7], memoryview(data)[7:PART_BYTES], data[PART_BYTES:]])
        for start, end in ((0, 9), (PART_BYTES - 3, PART_BYTES + 3), (len(data) - 5, len(data))):
            assert await store.get_range("large", start, end) == data[start:end]
        assert [one.size_bytes async for one in store.list("")] == [len(data)]

    run(main())


def test_an_object_is_copied_inside_the_store_under_another_name(store: BucketStore) -> None:
    data = random.Random(2).randbytes(PART_BYTES + 3)

    async def main() -> None:
        await store.put("a/b", [data])
        assert store.copies_from(store)
        assert await store.copy_from(store, "a/b", "c/d", size_bytes=len(data))
        assert await store.get("c/d") == data == await store.get("a/b")
        # Again, over what is there.
        assert await store.copy_from(store, "a/b", "c/d", size_bytes=len(data))
        assert not await store.copy_from(store, "a/b", "e", size_bytes=len(data) - 1)
        error = await error_of(store.copy_from(store, "a/c", "f", size_bytes=1))
        assert isinstance(error, ObjectAbsentError)
        assert await names(store, "f") == []

    run(main())


def test_another_prefix_of_the_same_bucket_is_beside_it(opener: Opener, moto_port: int) -> None:
    ours, theirs = opener.s3(moto_port), replace(opener, prefix="another/one").s3(moto_port)
    other = opener.s3(moto_port, bucket="elsewhere")

    async def main() -> None:
        await theirs.put("a/b", [b"0123"])
        assert await ours.copy_from(theirs, "a/b", "c/d", size_bytes=4)
        assert await ours.get("c/d") == b"0123"
        assert isinstance(await error_of(ours.get("a/b")), ObjectAbsentError)
        for one in (other, opener.directory()):
            assert not ours.copies_from(one) and not one.copies_from(ours)
            assert not await ours.copy_from(one, "a/b", "e", size_bytes=4)

    run(main())


def test_a_range_beyond_the_end_is_an_error_and_no_short_answer(store: BucketStore) -> None:
    async def main() -> None:
        await store.put("a", [b"0123"])
        error = await error_of(store.get_range("a", 2, 6))
        assert type(error) is StoreError
        assert "[2, 6)" in str(error)

    run(main())


def test_an_absent_object_is_absent(store: BucketStore) -> None:
    async def main() -> None:
        await store.put("a/b", [b"1"])
        for name in ("a/a", "a/c", "a", "b", "a/b/c"):
            error = await error_of(store.get(name))
            assert isinstance(error, ObjectAbsentError), name
            assert isinstance(await error_of(store.get_range(name, 0, 1)), ObjectAbsentError), name

    run(main())


def test_create_takes_a_name_once(store: BucketStore) -> None:
    async def main() -> None:
        await store.create("claim", b"ours")
        await store.create("claim", b"ours")
        assert isinstance(await error_of(store.create("claim", b"theirs")), ObjectExistsError)
        assert await store.get("claim") == b"ours"

    run(main())


def test_of_racing_creates_one_wins_and_all_agree(store: BucketStore) -> None:
    async def main() -> None:
        texts = [b"%d" % number for number in range(RACERS)]
        errors = await asyncio.gather(*(error_of(store.create("x", one)) for one in texts))
        winner = await store.get("x")
        won = [text for text, error in zip(texts, errors, strict=True) if error is None]
        assert won == [winner]
        assert all(error is None or isinstance(error, ObjectExistsError) for error in errors)

    run(main())


def test_a_listing_has_all_names_with_the_prefix_in_order(store: BucketStore) -> None:
    stored = ["a", "a-b", "a.b", "a/b", "a/c/d", "a0", "ab/c", "b"]

    async def main() -> None:
        for name in reversed(stored[1:]):
            await store.put(name, [b"1"])
        assert await names(store) == stored[1:]
        for prefix in ("a", "a/", "a/b", "a/c", "ab", "c", "a/c/"):
            expected = [name for name in stored[1:] if name.startswith(prefix)]
            assert await names(store, prefix) == expected, prefix

    run(main())


def test_deleted_objects_are_gone_and_absent_ones_are_no_error(store: BucketStore) -> None:
    async def main() -> None:
        for name in ("a/b", "a/c", "d"):
            await store.put(name, [b"1"])
        await store.delete(["a/b", "none", "d"])
        await store.delete(["a/b"])
        await store.delete([])
        assert await names(store) == ["a/c"]

    run(main())
