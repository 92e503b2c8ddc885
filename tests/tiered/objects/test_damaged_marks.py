"""A bucket's claim or identity that came with a wrong byte is an error of the store, not of us."""

import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from strandline.simulation.buckets.bucket import SimBucket
from strandline.simulation.buckets.truth import TrueStore, run_now
from strandline.simulation.world.scheduler import Scheduler
from strandline.tiered.objects.claim import CLAIM, claim_bucket, read_claim
from strandline.tiered.objects.identity import IDENTITY, give_identity, read_identity
from strandline.tiered.objects.store import StoreError


def held() -> TrueStore:
    """A bucket that has a claim and an identity."""
    store = TrueStore(SimBucket("east", Scheduler(), random.Random(1)))
    run_now(claim_bucket(store, bucket="east", cluster_id="abcdefghijklmnopqrstuv"))
    run_now(give_identity(store, bucket="east", rng=random.Random(2)))
    return store


@pytest.mark.parametrize(("name", "read"), [(CLAIM, read_claim), (IDENTITY, read_identity)])
def test_one_wrong_bit_anywhere_is_another_id_or_a_store_error(
    name: str, read: Callable[[TrueStore], Coroutine[Any, Any, str]]
) -> None:
    store = held()
    data = run_now(store.get(name))
    error_count = 0
    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        store.bucket.put(name, bytes(damaged))
        try:
            assert isinstance(run_now(read(store)), str)
        except StoreError as error:
            error_count += 1
            assert name in str(error)
    assert error_count > len(data)
