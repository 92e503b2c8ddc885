"""How long a follower waits before it stands for election.

Why:    voters that stand at the same moment split the vote. The preferred leader stands first, the
        others one after the other.
How:    election timeout + a random part of the replica's share of the spread + the round trip to
        the leader. Damaged replicas, and those whose broker is about to go down, stand last.
Owns:   nothing.
Source: Raft 5.2 (randomized timeouts); design section 5."""

import random

from strandline.replication.replica.state import ReplicaState
from strandline.replication.settings import ReplicationSettings

ELECTION_MS = 50
"""The time of an election beside its round trips: it writes state twice."""
ELECTION_ROUND_TRIPS = 2
FRESH_RETRY_MS = 60
NOT_PREFERRED_SHARE = 0.4
DAMAGED_TURNS = 3
"""A replica with a damaged log stands this many election time-outs later."""


def draw_ms(
    replica: ReplicaState,
    settings: ReplicationSettings,
    rng: random.Random,
    *,
    slowest_rtt_ms: int,
    leader_rtt_ms: int,
) -> int:
    """The election time-out of a replica."""
    spread = max(settings.election_spread_ms, int(2 * slowest_rtt_ms))
    part = int(spread * NOT_PREFERRED_SHARE)
    if replica.is_preferred:
        extra = rng.randrange(part + 1)
    else:
        others = (one for one in replica.configuration.voters if one != replica.leader_id)
        turn, turns = replica.election_priority.turn(replica.self_id, others)
        share = (spread - part) // turns
        extra = part + turn * share + rng.randrange(share + 1)
    # The other voters stand first: they have what is missing here, or stay when this broker
    # leaves.
    if replica.is_damaged or replica.is_spared:
        extra += DAMAGED_TURNS * settings.election_timeout_ms
    return settings.election_timeout_ms + extra + leader_rtt_ms


def turn_ms(replica: ReplicaState, settings: ReplicationSettings, step_ms: int) -> int:
    """The election time-out of a replica whose leader has hung up: voters stand `step_ms` apart, by
    election priority, spared ones last."""
    others = [one for one in replica.configuration.voters if one != replica.leader_id]
    others.sort(key=replica.election_priority.order)
    turn = others.index(replica.self_id) if replica.self_id in others else len(others)
    if replica.is_spared:
        turn += len(others)
    return settings.election_timeout_ms + turn * step_ms


def draw_pause_ms(
    replica: ReplicaState,
    settings: ReplicationSettings,
    rng: random.Random,
    *,
    slowest_rtt_ms: int,
) -> int:
    """For how long a replica leaves an election time before it stands for another one."""
    if replica.is_fresh and replica.is_preferred:
        delay_ms = FRESH_RETRY_MS + rng.randrange(FRESH_RETRY_MS)
    else:
        delay_ms = ELECTION_MS + rng.randrange(settings.election_spread_ms + 1)
    round_trips = ELECTION_ROUND_TRIPS * (1 + rng.random())
    return delay_ms + int(round_trips * slowest_rtt_ms)
