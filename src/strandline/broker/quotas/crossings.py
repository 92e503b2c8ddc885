"""Bytes that cross regions on a client's behalf.

Why:    traffic between regions is dear and narrow: one client may not take all of it.
How:    a produce request counts the bytes of each partition once for each other region that has a
        replica of it, and once more if the client is in another region than the broker. An answer
        to a fetch counts if the client is in another region.
            A client is in the region of its address (`client.networks`). Without one there, a
        consumer is in the region that its `client.rack` names, and a producer in none. A region
        that is not known is not another one.
Owns:   nothing.
Source: decision 0070; decision 0014 (regions of clients)."""

from strandline.broker.context import RequestContext, Services
from strandline.protocol.messages.fetch import FetchRequest
from strandline.protocol.messages.produce import ProduceRequest


def note_crossings(context: RequestContext, request: ProduceRequest) -> None:
    """A produce request was taken in: count the bytes that cross regions for it."""
    limits = context.limits
    if limits is None or limits.remote is None:
        return
    services = context.services
    cluster, own = services.cluster, _own_region(services)
    is_remote = _is_other(services.writers.region_of(context.client_host), own)
    total = 0
    for topic in request.topic_data:
        name = topic.name or cluster.topic_names.get(topic.topic_id, "")
        known = cluster.topics.get(name)
        for data in topic.partition_data:
            if known is None or not 0 <= data.index < len(known.partitions):
                continue
            replicas = known.partitions[data.index].replicas
            regions = {
                cluster.brokers[one].labels.region for one in replicas if one in cluster.brokers
            }
            crossed = sum(_is_other(region, own) for region in regions)
            total += (crossed + is_remote) * (0 if data.records is None else len(data.records))
    limits.note_crossed(context, total)


def judge_fetch(context: RequestContext, request: FetchRequest) -> None:
    """Before a fetch is answered: see whether its answer crosses regions, and whether it may."""
    limits = context.limits
    if limits is None or limits.remote is None:
        return
    services = context.services
    region = services.writers.region_of(context.client_host)
    if not region and any(
        one.labels.region == request.rack_id for one in services.cluster.brokers.values()
    ):
        region = request.rack_id
    context.is_remote = _is_other(region, _own_region(services))
    if context.is_remote:
        limits.note_crossed(context, 0)


def _own_region(services: Services) -> str:
    own = services.cluster.brokers.get(services.broker_id)
    return "" if own is None else own.labels.region


def _is_other(region: str, own: str) -> bool:
    return bool(region and own) and region != own
