"""Records which bucket a bucket's name stands for.

Why:    a broker whose file, or whose mounted file systems, confuse two buckets would upload to the
        wrong one and count records as held where they are not.
How:    unknown --IdentifyBucket--> known; known --IdentifyBucket that replaces it--> another one
        A broker that finds another identity than the known one gets the known one as its answer.
Source: decision 0068."""

from strandline.controller.bucket_commands import BucketAnswer, IdentifyBucket
from strandline.controller.decision import Decision, Facts, refuse
from strandline.controller.records import BucketIdentified, ConfigsChanged
from strandline.protocol.errors import Error

CHARS_MAX = 100
"""Of a bucket's name, and of an identity."""


def decide_identify_bucket(facts: Facts, command: IdentifyBucket) -> Decision:
    """Record the identity if the bucket has none, or has the one that this one replaces."""
    bucket, wanted = command.bucket, command.id
    if not (0 < len(bucket) <= CHARS_MAX and 0 < len(wanted) <= CHARS_MAX):
        raise refuse(Error.INVALID_REQUEST, f"a name and an identity have 1 to {CHARS_MAX} letters")
    buckets = facts.state.cluster.buckets
    known = buckets.get(bucket)
    if known is not None and command.replaces != known.id:
        return Decision(BucketAnswer(known.id, known.generation))
    if known is not None and wanted == known.id:
        raise refuse(Error.INVALID_REQUEST, f"it is bucket {bucket} already: nothing to replace")
    if known is None and command.replaces:
        raise refuse(Error.INVALID_REQUEST, f"the cluster has not used a bucket {bucket} yet")
    other = next((name for name, one in buckets.items() if one.id == wanted), None)
    if other is not None:
        raise refuse(
            Error.INVALID_REQUEST,
            f"it is bucket {other}: compare [tiered] buckets of the brokers' files",
        )
    generation = 0 if known is None else known.generation + 1
    record = BucketIdentified(bucket, wanted, generation)
    return Decision(
        BucketAnswer(wanted, generation), (ConfigsChanged("cluster", "", {}, identified=record),)
    )
