"""Why moves that have begun do not proceed: codes of `reasons.WAITS`, with their numbers. Pure.

Why:    otherwise "8 of them moving away" shows for an hour, and hides that copies are halted or
        that the new broker is down.
How:    For each partition that moves: a broker that gets or was granted a replica is down; else its
        last leader is down; else, while nothing is granted yet, a key of 0 halts copies to it.
Owns:   nothing.
Source: decisions 0009, 0010 ("Budget") and 0011."""

from collections.abc import Callable, Collection, Iterator, Mapping

from strandline.config.broker_life import SENT_RATE, TAKEN_RATE
from strandline.controller.balancer.reasons import Wait, Waits
from strandline.model.cluster import Cluster, Partition
from strandline.model.ids import NO_BROKER, BrokerId

MOVES = "moves.bytes.per.s"
MOVES_FAR = "moves.cross.region.bytes.per.s"
_NOTHING = "0"


def stalls(
    cluster: Cluster,
    *,
    up: Collection[BrokerId],
    leader_of: Callable[[Partition], BrokerId],
    leaving: Collection[BrokerId],
) -> Waits:
    """The moves that cannot continue. `leader_of`: as far as known, up or not; `leaving`: brokers
    in decommissioning."""
    found = Waits()
    moving = (cluster.groups[group] for group in cluster.moving)
    for one in sorted(moving, key=lambda each: (each.topic, each.index)):
        why = _stall(cluster, one, up, leader_of(one))
        if why is not None:
            found.add(*why, one.name, [each for each in one.removing if each in leaving])
    return found


def _stall(
    cluster: Cluster, one: Partition, up: Collection[BrokerId], leader: BrokerId
) -> Wait | None:
    coming = [each for each in one.hosts if each not in one.roles.all]
    down = [each for each in coming if each not in up]
    if down:
        noun = "broker" if len(down) == 1 else "brokers"
        verb, gets = ("is", "gets") if len(down) == 1 else ("are", "get")
        text = ", ".join(map(str, sorted(down)))
        return "new-replica-down", f"{noun} {text}, which {gets} a replica, {verb} down"
    if leader not in up:
        text = "no leader" if leader == NO_BROKER else f"broker {leader}, which led, is down"
        return "leader-down", text
    if coming and not one.pending:  # A replica with a granted vote has copied all.
        halted = next(_halted(cluster, leader, coming), None)
        if halted is not None:
            return "copies-halted", f"copies are halted ({halted})"
    return None


def _halted(cluster: Cluster, leader: BrokerId, coming: Collection[BrokerId]) -> Iterator[str]:
    """The keys that are 0 and that one of these copies counts for."""
    if cluster.cluster_configs.get(MOVES) == _NOTHING:
        yield f"{MOVES}=0"
    region = cluster.brokers[leader].labels.region
    is_far = any(cluster.brokers[each].labels.region != region for each in coming)
    if is_far and cluster.cluster_configs.get(MOVES_FAR) == _NOTHING:
        yield f"{MOVES_FAR}=0"
    for key, brokers in ((SENT_RATE, (leader,)), (TAKEN_RATE, coming)):
        for each in brokers:
            values: Mapping[str, str] = cluster.broker_configs.get(each, {})
            if values.get(key, cluster.cluster_configs.get(key)) == _NOTHING:
                yield f"{key}=0 of broker {each}"
