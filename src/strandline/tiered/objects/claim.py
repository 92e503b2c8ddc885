"""Claims a bucket's prefix for one cluster: two clusters under one prefix would delete each
other's objects.

How:    `claim.json` is created if absent, with the cluster's id. It never changes.
Source: decisions 0057 and 0058."""

import msgspec

from strandline.tiered.objects.store import ObjectExistsError, ObjectStore, StoreError

CLAIM = "claim.json"
FORMAT = 1


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What `claim.json` says."""

    format: int
    cluster_id: str


class ForeignClaimError(StoreError):
    """Another cluster has the prefix."""


async def claim_bucket(store: ObjectStore, *, bucket: str, cluster_id: str) -> None:
    """Make the prefix this cluster's, unless another has it. Raises ForeignClaimError, which says
    what to do; StoreError if the store does not say."""
    assert cluster_id
    own = msgspec.json.encode(Claim(format=FORMAT, cluster_id=cluster_id))
    try:
        await store.create(CLAIM, own)
        return
    except ObjectExistsError:
        found = await read_claim(store)
    if found != cluster_id:
        raise ForeignClaimError(
            f"bucket {bucket} belongs to cluster {found}, and this one is {cluster_id}: give this "
            f"cluster a prefix of its own in [tiered] buckets"
        )


async def read_claim(store: ObjectStore) -> str:
    """The id of the cluster that has the prefix. Raises ObjectAbsentError if none has, StoreError
    if the claim cannot be read."""
    data = await store.get(CLAIM)
    try:
        return msgspec.json.decode(data, type=Claim).cluster_id
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StoreError(f"{CLAIM} cannot be read: {error}") from None
