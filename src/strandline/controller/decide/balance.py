"""Records the replicas that the balancer wants, each partition for itself.

Why:    after the balancer looked, an operator may have moved the partition, changed its policy,
        paused the balancer or granted other voters. Or a zone has gone down, and the repair of its
        replicas must wait.
How:    compare and set. A move that no longer fits is left out, and the next round looks again.
Source: decision 0010."""

from strandline.controller.commands import BalancedReplicas, BalanceNoted, BalanceReplicas
from strandline.controller.decision import Decision, Facts
from strandline.controller.records import ReassignmentSet
from strandline.model.cluster import Roles


def decide_balance_replicas(facts: Facts, command: BalanceReplicas) -> Decision:
    """Set the moves that still fit."""
    moves = {move.group: move for move in command.moves}
    records = tuple(
        ReassignmentSet(move.group, move.target, by_balancer=True, observers=move.target_observers)
        for move in moves.values()
        if facts.config.balancer_enable and _fits(facts, move)
    )
    return Decision(BalanceNoted(tuple(one.group for one in records)), records)


def _fits(facts: Facts, move: BalancedReplicas) -> bool:
    partition = facts.state.cluster.groups.get(move.group)
    if partition is None or partition.pending:
        return False
    wanted = Roles(move.target, move.target_observers)
    seen = (
        move.version,
        Roles(move.replicas, move.observers),
        Roles(move.target_before, move.target_observers_before),
    )
    if seen != (partition.version, partition.roles, partition.wanted):
        return False
    if facts.state.cluster.rules_since(partition.topic) > move.seen_at:
        return False
    if partition.target and not partition.by_balancer:
        return False
    present = set(partition.roles.all)
    silent = facts.state.cluster.silent_ms.keys() & present.difference(wanted.all)
    if silent and facts.state.cluster.outages_version > move.seen_at:
        return False
    coming = set(wanted.all) - present
    may_come = coming <= facts.state.cluster.brokers.keys() - facts.leaving
    is_sound = bool(wanted.voters) or not wanted.observers
    is_sound = is_sound and len(set(wanted.all)) == len(wanted.all)
    return is_sound and wanted != partition.wanted and may_come
