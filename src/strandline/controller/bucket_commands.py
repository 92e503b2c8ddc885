"""The command that records the identity of a bucket, and its answer; see `commands`.

Source: decision 0068."""

import msgspec


class IdentifyBucket(msgspec.Struct, frozen=True, tag=True):
    """A broker has found this identity in a bucket, or an operator has: `replaces` is the identity
    of the bucket whose place it takes; empty if the cluster shall know none yet."""

    bucket: str
    id: str
    replaces: str = ""


class BucketAnswer(msgspec.Struct, frozen=True, tag=True):
    """The identity that the bucket has in the cluster now."""

    id: str
    generation: int
    error_code: int = 0
