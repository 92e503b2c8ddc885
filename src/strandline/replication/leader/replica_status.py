"""How far each replica of a partition is, as its leader knows it.

Why:    Metadata names the replicas in sync. Operators ask how far the others are, and for how long
        they have lagged.
How:    only what a replica acknowledged as flushed in this leader's epoch counts.
        - A replica was last caught up when the first entry that it lacks was appended. If its
          broker is silent, it was so no later than it was last heard.
        - The leader does not know when an earlier leader's entries were appended. A replica that
          lacks one has not been caught up in this epoch, and its lag is unknown.
        - The configuration in force says which replicas vote.
        - An observer is one by placement, or a member that has no place yet. A voter that is lost
          for a while is no observer.
Source: reference observers 4.4 (the fields of kafka-replica-status)."""

from dataclasses import dataclass

from strandline.model.ids import BrokerId, Index, Offset
from strandline.replication.replica.replica import Replica

UNKNOWN = -1
STALLED_MS_MIN = 5_000
"""A shorter `replica.lag.time.max.ms` costs no leader its lead: a partition has few grants."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How many replicas a partition has, as its leader knows them. `observers_in_sync`: those that
    were promoted."""

    replicas: int
    observers: int
    in_sync: int
    caught_up: int
    observers_in_sync: int


@dataclass(frozen=True, slots=True)
class Standing:
    """One replica; -1 where the leader does not know.

    `is_isr_eligible`: it may be in sync: it votes, or is one of placement's voters, which may vote
    again by itself. `is_caught_up`: it keeps up, voter or not. `caught_up_lag_ms`:
    since when it lacks something. `heard_lag_ms`: since its broker was last heard.
    `log_start_offset`: known of the leader only. `log_end_offset`: up to there its log is flushed;
    of the leader: written."""

    broker: BrokerId
    is_leader: bool
    is_observer: bool
    is_isr_eligible: bool
    is_in_isr: bool
    is_caught_up: bool
    caught_up_lag_ms: int
    heard_lag_ms: int
    log_start_offset: int
    log_end_offset: int


def standings(replica: Replica) -> list[Standing]:
    """Every member of a leader's group: the voters as they are ordered, then the observers."""
    leadership = replica.leadership
    assert leadership is not None
    configuration = replica.configuration
    in_sync = replica.in_sync()
    voters = configuration.all_voters
    observers = {one for one in configuration.members if _is_observer(replica, one, voters)}
    return [
        Standing(
            broker=broker,
            is_leader=broker == replica.self_id,
            is_observer=broker in observers,
            is_isr_eligible=broker in voters or broker not in observers,
            is_in_isr=broker in in_sync,
            is_caught_up=replica.may_count(broker),
            caught_up_lag_ms=_caught_up_lag_ms(replica, broker),
            heard_lag_ms=_heard_lag_ms(replica, broker),
            log_start_offset=(
                replica.log_start_offset if broker == replica.self_id else Offset(UNKNOWN)
            ),
            log_end_offset=_log_end(replica, broker),
        )
        for broker in configuration.members
    ]


def counts(replica: Replica) -> Counts:
    """The sums of `standings`, for reports on thousands of partitions."""
    configuration = replica.configuration
    voters, members = configuration.all_voters, configuration.members
    in_sync, observers = replica.in_sync(), replica.placed.observers
    return Counts(
        replicas=len(members),
        observers=sum(_is_observer(replica, one, voters) for one in members)
        if observers or len(members) > len(voters)
        else 0,
        in_sync=len(in_sync),
        caught_up=sum(map(replica.may_count, members)),
        observers_in_sync=sum(one in observers for one in in_sync) if observers else 0,
    )


def _is_observer(replica: Replica, broker: BrokerId, voters: tuple[BrokerId, ...]) -> bool:
    placed = replica.placed
    return broker in placed.observers or (broker not in voters and broker not in placed.voters)


