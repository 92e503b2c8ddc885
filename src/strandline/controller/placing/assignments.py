"""The brokers of new partitions: chosen by placement, or given by the client and checked.

Source: Kafka's `ReplicationControlManager` (rules for manual assignments); design section 7."""

from collections.abc import Sequence

from strandline.controller.decision import Draft, Facts, refuse
from strandline.model.cluster import Roles
from strandline.model.ids import BrokerId
from strandline.placement.spread import place
from strandline.protocol.errors import Error

PARTITIONS_PER_TOPIC_MAX = 10_000


def choose(facts: Facts, draft: Draft, *, partitions: int, replication_factor: int) -> list[Roles]:
    """Place new partitions, without observers; raises ApiError. Brokers that are down come last,
    those whose disks are nearly full before them, and full ones not at all.

    A replica on a broker that is down catches up when it returns; but a majority of each partition
    must be up from the beginning, or it could not take its first record."""
    check_partition_count(partitions)
    draft.require_room(partitions)
    able = [one for one in facts.staying if one.id not in facts.full]
    if len(able) < replication_factor <= len(facts.staying):
        raise refuse(
            Error.INVALID_REPLICATION_FACTOR,
            f"replication factor {replication_factor} needs as many brokers with room, but "
            f"{full_disks(facts)}: make room, or ask for at most {len(able)}",
        )
    placed = place(
        able,
        partitions=partitions,
        replication_factor=replication_factor,
        rng=facts.rng,
        load=draft.load,
        avoid=facts.maintained.union(facts.down),
        nearly_full=facts.nearly_full,
    )
    up = sum(one.id not in facts.down for one in able)
    majority = replication_factor // 2 + 1
    if up < majority:
        raise refuse(
            Error.INVALID_REPLICATION_FACTOR,
            f"replication factor {replication_factor} needs {majority} brokers that are up, but "
            f"{up} of {len(able)} are: wait for brokers to return, or ask for less",
        )
    return [Roles(one) for one in placed]


def full_disks(facts: Facts) -> str:
    """The text about brokers with disks too full for new partitions."""
    full = sorted(facts.full.intersection(one.id for one in facts.staying))
    which = f"disk of broker {full[0]} is" if len(full) == 1 else "disks of brokers "
    if len(full) > 1:
        which += f"{', '.join(map(str, full))} are"
    percent = facts.config.placement_disk_full_percent
    return f"the {which} {percent} % full or fuller (placement.disk.full.percent)"


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
) -> list[Roles]:
    """Check the replicas that a client chose for partitions: all are voters; raises ApiError.

    All partitions of a topic have the same number of replicas: `replication_factor` if the
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
    return [Roles(tuple(replicas)) for replicas in assignments]


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
