"""A broker's buckets by region, and the claim of each for one cluster."""

import pytest
from tests.tiered.objects.opened import Opener, error_of, run

from strandline.config.tiered_section import TieredSection
from strandline.model.cluster import Labels
from strandline.tiered.objects.buckets import Buckets
from strandline.tiered.objects.claim import CLAIM, ForeignClaimError, claim_bucket, read_claim
from strandline.tiered.objects.store import StoreError


def buckets_of(opener: Opener, *names: str) -> Buckets:
    places = tuple(f"{name}=file://{opener.root}/{name}" for name in names)
    return Buckets.of(TieredSection(buckets=places))


def test_a_bucket_is_named_by_its_region(opener: Opener) -> None:
    buckets = buckets_of(opener, "east", "west", "south")
    assert buckets.names == ("east", "west", "south")
    assert buckets.labels["west"] == Labels(region="west")
    run(buckets.store("east").put("a", [b"1"]))
    assert (opener.root / "east" / "a").read_bytes() == b"1"
    assert not (opener.root / "west").exists(), "opened when it is used"


def test_the_nearest_bucket_is_that_of_the_region(opener: Opener) -> None:
    buckets = buckets_of(opener, "east", "west", "south")
    assert buckets.nearest(Labels(region="west")) == ("west", "east", "south")
    assert buckets.nearest(Labels(region="north")) == ("east", "west", "south")


def test_a_bucket_that_was_taken_out_of_the_configuration_is_an_error(opener: Opener) -> None:
    with pytest.raises(StoreError, match="no bucket west in \\[tiered\\] buckets"):
        buckets_of(opener, "east").store("west")


def test_a_cluster_without_buckets_has_none() -> None:
    assert Buckets.of(TieredSection()).names == ()


def test_a_prefix_belongs_to_the_first_cluster(opener: Opener) -> None:
    async def main() -> None:
        store = opener.directory()
        assert isinstance(await error_of(read_claim(store)), StoreError)
        for _ in range(2):
            await claim_bucket(store, bucket="east", cluster_id="ours")
        assert await read_claim(store) == "ours"
        error = await error_of(claim_bucket(store, bucket="east", cluster_id="theirs"))
        assert isinstance(error, ForeignClaimError)
        assert str(error) == (
            "bucket east belongs to cluster ours, and this one is theirs: give this cluster a "
            "prefix of its own in [tiered] buckets"
        )

    run(main())


@pytest.mark.parametrize("text", [b"", b"{}", b"[1]", b"\xff"])
def test_a_claim_that_cannot_be_read_claims_nothing(opener: Opener, text: bytes) -> None:
    async def main() -> None:
        store = opener.directory()
        await store.put(CLAIM, [text])
        error = await error_of(claim_bucket(store, bucket="east", cluster_id="ours"))
        assert isinstance(error, StoreError) and not isinstance(error, ForeignClaimError)

    run(main())


def test_a_claim_of_a_later_release_is_respected(opener: Opener) -> None:
    async def main() -> None:
        store = opener.directory()
        await store.put(CLAIM, [b'{"format":2,"cluster_id":"ours","since":"x"}'])
        await claim_bucket(store, bucket="east", cluster_id="ours")
        error = await error_of(claim_bucket(store, bucket="east", cluster_id="theirs"))
        assert isinstance(error, ForeignClaimError)

    run(main())
