"""Says why a policy cannot be met: which constraints block, and why each broker is refused.

Why:    "not enough brokers" sends an operator through labels, disks and policies by hand.
How:    To find the blocking constraints, constraints are left out one after the other while there
        is still no placement. The reasons are those for the next seat at the deepest point of the
        search; brokers with the same reason form one group.
Source: decision 0008."""

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from strandline.model.ids import BrokerId
from strandline.placement.constraints.contract import HardEvaluator, Seats
from strandline.placement.constraints.reasons import Reason, because
from strandline.placement.solver.plan import Plan
from strandline.placement.solver.search import ANY_COST, Found, Search, orbits_of
from strandline.placement.solver.unlabelled import unlabelled
from strandline.placement.topology.labels import tell_missing
from strandline.placement.topology.naming import brokers_named

BLOCK_NODES_MAX = 1_000


class RefusedBrokers(msgspec.Struct, frozen=True):
    """Brokers that are refused for the same reason."""

    constraint: str
    reason: Reason
    brokers: tuple[BrokerId, ...]

    def __str__(self) -> str:
        return self.reason.text_for(self.brokers)


class Relaxation(msgspec.Struct, frozen=True):
    """The nearest policy that can be met."""

    policy: str
    """Its canonical text."""
    changes: tuple[str, ...]
    """The differences from the refused policy, in words."""


class Refusal(msgspec.Struct, frozen=True):
    """Why there is no placement."""

    wanted: str
    """The replicas to place: "5 voters, 1 observer"."""
    placed: tuple[BrokerId, ...] = ()
    """The replicas that could be placed before the dead end."""
    role: str = ""
    """The role of the replica that could not be placed."""
    eligible: tuple[BrokerId, ...] = ()
    """Brokers that could take it, but too few for all the replicas wanted."""
    refused: tuple[RefusedBrokers, ...] = ()
    """Why no other broker can take it, the largest group first. Each broker is in one group."""
    blocking: tuple[str, ...] = ()
    """Constraints that cannot hold together; without one of them there is a placement."""
    is_proved: bool = True
    """Whether there is certainly no placement; else the search ran out of steps."""
    newcomers: str = ""
    """Further brokers that would make a placement possible: "one more broker with region=south"."""
    nearest: Relaxation | None = None
    hint: str = ""
    """What else the operator has to do, such as giving labels."""

    def __str__(self) -> str:
        """One line."""
        return "; ".join(self.lines())

    def text(self) -> str:
        """A line for each, for an error message that is shown in lines."""
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Lines for people: the refusal, the reasons, then the remedies."""
        lines = [f"cannot place {self.wanted}"]
        if self.hint:
            lines.append(self.hint)
        if self.role:
            lines.append(self._dead_end())
        named = ("distinct broker", "labelled") if self.hint else ("distinct broker",)
        lines += [str(one) for one in self.refused if one.constraint not in named]
        if self.blocking:
            lines.append(f"conflict: {', '.join(self.blocking)}")
        if not self.is_proved:
            lines.append("not certain: the search ran out of steps")
        if self.newcomers:
            lines.append(f"this would help: {self.newcomers}")
        if self.nearest is not None:
            lines.append(f"this would be possible: {', '.join(self.nearest.changes)}")
            lines.append(f"as a policy: {self.nearest.policy}")
        return lines

    def _dead_end(self) -> str:
        """Which brokers can take the replica for which there are none, or too few."""
        who = f"only {brokers_named(self.eligible)}" if self.eligible else "no broker"
        article = "an" if self.role == "observer" else "a"
        if not self.placed:
            return f"{who} can take {article} {self.role}"
        if not self.eligible:
            who = "no other broker"
        return (
            f"with replicas on {brokers_named(self.placed)}, {who} can take {article} {self.role}"
        )


def refusal_of(plan: Plan, found: Found, *, names_blocking: bool = True) -> Refusal:
    """Explain a search that found nothing. `names_blocking`: search for the constraints that
    cannot hold together, which takes a while."""
    group = max(found.blocked_group, 0)
    refused = refused_brokers(plan, found.deepest, group)
    ids = {broker for one in refused for broker in one.brokers}
    return Refusal(
        wanted=_wanted(plan),
        placed=tuple(plan.universe.candidates[bit].id for bit, _ in found.deepest),
        role=plan.shape.groups[group].role,
        eligible=tuple(one.id for one in plan.universe.candidates if one.id not in ids),
        refused=refused,
        blocking=blocking(plan) if found.is_proved and names_blocking else (),
        is_proved=found.is_proved,
        hint="; ".join(tell_missing(unlabelled(plan))),
    )


def refused_brokers(plan: Plan, seats: Seats, group: int) -> tuple[RefusedBrokers, ...]:
    """The brokers that cannot take the next seat of a group, by their first reason."""
    taken = {bit for bit, _ in seats}
    groups: dict[tuple[str, Reason], list[BrokerId]] = {}
    evaluators = (*plan.static, *plan.hard)
    masks = [one.eligible(seats, group) for one in evaluators]
    for bit, candidate in enumerate(plan.universe.candidates):
        if bit in taken:
            groups.setdefault(("distinct broker", because("taken")), []).append(candidate.id)
            continue
        for one, mask in zip(evaluators, masks, strict=True):
            if not mask >> bit & 1:
                reason = one.reason(seats, group, bit)
                groups.setdefault((one.name, reason), []).append(candidate.id)
                break
    found = [RefusedBrokers(name, why, tuple(ids)) for (name, why), ids in groups.items()]
    return tuple(sorted(found, key=lambda one: (-len(one.brokers), one.brokers)))


def blocking(plan: Plan) -> tuple[str, ...]:
    """Names of constraints that cannot hold together, although any smaller set of them can.

    Empty if there are too few brokers even without any constraint."""
    kept: list[HardEvaluator] = [*plan.static, *plan.hard]
    if _is_feasible(plan, []):
        for one in list(kept):
            without = [other for other in kept if other is not one]
            if not _is_feasible(plan, without):
                kept = without
        return tuple(dict.fromkeys(one.text for one in kept))
    return ()


def _is_feasible(plan: Plan, evaluators: Sequence[HardEvaluator]) -> bool:
    allowed = [plan.universe.all] * len(plan.shape.groups)
    for one in evaluators:
        if one.is_static:
            allowed = [mask & one.eligible((), n) for n, mask in enumerate(allowed)]
    reduced = replace(
        plan,
        hard=tuple(one for one in evaluators if not one.is_static),
        soft=(),
        allowed=tuple(allowed),
    )
    search = Search(reduced, orbits_of(reduced), good_enough=ANY_COST, nodes_max=BLOCK_NODES_MAX)
    return search.run().seats is not None


def _wanted(plan: Plan) -> str:
    voters = plan.shape.voters
    observers = sum(group.count for group in plan.shape.groups) - voters
    text = f"{voters} voter{'s' * (voters != 1)}"
    return text + (f", {observers} observer{'s' * (observers != 1)}" if observers else "")
