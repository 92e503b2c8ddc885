"""The needs of one partition, and the replicas that meet them. Pure.

Why:    a replica moves only for a need; and a partition that waits has a reason.
How:    Needs, the most urgent first: a replica's broker is lost, or is to be emptied; a rule is
        broken; the soft rules prefer others; leaders should be elsewhere. As few replicas as
        possible change.
            A lost replica without an equally good replacement is excused, so that others can be
        replaced. If no placement keeps the policy, only lost replicas move, to brokers that break
        no more of it (`best_effort`). A replica on a decommissioned broker goes to any broker,
        unless a policy says otherwise.
Source: decision 0010."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations

from strandline.controller.balancer.best_effort import replace_lost
from strandline.controller.balancer.plans import Wanted
from strandline.controller.balancer.reasons import Wait
from strandline.model.cluster import Partition, Roles
from strandline.model.ids import BrokerId
from strandline.placement.constraints.least_allocated import LeastAllocated
from strandline.placement.solver.judge import seated
from strandline.placement.solver.plan import make_plan
from strandline.placement.solver.refusal import refusal_of
from strandline.placement.solver.repair import Repair, repair
from strandline.placement.solver.search import ANY_COST, Search, orbits_of
from strandline.placement.survival.replicas import Quorum
from strandline.placement.topology.labels import BROKER_LABEL

STEPS_MAX = 1_000
"""Steps of one repair: a search must not block the controller."""


def need_of(wanted: Wanted, replicas: Roles) -> str:
    """Why the replicas should change: a code of `reasons.MOVES`; empty when they are right."""
    lost = wanted.lost(replicas)
    if lost:
        return "decommission" if set(lost) <= wanted.plans.leaving else "broker-lost"
    if not wanted.has_policy or wanted.refusal:
        return ""
    if not wanted.is_right(replicas):
        return "policy-broken"
    best = wanted.best_cost()
    if best is not None and wanted.cost(replicas) > best:
        return "policy-dearer"
    if wanted.lead_first(replicas, {}, present=replicas.voters[0]) != replicas:
        return "leaders"
    return ""


def hindrance(wanted: Wanted, partition: Partition, up: frozenset[BrokerId]) -> Wait | None:
    """Why a partition's replicas cannot be changed now, whatever they need: its voters, present
    or possible, cannot commit."""
    return next(filter(None, (_no_quorum(wanted, one, up) for one in partition.possible)), None)


def endless(
    wanted: Wanted,
    target: Sequence[BrokerId],
    up: frozenset[BrokerId],
    given_up: frozenset[BrokerId],
) -> Wait | None:
    """Why a move to these voters could not end now: they could not commit, or some of them were
    declared lost and must not be counted on (0027)."""
    gone = sorted(given_up.intersection(target))
    if gone:
        which = f"broker{'s' * (len(gone) > 1)} {', '.join(map(str, gone))}"
        return "needs-broker", f"needs others in place of {which}, whose replica was declared lost"
    wait = _no_quorum(wanted, target, up)
    return None if wait is None else (wait[0], f"{wait[1]}, once those that can be are replaced")


def _no_quorum(wanted: Wanted, voters: Sequence[BrokerId], up: frozenset[BrokerId]) -> Wait | None:
    margin = margin_of(wanted, voters, up)
    if margin >= 0:
        return None
    count = sum(one in up for one in voters)
    needed = f"{count - margin} of {len(voters)}"
    verb = "is" if count == 1 else "are"
    return "no-quorum", f"{needed} replicas have to be up, and {count} {verb}"


def margin_of(wanted: Wanted, voters: Sequence[BrokerId], up: frozenset[BrokerId]) -> int:
    """How many more of the voters may go down before writes stop; negative if they have."""
    quorum = Quorum.of(len(voters), wanted.request.min_insync_replicas).write_quorum
    return sum(one in up for one in voters) - quorum


def mend(
    wanted: Wanted,
    replicas: Roles,
    *,
    up: frozenset[BrokerId],
    settled: frozenset[BrokerId],
    held: Mapping[BrokerId, Wait],
    loads: Mapping[BrokerId, int],
    led: Mapping[BrokerId, int],
    best_effort: bool = False,
) -> Roles | Wait:
    """The replicas that the partition should have, the preferred leader first; or why there are
    none.

    `up`: brokers that are heard; replicas rather leave the others. `settled`: brokers that may get
    replicas. `held`: {broker that may lose none, unless an operator empties it: why}. `loads`: how
    many replicas each broker holds, `led`: how many preferred leaders. `best_effort`: whether the
    replacement of a lost replica may break the policy."""
    find = partial(_repair, wanted, replicas, up=up, settled=settled, loads=loads)
    stays = held.keys() - wanted.plans.lost
    found = None if wanted.refusal else find(held=stays)
    if found is None:
        replaced = None
        if wanted.refusal or (best_effort and wanted.has_policy):
            replaced = replace_lost(
                wanted,
                replicas,
                settled=settled - wanted.plans.lost,
                loads=loads,
                may_break_more=best_effort,
            )
        if replaced is None:
            if not wanted.refusal and (free := stays and find(held=frozenset())):
                return held[next(one for one in free.leaving if one in stays)]
            return _shortage(wanted, replicas, settled)
        return wanted.lead_first(replaced, led, present=replicas.voters[0])
    stay = [one for one in seated(replicas) if one in found.kept]
    voters, observers = (
        tuple(broker for broker, role in (*stay, *found.coming) if role == wanted_role)
        for wanted_role in ("voter", "observer")
    )
    return wanted.lead_first(Roles(voters, observers), led, present=replicas.voters[0])


def _repair(
    wanted: Wanted,
    replicas: Roles,
    *,
    up: frozenset[BrokerId],
    settled: frozenset[BrokerId],
    held: Collection[BrokerId],
    loads: Mapping[BrokerId, int],
) -> Repair | None:
    lost = wanted.lost(replicas)
    best = wanted.best_cost() if need_of(wanted, replicas) == "policy-dearer" else None
    search = partial(
        repair,
        may_come=wanted.plans.mask(settled - wanted.plans.lost),
        away=wanted.plans.mask(frozenset(wanted.plans.ids) - up),
        held=wanted.plans.mask(held),
        loads=LeastAllocated([loads.get(one, 0) for one in wanted.plans.ids]),
        steps_max=STEPS_MAX,
    )
    for count in range(max(1, len(lost))):
        for excused in combinations(lost, count):
            found = search(
                wanted.plan(excused),
                seated(replicas),
                cost_max=best if wanted.has_policy else wanted.cost(replicas),
                leaving_max=None if wanted.has_policy else len(lost) - count,
            )
            if found is not None and (found.leaving or found.coming):
                return found
    leaving = wanted.leaving(replicas)
    if wanted.has_policy or not leaving:
        return None
    # An operator wants the broker empty, and no policy limits the cost.
    excused = tuple(one for one in lost if one not in leaving)
    return search(wanted.plan(excused), seated(replicas), leaving_max=len(leaving))


def _shortage(wanted: Wanted, replicas: Roles, settled: frozenset[BrokerId]) -> Wait:
    lost = sorted(wanted.lost(replicas))
    if lost:
        each = [place_of(wanted, one) for one in lost]
        needed = f"one more broker{each[0]}" if len(lost) == 1 else f"{len(lost)} more brokers"
        if len(lost) > 1 and any(each):
            needed += f": {'; '.join(f'one{place}' for place in each)}"
        noun = "broker" if len(lost) == 1 else "brokers"
        return "needs-broker", f"needs {needed} in place of {noun} {', '.join(map(str, lost))}"
    down = frozenset(wanted.plans.ids) - settled
    plan = make_plan(wanted.request, wanted.plans.universe(down), voters=wanted.voters)
    plan = replace(plan, soft=())
    found = Search(plan, orbits_of(plan), good_enough=ANY_COST, nodes_max=STEPS_MAX).run()
    if found.seats is None:
        return "cannot-be-met", str(refusal_of(plan, found, names_blocking=False))
    return "cannot-be-met", "no way was found within the steps that a search may take"


def place_of(wanted: Wanted, broker: BrokerId, could: Collection[BrokerId] = ()) -> str:
    """The labels that a broker in this one's place must have, and those that all possible ones
    (`could`) have."""
    brokers = wanted.plans.brokers
    labels = brokers[broker].labels
    said = [
        f"{label}={labels.get(label)}"
        for label in wanted.labels()
        if label != BROKER_LABEL
        and labels.get(label)
        and all(brokers[one].labels.get(label) == labels.get(label) for one in could)
    ]
    return f" with {' '.join(said)}" if said else ""
