"""The wait of a write with acks=all: the round trip from its leader to the nearest write quorum.

How:    the leader is one of the W; of the other voters it takes the W - 1 nearest. Flushes and
        queues come on top. Writes do not wait for observers."""

import msgspec

from strandline.model.ids import BrokerId
from strandline.placement.survival.replicas import Placement
from strandline.placement.topology.round_trips import RoundTrips


class CommitLatency(msgspec.Struct, frozen=True):
    """The wait of a write when this broker leads."""

    leader: BrokerId
    region: str
    commit_ms: int | None
    """The round trip to the nearest quorum; None if one of its round trips was not measured."""
    waits_for: tuple[BrokerId, ...]
    """The voters that the quorum consists of, beside the leader, the nearest first."""


def commit_latencies(placement: Placement, trips: RoundTrips) -> tuple[CommitLatency, ...]:
    """The waits for each voter as the leader, in the order of the voters; empty if too few are
    left.

    A round trip that was not measured counts as longer than all others."""
    needed = placement.quorum.write_quorum - 1
    if len(placement.voters) <= needed:
        return ()
    found = []
    for leader in placement.voters:
        here = leader.labels.region
        ways = [
            (
                trips.between_brokers(leader.broker, one.broker, regions=(here, one.labels.region)),
                one.broker,
            )
            for one in placement.voters
            if one is not leader
        ]
        ways.sort(key=lambda way: (way[0] is None, way[0] or 0, way[1]))
        nearest = ways[:needed]
        found.append(
            CommitLatency(
                leader=leader.broker,
                region=leader.labels.region,
                commit_ms=nearest[-1][0] if nearest else 0,
                waits_for=tuple(broker for _, broker in nearest),
            )
        )
    return tuple(found)
