"""IdentifyBucket: which bucket a bucket's name stands for; an operator puts another in its place.

Source: decision 0068."""

from strandline.base.errors import ApiError
from strandline.broker.context import RequestContext, Services
from strandline.controller.bucket_commands import BucketAnswer, IdentifyBucket
from strandline.protocol.errors import Error
from strandline.protocol.messages.identify_bucket import (
    IdentifyBucketRequest,
    IdentifyBucketResponse,
)
from strandline.replication.wire import Ability


async def handle(request: IdentifyBucketRequest, context: RequestContext) -> IdentifyBucketResponse:
    """Record the identity, or tell the known one; raises ApiError with the reason if that is
    refused."""
    services = context.services
    cluster = services.cluster
    if not request.bucket_id:
        if not services.controller.knows_everything:
            raise ApiError(Error.NOT_CONTROLLER, "another broker is the controller")
        known = cluster.buckets.get(request.bucket)
        if known is None:
            return IdentifyBucketResponse(cluster_id=cluster.cluster_id)
        return IdentifyBucketResponse(
            cluster_id=cluster.cluster_id, bucket_id=known.id, generation=known.generation
        )
    _require_releases(services)
    command = IdentifyBucket(request.bucket, request.bucket_id, request.replaced_id)
    answer = await services.obtain(command, BucketAnswer)
    return IdentifyBucketResponse(
        cluster_id=cluster.cluster_id, bucket_id=answer.id, generation=answer.generation
    )


def _require_releases(services: Services) -> None:
    """Every broker must read the markers by which partitions begin anew. Raises ApiError."""
    contacts = services.replication.contacts
    earlier = sorted(
        one
        for one in services.cluster.brokers
        if one != services.broker_id and contacts.cannot_do(one, Ability.BUCKET_IDENTITIES)
    )
    if earlier:
        raise ApiError(
            Error.POLICY_VIOLATION,
            f"the release of broker {', '.join(map(str, earlier))} cannot replace buckets; upgrade "
            "it first",
        )
