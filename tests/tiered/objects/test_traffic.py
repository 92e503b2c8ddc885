"""What a store was asked is counted as the store sees it."""

import asyncio

from tests.tiered.objects.faulty_proxy import Fault, faulty_proxy
from tests.tiered.objects.opened import Opener, error_of, names

from strandline.tiered.objects.bucket_store import PART_BYTES


def test_requests_and_bytes_are_counted_as_the_server_sees_them(
    s3_port: int, opener: Opener
) -> None:
    async def main() -> None:
        async with faulty_proxy(s3_port) as proxy:
            store = opener.s3(proxy.port)
            await store.put("a", [b"12", b"3"])
            await store.create("b", b"45")
            assert (store.traffic.put_count, store.traffic.sent_bytes) == (2, 5)
            await store.put("large", [bytes(PART_BYTES + 1)])
            writes = sum(one in ("PUT", "POST") for one, _ in proxy.seen)
            assert store.traffic.put_count == writes == 6
            await store.get("a")
            await store.get_range("large", 0, 10)
            assert (store.traffic.get_count, store.traffic.received_bytes) == (2, 13)
            assert await names(store) == ["a", "b", "large"]
            assert store.traffic.list_count == 1
            await error_of(store.get("none"))
            assert (store.traffic.get_count, store.traffic.list_count) == (3, 2)
            lists = sum("list-type" in path for one, path in proxy.seen if one == "GET")
            assert (proxy.count("GET") - lists, lists) == (3, 2)
            await store.delete(["a", "b"])
            assert store.traffic.delete_count == 1

    asyncio.run(main())


def test_a_write_that_is_read_back_has_the_requests_of_both(s3_port: int, opener: Opener) -> None:
    async def main() -> None:
        async with faulty_proxy(s3_port) as proxy:
            store = opener.s3(proxy.port)
            proxy.faults.append(Fault("PUT", status=403, applied=True))
            await store.put("a", [b"123"])
            found = store.traffic
            assert (found.put_count, found.get_count, found.received_bytes) == (1, 2, 3)
            assert (proxy.count("PUT"), proxy.count("HEAD") + proxy.count("GET")) == (1, 2)

    asyncio.run(main())