def lag_of(replica: Replica, broker: BrokerId) -> tuple[int, int]:
    """(how many records of the leader's `broker` has not acknowledged as flushed, since when it
    lacks something); -1 where the leader does not know."""
    end = _log_end(replica, broker)
    count = UNKNOWN if end == UNKNOWN else replica.log.end_offset - end
    return count, _caught_up_lag_ms(replica, broker)


def stalled_by(replica: Replica) -> tuple[BrokerId, ...]:
    """For a leader that commits nothing for `lag_limit_ms`, though its voters are heard: those that
    lack something for so long, where those that keep up are no majority; it may be one of them,
    for its own disk. Nobody else."""
    leadership = replica.leadership
    limit_ms = _stalled_ms(replica)
    if leadership is None or not limit_ms:
        return ()
    voters, ready = replica.configuration.all_voters, _ready(replica)
    if replica.configuration.wins_election(ready):
        return ()
    is_alive, lacks_ms = replica.shared.contacts.is_peer_alive, leadership.followers.lacks_ms
    return tuple(
        one
        for one in voters
        if one not in ready
        and (one == replica.self_id or (is_alive(one) and lacks_ms(one) >= limit_ms))
    )


def should_give_way(replica: Replica) -> bool:
    """Whether a leader commits nothing for so long because its own disk takes nothing, and those
    that keep up could elect another one, which can have it leave."""
    if not _stalled_ms(replica):
        return False
    ready = _ready(replica)
    return replica.self_id not in ready and replica.configuration.wins_election(ready)


def _stalled_ms(replica: Replica) -> float:
    """For how long at least a leader has committed nothing, though it has something to commit; 0
    where that is no matter yet."""
    leadership, raft = replica.leadership, replica.raft
    if leadership is None or raft.commit >= replica.log.last_index:
        return 0
    limit_ms = max(replica.lag_limit_ms, STALLED_MS_MIN * replica.shared.settings.patience_ratio)
    return limit_ms if leadership.followers.age_ms(Index(raft.commit + 1)) >= limit_ms else 0


def _ready(replica: Replica) -> list[BrokerId]:
    """The voters that keep up, of a leader that has committed nothing for long. It is one itself
    but where what waits for a commit waits for its own disk, too."""
    hangs = replica.log.flushed_index <= replica.raft.commit
    return [
        one
        for one in replica.configuration.all_voters
        if replica.may_count(one) and not (hangs and one == replica.self_id)
    ]


def leading_ms(replica: Replica) -> int:
    """For how long a leader leads."""
    return replica.shared.clock.monotonic_ms() - replica.leading_since_ms


def _flushed(replica: Replica, broker: BrokerId) -> Index:
    """Up to where a follower has acknowledged the log in this epoch; -1: nothing yet."""
    progress = replica.raft.progress.get(broker)
    return Index(-1) if progress is None else progress.match_flushed


def _heard_lag_ms(replica: Replica, broker: BrokerId) -> int:
    if broker == replica.self_id:
        return 0
    lag = replica.shared.contacts.silence_ms(broker)
    return UNKNOWN if lag is None else lag


def _caught_up_lag_ms(replica: Replica, broker: BrokerId) -> int:
    if broker == replica.self_id:
        return 0
    flushed = _flushed(replica, broker)
    silence = 0 if replica.shared.contacts.is_peer_alive(broker) else _heard_lag_ms(replica, broker)
    if flushed < 0 or silence < 0:
        return UNKNOWN
    if flushed >= replica.log.last_index:
        return silence
    assert replica.leadership is not None
    since = replica.leadership.append_times.of(Index(flushed + 1))
    if since is None:
        return UNKNOWN
    return max(replica.shared.clock.monotonic_ms() - since, silence)


def _log_end(replica: Replica, broker: BrokerId) -> Offset:
    log = replica.log
    if broker == replica.self_id:
        return log.end_offset
    flushed = _flushed(replica, broker)
    if flushed < 0:
        return Offset(UNKNOWN)
    return log.end_offset if flushed >= log.last_index else log.offset_of(Index(flushed + 1))
