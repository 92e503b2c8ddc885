"""Remembers where partitions were before a decommission, until it ends or is cancelled. Pure.

Why:    a cancelled decommission leaves replicas, and preferred leaders, where it happened to move
        them; the operator wants back what was.
How:    The first move by which the balancer takes a partition off a leaving broker notes where it
        was (`Cluster.displaced`). A cancel hands that to the balancer (`Cluster.returning`), which
        moves it back (`balancer.undo`). Any later decision about the partition forgets it. All of
        it follows from records that every release writes.
Owns:   both dictionaries.
Source: decision 0011."""

from collections.abc import Mapping

from strandline.config.broker_life import DECOMMISSION
from strandline.controller.records import ReassignmentSet
from strandline.model.cluster import Cluster, Roles
from strandline.model.ids import BrokerId, GroupId

IS_ON = "true"


def note_move(cluster: Cluster, record: ReassignmentSet) -> None:
    """A target is set, or given up; `cluster` is as it was before."""
    if not record.target:
        return
    cluster.returning.pop(record.group, None)
    if not record.by_balancer:
        cluster.displaced.pop(record.group, None)
        return
    roles = cluster.groups[record.group].roles
    kept = {*record.target, *record.observers}
    if any(_leaves(cluster, one) and one not in kept for one in roles.all):
        cluster.displaced.setdefault(record.group, roles)


def note_configs(cluster: Cluster, broker: BrokerId, values: Mapping[str, str | None]) -> None:
    """Keys of a broker have changed; `cluster` is as it is after that."""
    if DECOMMISSION not in values:
        return
    if _leaves(cluster, broker):
        _hand(cluster.returning, cluster.displaced, broker)
        return
    _hand(cluster.displaced, cluster.returning, broker)
    for group, home in list(cluster.returning.items()):
        partition = cluster.groups[group]
        if any(_leaves(cluster, one) for one in home.all):
            cluster.displaced[group] = cluster.returning.pop(group)
        elif partition.roles == home and not partition.pending:
            del cluster.returning[group]


def note_deleted(cluster: Cluster, group: GroupId) -> None:
    """A partition is gone."""
    cluster.displaced.pop(group, None)
    cluster.returning.pop(group, None)


def note_unregistered(cluster: Cluster, broker: BrokerId) -> None:
    """A broker is gone: nothing returns to it."""
    for known in (cluster.displaced, cluster.returning):
        for group, home in list(known.items()):
            if broker in home.all:
                del known[group]


def _hand(source: dict[GroupId, Roles], target: dict[GroupId, Roles], broker: BrokerId) -> None:
    for group, home in list(source.items()):
        if broker in home.all:
            target[group] = source.pop(group)


def _leaves(cluster: Cluster, broker: BrokerId) -> bool:
    return cluster.broker_configs.get(broker, {}).get(DECOMMISSION) == IS_ON
