"""Decides which brokers vote in the controller's group: a broker that leaves gives its vote away.

Why:    a seed that is decommissioned would keep its vote, and could never leave for good.
How:    the leader of the group looks, whenever its members are due. One voter comes and one goes by
        one joint configuration:

            observer --caught up, flushed the configuration--> candidate
            a voter leaves, and there is a candidate --joint, then final--> the candidate votes

        The leaving voter stays an observer until it is unregistered. A vote that has moved stays
        where it is if the decommission is cancelled. No vote is given up without another broker
        for it.
            Empty brokers of which each is on the others' list of seeds found a cluster. So at least
        one seed of the list keeps its vote and answers for this one, until the list names another
        voter. The only voter keeps its vote in any case: it has no other seed to ask.
            A candidate runs a release that opens this group, without a state of its own, as after
        the loss of a disk: otherwise a new voter that loses its disk would vote.
Owns:   nothing.
Source: KIP-853; Raft thesis 4.2.1 and 4.3; decision 0048."""

from collections import Counter
from collections.abc import Collection

from strandline.controller.decision import leaving_of, maintained_of
from strandline.model.cluster import Cluster
from strandline.model.ids import BrokerId
from strandline.placement.topology.universe import domain_of
from strandline.replication.replica.replica import Replica
from strandline.replication.wire import Ability

HOST = "host"
VOTERS_MIN = 2
"""Of a group with fewer voters, none moves."""


def wanted_voters(
    replica: Replica, cluster: Cluster, seeds: Collection[BrokerId]
) -> tuple[BrokerId, ...]:
    """The voters that the leader of the controller's group should bring about next; the present
    ones if nothing is to be done, or nothing can be. `seeds`: the list in this broker's file."""
    present = replica.configuration.voters
    leaving = leaving_of(cluster)
    going = [one for one in present if one in leaving]
    if not going or len(present) < VOTERS_MIN:
        return present
    # The leader goes last: then it moves the other votes itself.
    for out in sorted(going, key=lambda one: (one == replica.self_id, one)):
        stays = [one for one in present if one != out]
        into = _candidate(replica, cluster, out, stays)
        if into is not None and not {*stays, into}.isdisjoint(seeds):
            return tuple(sorted((*stays, into)))
    return present


def waits_for_voter(replica: Replica, cluster: Cluster) -> bool:
    """Whether a voter leaves, and its vote is to be moved once that is possible."""
    voters = replica.configuration.voters
    return len(voters) >= VOTERS_MIN and not leaving_of(cluster).isdisjoint(voters)


def _candidate(
    replica: Replica, cluster: Cluster, out: BrokerId, stays: list[BrokerId]
) -> BrokerId | None:
    """The broker for the vote of `out`: of its region if possible, else of the region with the
    fewest voters; of several one whose machine has the fewest votes, then the lowest id."""
    regions = {one.id: one.labels.region for one in cluster.brokers.values()}
    votes = Counter(regions.get(one, "") for one in stays)
    hosts = {one.id: domain_of(one.labels, HOST) for one in cluster.brokers.values()}
    on_host = Counter(hosts[one] for one in stays if one in hosts and hosts[one][-1])
    barred = leaving_of(cluster) | maintained_of(cluster) | set(stays) | {out}
    can_do = replica.shared.contacts.can_do
    found = [
        one
        for one in sorted(cluster.brokers)
        if one not in barred
        and one in replica.configuration.observers
        and can_do(one, Ability.CONTROLLER_VOTES)
        and replica.is_ready_to_vote(one)
    ]
    own = regions.get(out, "")

    def rank(one: BrokerId) -> tuple[bool, int, int, BrokerId]:
        is_away = regions[one] != own
        return is_away, votes[regions[one]], on_host[hosts[one]], one

    return min(found, key=rank, default=None)
