"""A claim or an identity with wrong bytes is an error of the store, whatever the bytes are.

Source: decisions 0058 and 0068."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import pytest
from tests.tiered.exports.stores import MemoryStore

from strandline.tiered.objects.claim import CLAIM, Claim, read_claim
from strandline.tiered.objects.identity import IDENTITY, Identity, read_identity
from strandline.tiered.objects.store import ObjectStore, StoreError

Read = Callable[[ObjectStore], Awaitable[str]]
OBJECTS: dict[str, tuple[Read, msgspec.Struct]] = {
    CLAIM: (read_claim, Claim(format=1, cluster_id="cluster")),
    IDENTITY: (read_identity, Identity(format=1, bucket_id="0123abcd", bucket="east")),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_each_wrong_bit_gives_another_value_or_a_store_error(name: str) -> None:
    read, value = OBJECTS[name]
    data = msgspec.json.encode(value)
    refused = 0

    async def run() -> None:
        nonlocal refused
        store = MemoryStore()
        for bit in range(8 * len(data)):
            wrong = bytearray(data)
            wrong[bit // 8] ^= 1 << bit % 8
            store.objects[name] = bytes(wrong), 0
            try:
                assert isinstance(await read(store), str)
            except StoreError as error:
                refused += 1
                assert f"{name} cannot be read" in str(error)

    asyncio.run(run())
    assert refused > len(data)
