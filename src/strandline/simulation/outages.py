"""What is down is not made anew elsewhere until a person says so.

Why:    a hold that lets one partition through copies as much as that partition has, across regions.
How:    each broker tells of every move that the balancer sets, with who loses a replica by it and
        who is held then, by the log alone. That a hold ends with its outage is `BalancerProgress`:
        once all brokers are up nothing may be taken for down.
Owns:   nothing; one for each run.
Source: docs/decisions/0018-outages.md; design sections 8 and 10."""

from strandline.controller.outages.domains import domains_of
from strandline.controller.records import ReassignmentSet
from strandline.model.cluster import Cluster, Domain, Outage, Ruling
from strandline.model.ids import BrokerId
from strandline.simulation.facts import BalancerMoved, Subject
from strandline.simulation.invariants import Invariant


class RepairHeldIffZoneDown(Invariant):
    """The balancer takes no replica from a silent broker whose zone or region is down, unless a
    person has released it; and it is down no more once it is back."""

    def on_balancer_moved(self, fact: BalancerMoved) -> None:
        """Nobody who is held loses a replica, with a vote or without."""
        moved = sorted(fact.leaving & fact.held)
        if moved:
            raise self.broken(
                f"group {fact.group} moves to brokers {list(fact.target)}, away from {moved}, "
                "whose zone is down",
                Subject(fact.group),
            )


def balancer_moved(record: ReassignmentSet, cluster: Cluster) -> BalancerMoved:
    """What a broker tells of a move, once it has applied it."""
    roles = cluster.groups[record.group].roles
    return BalancerMoved(
        record.group,
        cluster.version,
        record.target,
        leaving=frozenset(roles.all).difference(record.target, record.observers),
        held=frozenset(one for one in cluster.silent_ms if _is_held(one, cluster)),
    )


def _is_held(broker: BrokerId, cluster: Cluster) -> bool:
    """By the log: the narrowest ruling counts, else whether any of its domains is down."""
    found = [_outage_of(one, cluster) for one in domains_of(cluster.brokers[broker].labels)]
    ruling = next((one.ruling for one in found if one.ruling), Ruling.NONE)
    if ruling:
        return ruling is Ruling.HOLD
    return any(one.is_down for one in found)


def _outage_of(domain: Domain, cluster: Cluster) -> Outage:
    return cluster.outages.get(domain, Outage())
