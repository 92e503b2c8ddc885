"""Puts another bucket in the place of one, for `strandline tiered replace`.

Source: decision 0068."""

import random
from typing import NamedTuple

from strandline.base.errors import OperatorError
from strandline.base.json_value import Json
from strandline.client.cluster import Client
from strandline.client.operations.buckets import OnlyThere, identify_bucket, only_in_bucket
from strandline.client.operations.tier import tier_status
from strandline.tiered.objects.claim import claim_bucket
from strandline.tiered.objects.identity import give_identity
from strandline.tiered.objects.store import ObjectStore, StoreError

SHOWN_COUNT_MAX = 10


class Replaced(NamedTuple):
    """What was done. `given_up`: records that only the old bucket had."""

    bucket: str
    old_id: str
    new_id: str
    given_up: list[OnlyThere]


async def replace_bucket(
    client: Client, bucket: str, store: ObjectStore, *, accepts_loss: bool
) -> Replaced:
    """Have the cluster use this store as the bucket of this name. Raises OperatorError."""
    known = identify_bucket(client, bucket)
    if not known.bucket_id:
        raise OperatorError(
            f"the cluster has not used bucket {bucket} yet: there is nothing to replace. Brokers "
            "claim a bucket once a topic has tiered storage"
        )
    status = tier_status(client)
    given_up = only_in_bucket(status.partitions, bucket)
    if not accepts_loss and (given_up or status.missing):
        raise OperatorError(_objection(bucket, given_up, status.missing))
    try:
        await claim_bucket(store, bucket=bucket, cluster_id=known.cluster_id)
        found = await give_identity(store, bucket=bucket, rng=random.SystemRandom())
    except StoreError as error:
        raise OperatorError(f"{error}; nothing has changed") from None
    if found == known.bucket_id:
        raise OperatorError(f"it is the bucket that the cluster uses as {bucket} already")
    answer = identify_bucket(client, bucket, found, known.bucket_id)
    if answer.bucket_id != found:
        raise OperatorError(f"bucket {bucket} was replaced by another command meanwhile")
    return Replaced(bucket, known.bucket_id, found, given_up)


def _objection(bucket: str, given_up: list[OnlyThere], missing: list[str]) -> str:
    listed = [
        *(f"{one.topic}-{one.partition} {one.start}..{one.end}" for one in given_up),
        *missing,
    ]
    more = len(listed) - SHOWN_COUNT_MAX
    shown = "; ".join(listed[:SHOWN_COUNT_MAX]) + (f"; and {more} more" if more > 0 else "")
    return (
        f"records are in the present bucket {bucket} alone, or that is not known: {shown}. "
        "Bring that bucket back; to give these records up: --accept-loss"
    )


def replaced_json(found: Replaced) -> Json:
    """What was done."""
    return {
        "bucket": found.bucket,
        "old_id": found.old_id,
        "new_id": found.new_id,
        "given_up": [one._asdict() for one in found.given_up],
    }
