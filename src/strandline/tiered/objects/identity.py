"""Which bucket this is: an id that it gets once.

Why:    two URLs that are exchanged, a mount point without its file system and a bucket that was
        made anew under its old name all answer like the right bucket.
How:    `identity.json` is created if absent, with a random id. It never changes. The cluster's
        controller keeps the id of each bucket's name.
Source: decision 0068."""

import msgspec

from strandline.base.rng import Rng
from strandline.tiered.objects.store import ObjectExistsError, ObjectStore, StoreError

IDENTITY = "identity.json"
FORMAT = 1


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What `identity.json` says. `bucket`: the name by which it was first used, for people."""

    format: int
    bucket_id: str
    bucket: str


async def read_identity(store: ObjectStore) -> str:
    """The bucket's id. Raises ObjectAbsentError if it has none, StoreError if it cannot be read."""
    data = await store.get(IDENTITY)
    try:
        return msgspec.json.decode(data, type=Identity).bucket_id
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StoreError(f"{IDENTITY} cannot be read: {error}") from None


async def give_identity(store: ObjectStore, *, bucket: str, rng: Rng) -> str:
    """The bucket's id; it gets one if it has none. Raises StoreError."""
    own = Identity(format=FORMAT, bucket_id=f"{rng.getrandbits(128):032x}", bucket=bucket)
    try:
        await store.create(IDENTITY, msgspec.json.encode(own))
    except ObjectExistsError:
        return await read_identity(store)
    return own.bucket_id
