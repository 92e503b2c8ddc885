"""The whole explanation of one partition's placement; the command line turns it into text.

Why:    the reason for a replica's place must be the same for an existing topic and for a policy
        that a user only tries.
How:    `make_plan` compiles the policy for the present number of voters. Its constraints judge and
        explain each replica. The brokers' labels show which losses the placement survives; round
        trips and prices give latencies and costs."""

from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal

import msgspec

from strandline.model.ids import BrokerId
from strandline.placement.explain.acting import as_voting
from strandline.placement.explain.latency import CommitLatency, commit_latencies
from strandline.placement.explain.prices import Prices
from strandline.placement.explain.replicas import ReplicaReason, explain_replicas
from strandline.placement.explain.traffic import Traffic, traffic_of
from strandline.placement.policy.document import Role
from strandline.placement.policy.text import encode_policy
from strandline.placement.solver.judge import Judgement, judge, seat
from strandline.placement.solver.plan import make_plan
from strandline.placement.solver.request import Request
from strandline.placement.survival.courses import Rules
from strandline.placement.survival.goals import BrokenGoal, broken_goals
from strandline.placement.survival.replicas import Placement, Replica
from strandline.placement.survival.report import Survival, survival_of
from strandline.placement.topology.universe import Candidate, Universe, as_staying


class Cost(msgspec.Struct, frozen=True):
    """The cost of replicating one GB when a broker leads."""

    leader: BrokerId
    per_gb: Decimal
    currency: str


class Explanation(msgspec.Struct, frozen=True):
    """One partition. Lists by leader are in the order of the voters, the preferred leader first."""

    policy: str
    """Canonical JSON."""
    replicas: tuple[ReplicaReason, ...]
    judgement: Judgement
    survival: Survival
    broken: tuple[BrokenGoal, ...]
    """Goals of the policy that this placement does not meet."""
    latencies: tuple[CommitLatency, ...]
    """With all voters; empty if no round trips are known."""
    traffic: tuple[Traffic, ...]
    costs: tuple[Cost, ...]
    """Empty without prices."""
    now: Survival | None = None
    """The further losses that the voters of this moment survive, with the voters that are down or
    behind counted as lost. None if all own voters vote, and are up and in sync."""
    latencies_now: tuple[CommitLatency, ...] = ()
    """Latencies of this moment: without the voters that `now` counts as lost. Empty if too few are
    left for a write, if `now` is None, or if no round trips are known."""


def explain(
    request: Request,
    candidates: Iterable[Candidate],
    replicas: Sequence[tuple[BrokerId, Role]],
    *,
    prices: Prices | None = None,
    behind: Collection[BrokerId] = (),
    acting: Collection[BrokerId] = (),
    rules: Rules | None = None,
) -> Explanation:
    """Explain `replicas`: at least one voter, the preferred leader first. `behind`: voters that are
    up and not in sync. `acting`: the brokers that vote now, if they differ from the own voters.
    `rules`: of the topic, for losses.

    Only the judgement covers replicas on brokers that are no candidates. It judges replicas on
    brokers in decommissioning as if these brokers stayed, but advises no move to them."""
    candidates = tuple(candidates)
    universe = Universe(candidates)
    known = [(broker, role) for broker, role in replicas if broker in universe.index]
    voters = sum(role == "voter" for _, role in replicas)
    assert voters, "a partition has a voter"
    plan = make_plan(request, universe, voters=voters)
    present = make_plan(request, Universe(as_staying(candidates)), voters=voters)
    seats, _ = seat(present, [(universe.index[broker], role) for broker, role in known])
    placement = Placement(
        [
            Replica(broker, universe.candidates[universe.index[broker]].labels, role)
            for broker, role in known
        ],
        min_insync_replicas=request.min_insync_replicas,
    )
    traffic = traffic_of(placement)
    trips = request.round_trips
    voting = as_voting(placement, acting, universe, request).at_present(
        down=[one.id for one in candidates if not one.is_up], behind=behind
    )
    lost = voting.lost
    return Explanation(
        policy=encode_policy(request.policy),
        replicas=explain_replicas(plan, seats),
        judgement=judge(present, replicas),
        survival=survival_of(placement, rules),
        broken=tuple(broken_goals(request.policy.survive, placement)),
        latencies=commit_latencies(placement, trips) if trips is not None else (),
        traffic=traffic,
        costs=tuple(
            Cost(one.leader, prices.of(one), prices.currency)
            for one in (traffic if prices is not None else ())
            if prices is not None
        ),
        now=survival_of(voting, rules) if lost or acting else None,
        latencies_now=(
            commit_latencies(voting.without(lost), trips)
            if (lost or acting) and trips is not None
            else ()
        ),
    )
