"""Which brokers new partitions get: chosen by placement, or given by the client and checked.

Source: Kafka's `ReplicationControlManager` (rules for manual assignments); design section 7."""

from collections.abc import Sequence

from strandline.controller.decision import Draft, Facts, refuse
from strandline.model.ids import BrokerId
from strandline.placement.spread import Replicas, place
from strandline.protocol.errors import Error

PARTITIONS_PER_TOPIC_MAX = 10_000


def choose(
    facts: Facts, draft: Draft, *, partitions: int, replication_factor: int
) -> list[Replicas]:
    """Place new partitions; raises ApiError. Brokers that are down come last.

    A replica on a broker that is down catches up when it returns; but a majority of each partition
    must be up from the beginning, or it could not take its first record."""
    check_partition_count(partitions)
    draft.require_room(partitions)
    placed = place(
        facts.staying,
        partitions=partitions,
        replication_factor=replication_factor,
        rng=facts.rng,
        load=draft.load,
        avoid=facts.maintained.union(facts.down),
    )
    staying = [one.id for one in facts.staying]
    up = sum(one not in facts.down for one in staying)
    majority = replication_factor // 2 + 1
    if up < majority:
        raise refuse(
            Error.INVALID_REPLICATION_FACTOR,
            f"replication factor {replication_factor} needs {majority} brokers that are up, but "
            f"{up} of {len(staying)} are: wait for brokers to return, or ask for less",
        )
    return placed


def check_partition_count(partitions: int) -> None:
    """Refuse an impossible number of partitions; raises ApiError INVALID_PARTITIONS."""
    if partitions < 1:
        raise refuse(Error.INVALID_PARTITIONS, f"{partitions} partitions: ask for at least 1")
    if partitions > PARTITIONS_PER_TOPIC_MAX:
        raise refuse(
            Error.INVALID_PARTITIONS,
            f"{partitions} partitions are more than a topic may have: {PARTITIONS_PER_TOPIC_MAX}",
        )


def check_manual(
    facts: Facts, assignments: Sequence[Sequence[BrokerId]], *, replication_factor: int | None
) -> list[Replicas]:
    """Check the replicas that a client chose for partitions; raises ApiError.

    All partitions of a topic have the same number of replicas: `replication_factor` where the
    topic exists."""
    for replicas in assignments:
        check_replicas(facts, replicas)
        if replication_factor is not None and len(replicas) != replication_factor:
            raise refuse(
                Error.INVALID_REPLICA_ASSIGNMENT,
                f"The manual partition assignment includes a partition with {len(replicas)} "
                f"replica(s), but the other partitions have {replication_factor}",
            )
        replication_factor = len(replicas)
    return [tuple(replicas) for replicas in assignments]


def check_replicas(facts: Facts, replicas: Sequence[BrokerId]) -> None:
    """Check the brokers that a client chose for one partition; raises ApiError."""
    what = ""
    if not replicas:
        what = "an empty replica list"
    for position, broker in enumerate(replicas):
        if broker not in facts.state.cluster.brokers:
            what = f"broker {broker}, but no such broker is registered"
        elif broker in facts.leaving:
            what = f"broker {broker}, which is being decommissioned"
        elif broker in replicas[:position]:
            what = f"broker {broker} more than once"
    if what:
        raise refuse(
            Error.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment includes {what}"
        )
