"""Replaces a lost replica if no placement keeps the whole policy. Pure.

Why:    a policy that can no longer be met must not leave a partition with a copy less for ever.
How:    For each lost replica in turn this takes a broker that the replica's own rule allows
        (labels, residency) and that breaks least: first by the rules that count replicas, then by
        the soft ones. If that would break more than is broken already, the operator must permit it.
Owns:   nothing.
Source: design section 7; decision 0010."""

from collections.abc import Collection, Mapping

from strandline.controller.balancer.plans import Wanted
from strandline.model.cluster import Roles
from strandline.model.ids import BrokerId


def replace_lost(
    wanted: Wanted,
    replicas: Roles,
    *,
    settled: Collection[BrokerId],
    loads: Mapping[BrokerId, int],
    may_break_more: bool,
) -> Roles | None:
    """The replicas, with the lost ones replaced as far as there are brokers, in the same order;
    None without any. `settled`: brokers that may get replicas."""
    plan = wanted.plan()
    found = replicas
    for lost in wanted.lost(replicas):
        bit = plan.universe.index[lost]
        allowed = next((plan.allowed[group] for one, group in wanted.seats(found) if one == bit), 0)
        best: tuple[tuple[int, int, int, BrokerId], Roles] | None = None
        for broker in settled:
            if broker in found.all or not allowed >> plan.universe.index[broker] & 1:
                continue
            after = found.exchanged(lost, broker)
            if not may_break_more and wanted.breaks_more(after, than=found):
                continue
            broken = sum(wanted.broken(after).values())
            rank = broken, wanted.cost(after), loads.get(broker, 0), broker
            if best is None or rank < best[0]:
                best = rank, after
        if best is not None:
            found = best[1]
    return None if found == replicas else found
