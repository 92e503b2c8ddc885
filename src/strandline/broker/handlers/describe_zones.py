"""DescribeZones: zones and regions that are down, and brokers whose repair is held.

How:    Only the controller knows; other brokers answer NOT_CONTROLLER.
Source: decision 0018."""

from strandline.base.errors import ApiError
from strandline.broker.context import RequestContext, Services
from strandline.controller.outages.domains import is_region, short_name, vantage_name
from strandline.controller.outages.judging import DomainView, Judgement
from strandline.model.cluster import Cluster, Domain, Outage
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_zones import (
    DescribedZone,
    DescribeZonesRequest,
    DescribeZonesResponse,
    SeenBroker,
    ZoneHappening,
)


async def handle(_: DescribeZonesRequest, context: RequestContext) -> DescribeZonesResponse:
    """Describe the last judgement."""
    return describe(context.services)


def describe(services: Services) -> DescribeZonesResponse:
    """The last judgement; raises ApiError on a broker that is not the controller."""
    if services.balancing.findings is None:
        raise ApiError(Error.NOT_CONTROLLER, "this broker is not the controller")
    outages, now = services.balancing.outages, services.clock.monotonic_ms()
    found = outages.judgement
    known = found.domains
    return DescribeZonesResponse(
        zones=[_zone(domain, view, found, services.cluster, now) for domain, view in known.items()],
        happenings=[
            ZoneHappening(one.kind, one.subject, one.text, now - one.since_ms)
            for one in (
                *found.happenings,
                *outages.voting.happenings,
                *outages.fault_happenings,
            )
        ],
        brokers=[
            SeenBroker(
                broker,
                seen.verdict.value,
                [vantage_name(one, known) for one in seen.hearing],
                [vantage_name(one, known) for one in seen.deaf],
            )
            for broker, seen in sorted(found.seen.items())
        ],
        is_unsettled=not found.is_settled,
    )


def _zone(
    domain: Domain, view: DomainView, found: Judgement, cluster: Cluster, now_ms: int
) -> DescribedZone:
    waiting = 0
    if view.silent:  # This looks at all groups, so not for zones without silent brokers.
        waiting = sum(not view.silent.isdisjoint(one.hosts) for one in cluster.groups.values())
    # A ruling holds from when it is in the log, not from the next look.
    outage = cluster.outages.get(domain, Outage())
    return DescribedZone(
        region=domain[0],
        zone="" if is_region(domain) else domain[-1],
        name=short_name(domain, found.domains),
        is_down=view.is_down,
        is_held=view.is_held,
        down_ms=-1 if view.since_ms is None else now_ms - view.since_ms,
        ruling=outage.ruling,
        ruling_until_ms=outage.until_ms,
        brokers=sorted(view.brokers),
        silent=sorted(view.silent),
        planned=sorted(view.planned),
        waiting_count=waiting,
        low_percent=view.marks.low_percent,
        high_percent=view.marks.back_percent,
    )
