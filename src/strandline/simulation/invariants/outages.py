"""Replicas in a zone that is down are not made elsewhere until an operator says so.

Why:    a hold that lets one partition through copies as much as that partition has, across regions.
How:    each broker reports every move that the balancer sets: the brokers that lose a replica, the
        brokers that the controller's log holds then, and the zones and regions of both. The
        controller may miss that a zone is down, so this counts hosts too. If enough hosts of a
        domain have no process for longer than a controller needs to see it, and nothing else
        happens meanwhile, no broker there may lose a replica, unless an operator has ruled on the
        domain. `BalancerProgress` checks that a hold ends with its outage: once all brokers are up,
        nothing may count as down.
Owns:   the brokers without a process, and the time of the last disturbance; one for each run.
Source: docs/decisions/0018-outages.md; design sections 8 and 10."""

from collections.abc import Iterator

from strandline.config.cluster import NO_LIMIT, ClusterConfig
from strandline.controller.balancer.health import own_look_ms
from strandline.controller.decision import leaving_of, maintained_of
from strandline.controller.outages.domains import domains_of, members
from strandline.controller.outages.marks import Share, configured, is_down
from strandline.controller.records import ReassignmentSet
from strandline.model.cluster import Cluster, Domain, Outage, Ruling
from strandline.model.ids import CONTROLLER_GROUP, BrokerId
from strandline.simulation.invariants.facts import (
    BalancerMoved,
    Disturbed,
    LeaderElected,
    Place,
    Subject,
)
from strandline.simulation.invariants.invariants import Invariant

SIGHT_MS = 20_000
"""So long may a controller have no judgement, beside its own patience. All brokers stop hearing the
silent ones (two election time-outs, 10 s at most); the controller collects which brokers the others
hear (3 s), looks (1 s), and finishes or gives up its earlier requests (5 s)."""
US_PER_MS = 1_000


class RepairHeldIffZoneDown(Invariant):
    """The balancer takes no replica from a silent broker whose zone or region is down, by the log
    or by its hosts, unless an operator has released it. A domain that is back is not down."""

    def __init__(self) -> None:
        self._gone: frozenset[BrokerId] = frozenset()
        self._has_other_faults = False
        self._since_us = 0
        """The last disturbance or election of a controller."""
        self._last_version = 0
        """Of the move that was reported last. Other brokers report it later, and a broker that
        starts reports all moves again."""

    def on_disturbed(self, fact: Disturbed) -> None:
        """The controller has to see everything again."""
        self._gone, self._has_other_faults, self._since_us = (
            fact.gone,
            fact.has_other_faults,
            fact.at_us,
        )

    def on_leader_elected(self, fact: LeaderElected) -> None:
        """A new controller has to look for a while."""
        if fact.group == CONTROLLER_GROUP:
            self._since_us = max(self._since_us, fact.at_us)

    def on_balancer_moved(self, fact: BalancerMoved) -> None:
        """No held broker loses a replica, voter or observer."""
        moved = sorted(fact.leaving & fact.held)
        if moved:
            raise self._away(fact, moved, "whose zone is down")
        if fact.state_version <= self._last_version:
            return
        self._last_version = fact.state_version
        lasted_us = fact.at_us - self._since_us
        if self._has_other_faults or lasted_us < (fact.patience_ms + SIGHT_MS) * US_PER_MS:
            return
        for place in fact.places:
            members, gone = place.members, place.members & self._gone
            if members - gone:  # An idle broker may be a replaced one, if others live there.
                members, gone = members - (gone & place.idle), gone - place.idle
            share = Share(len(members), len(gone))
            if place.broker in gone and is_down(share, place.marks, was_down=False):
                what = f"though of {'/'.join(place.domain)} {len(gone)} of {share.total} are gone"
                raise self._away(fact, [place.broker], f"{what} for {lasted_us // 1_000_000} s")

    def _away(self, fact: BalancerMoved, moved: list[BrokerId], why: str) -> Exception:
        text = f"group {fact.group} moves to brokers {list(fact.target)}, away from {moved}, {why}"
        return self.broken(text, Subject(fact.group))


def balancer_moved(record: ReassignmentSet, cluster: Cluster, *, at_us: int = 0) -> BalancerMoved:
    """The report of a broker that has applied a move."""
    roles = cluster.groups[record.group].roles
    leaving = frozenset(roles.all).difference(record.target, record.observers)
    config = ClusterConfig.from_values(cluster.cluster_configs)
    silent = cluster.silent_ms.keys() - leaving_of(cluster)  # An operator empties the others.
    return BalancerMoved(
        record.group,
        cluster.version,
        record.target,
        leaving=leaving,
        held=frozenset(one for one in silent if _is_held(one, cluster)),
        places=tuple(_places(leaving, cluster, config)),
        patience_ms=own_look_ms(config.broker_lost_after_ms),
        at_us=at_us,
    )


def _places(
    leaving: frozenset[BrokerId], cluster: Cluster, config: ClusterConfig
) -> Iterator[Place]:
    """Omits domains with brokers that leave or are in maintenance, domains with a ruling, and all
    if holds end by themselves."""
    inside = members({one.id: one.labels for one in cluster.brokers.values()})
    planned = leaving_of(cluster) | maintained_of(cluster)
    hosts = frozenset(one for group in cluster.groups.values() for one in group.hosts)
    if config.outage_hold_max_ms != NO_LIMIT:
        return
    for broker in sorted(leaving & cluster.brokers.keys()):
        mine = domains_of(cluster.brokers[broker].labels)
        if any(_outage_of(one, cluster).ruling for one in mine):
            continue
        for domain in mine:
            if not inside[domain] & planned:
                marks, idle = configured(config)(domain), inside[domain] - hosts
                yield Place(broker, domain, inside[domain], marks, idle)


def _is_held(broker: BrokerId, cluster: Cluster) -> bool:
    """By the log: the narrowest ruling counts, else whether any of its domains is down."""
    found = [_outage_of(one, cluster) for one in domains_of(cluster.brokers[broker].labels)]
    ruling = next((one.ruling for one in found if one.ruling), Ruling.NONE)
    if ruling:
        return ruling is Ruling.HOLD
    return any(one.is_down for one in found)


def _outage_of(domain: Domain, cluster: Cluster) -> Outage:
    return cluster.outages.get(domain, Outage())
