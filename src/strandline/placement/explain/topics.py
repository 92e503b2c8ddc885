"""A topic that exists: which of its partitions are as its policy wants, what all of them survive,
as they were placed and without the brokers that are down.

Why:    a topic has many partitions, and an operator asks for the weakest of them.
How:    partitions with the same replicas are alike, and are judged once. What holds for all of them
        holds for the topic. That a broker is to leave breaks no policy: its replicas are judged
        where they are.
Source: decision 0008."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import msgspec

from strandline.base.rng import seeded
from strandline.model.cluster import Roles
from strandline.model.ids import NO_BROKER, BrokerId
from strandline.placement.explain.acting import as_voting
from strandline.placement.explain.latency import commit_latencies
from strandline.placement.explain.prices import Prices
from strandline.placement.explain.traffic import Traffic, traffic_of
from strandline.placement.policy.document import Goal
from strandline.placement.policy.text import encode_policy
from strandline.placement.solver.judge import Judgement, judge, seated
from strandline.placement.solver.leaders import LeaderChoice
from strandline.placement.solver.plan import Plan, make_plan
from strandline.placement.solver.request import Request
from strandline.placement.solver.solve import missing_for
from strandline.placement.survival.courses import Rules
from strandline.placement.survival.goals import BrokenGoal, broken_goals
from strandline.placement.survival.replicas import Placement, Replica
from strandline.placement.survival.report import survived
from strandline.placement.topology.labels import tell_missing
from strandline.placement.topology.naming import brokers_named
from strandline.placement.topology.universe import Candidate, Universe, as_staying


@dataclass(frozen=True, slots=True)
class PartitionState:
    """A partition as the cluster tells of it. `leader` is NO_BROKER while there is none."""

    index: int
    voters: tuple[BrokerId, ...]
    """The preferred leader first; they are all candidates."""
    leader: BrokerId = NO_BROKER
    adding: tuple[BrokerId, ...] = ()
    """The brokers that shall get a replica."""
    behind: tuple[BrokerId, ...] = ()
    """Voters, and others that vote now, that are not in sync, as the leader says."""
    observers: tuple[BrokerId, ...] = ()
    """They are all candidates, too."""
    acting: tuple[BrokerId, ...] = ()
    """The brokers that vote now, if they differ from `voters`; by id."""
    is_led: bool = True
    """Whether its leader answered, if it was asked."""

    @property
    def voting(self) -> tuple[BrokerId, ...]:
        """The present voters."""
        return self.acting or self.voters

    @property
    def placed(self) -> Roles:
        """Both, in their order."""
        return Roles(self.voters, self.observers)

    @property
    def roles(self) -> Roles:
        """Both, by id: what partitions that are alike have in common."""
        return Roles(tuple(sorted(self.voters)), tuple(sorted(self.observers)))


_Kind = tuple[Roles, tuple[BrokerId, ...], tuple[BrokerId, ...]]
"""(voters and observers, brokers that vote now, brokers that are behind): the key of partitions
that are alike."""


class Alike(msgspec.Struct, frozen=True):
    """Partitions with the same voters and observers, of which the same are behind and vote now."""

    partitions: tuple[int, ...]
    voters: tuple[BrokerId, ...]
    """By id."""
    observers: tuple[BrokerId, ...]
    """By id; whether they are up or not, writes go on."""
    write_quorum: int
    down: tuple[BrokerId, ...]
    """The voters, and others that vote now, that are down."""
    behind: tuple[BrokerId, ...]
    """Those of them that are up and not in sync."""
    faults: tuple[str, ...]
    """The violations of the policy; empty for none."""
    has_stopped: bool
    """Whether so many are down or behind that writes have stopped, those with acks=all at least."""
    acting: tuple[BrokerId, ...] = ()
    """By id: the brokers that vote now, if they differ from `voters`."""

    @property
    def roles(self) -> Roles:
        """The voters and observers."""
        return Roles(self.voters, self.observers)

    @property
    def lost(self) -> tuple[BrokerId, ...]:
        """The present voters on which no write can count."""
        return tuple(one for one in self.down + self.behind if one in self.voting)

    @property
    def voting(self) -> tuple[BrokerId, ...]:
        """The present voters."""
        return self.acting or self.voters


class Wait(msgspec.Struct, frozen=True):
    """Partitions whose writes wait equally long for their quorum."""

    commit_ms: int | None
    """None where a way that counts was not measured."""
    partitions: tuple[int, ...]


class TopicExplanation(msgspec.Struct, frozen=True):
    """All partitions of a topic together."""

    policy: str
    """Canonical JSON."""
    missing: tuple[str, ...]
    """Labels that the policy needs and brokers lack."""
    alike: tuple[Alike, ...]
    """The weakest first: those that have stopped, then those with faults, then those of which most
    are down or behind."""
    writes: tuple[Goal, ...]
    """As placed: the largest losses with which all partitions go on writing."""
    data: tuple[Goal, ...]
    """As placed: the largest losses with which none loses an acknowledged write."""
    writes_now: tuple[Goal, ...]
    """The same for the present voters, beside the brokers that are down or behind, for the
    partitions that have not stopped."""
    data_now: tuple[Goal, ...]
    elsewhere: tuple[int, ...]
    """Partitions led elsewhere than the policy prefers, though a preferred voter is up."""
    leaderless: tuple[int, ...]
    unplaced: tuple[BrokerId, ...]
    """Brokers of voters that do not say in which region they are: they count as one region."""
    cross_region: float
    """Bytes that leave their leader's region for each byte produced, as partitions are led now."""
    waits: tuple[Wait, ...]
    """As partitions are led now, without what is down or behind; those that take no writes are
    left out. Empty where no round trips are known."""
    writes_but_not: tuple[Goal, ...] = ()
    """As placed: losses that lie within one of `writes`, and stop writes all the same."""
    writes_now_but_not: tuple[Goal, ...] = ()
    per_gb: Decimal | None = None
    """The cost of replicating a GB with the present leaders; None without prices."""


def explain_topic(
    request: Request,
    candidates: Iterable[Candidate],
    partitions: Sequence[PartitionState],
    *,
    prices: Prices | None = None,
    rules: Rules | None = None,
) -> TopicExplanation:
    """Explain a topic with at least one partition, each with at least one voter. `rules`: what
    becomes of its partitions, where voters may leave."""
    rules = rules or Rules(request.min_insync_replicas)
    candidates = tuple(candidates)
    universe = Universe(as_staying(candidates))
    down = frozenset(one.id for one in candidates if not one.is_up)
    groups: dict[_Kind, list[PartitionState]] = {}
    for one in partitions:
        behind = tuple(sorted(broker for broker in one.behind if broker not in down))
        groups.setdefault((one.roles, one.acting, behind), []).append(one)
    placements = {roles: placement_of(universe, roles, request) for roles, _, _ in groups}
    voting = {
        (roles, acting): placement_of(universe, roles, request, acting)
        for roles, acting, _ in groups
    }
    plans = {
        count: make_plan(request, universe, voters=count)
        for count in {len(roles.voters) for roles in placements}
    }
    faults = {
        roles: _faults(plans[len(roles.voters)], placement)
        for roles, placement in placements.items()
    }
    alike = _alike(groups, placements, voting, faults=faults, down=down)
    placed = survived(placements.values(), rules, goals=request.policy.survive)
    now = placed
    if any(one.lost or one.acting for one in alike):
        now = survived(
            [
                voting[one.roles, one.acting].at_present(down=down, behind=one.behind)
                for one in alike
                if not one.has_stopped
            ],
            rules,
            goals=request.policy.survive,
        )
    ways = _ways(placements, partitions)
    return TopicExplanation(
        policy=encode_policy(request.policy),
        missing=tuple(tell_missing(missing_for(request.policy, candidates))),
        alike=tuple(alike),
        writes=placed.writes,
        data=placed.data,
        writes_now=now.writes,
        data_now=now.data,
        elsewhere=_elsewhere(plans, partitions),
        leaderless=tuple(one.index for one in partitions if one.leader == NO_BROKER),
        unplaced=tuple(
            sorted({broker for one in placements.values() for broker in one.unlabelled("region")})
        ),
        cross_region=sum(one.cross_region for one in ways) / max(len(ways), 1),
        waits=_waits(request, alike, voting, partitions),
        writes_but_not=placed.writes_but_not,
        writes_now_but_not=now.writes_but_not,
        per_gb=None if prices is None else _mean([prices.of(one) for one in ways]),
    )


def _alike(
    groups: Mapping[_Kind, Sequence[PartitionState]],
    placements: Mapping[Roles, Placement],
    voting: Mapping[tuple[Roles, tuple[BrokerId, ...]], Placement],
    *,
    faults: Mapping[Roles, tuple[str, ...]],
    down: frozenset[BrokerId],
) -> list[Alike]:
    """The weakest first."""
    alike = []
    for (roles, acting, behind), members in groups.items():
        present = voting[roles, acting].at_present(down=down, behind=behind)
        alike.append(
            Alike(
                partitions=tuple(one.index for one in members),
                voters=roles.voters,
                observers=roles.observers,
                write_quorum=placements[roles].quorum.write_quorum,
                down=tuple(sorted(down & {*roles.voters, *acting})),
                behind=behind,
                faults=faults[roles],
                has_stopped=present.has_stopped,
                acting=acting,
            )
        )
    alike.sort(key=lambda one: (not one.has_stopped, not one.faults, -len(one.lost)))
    return alike


def placement_of(
    universe: Universe, roles: Roles, request: Request, acting: Collection[BrokerId] = ()
) -> Placement:
    """Voters and observers with their labels; as it votes now where `acting` do."""
    placed = Placement(
        [
            Replica(one, universe.candidates[universe.index[one]].labels, role)
            for one, role in seated(roles)
        ],
        min_insync_replicas=request.min_insync_replicas,
    )
    return as_voting(placed, acting, universe, request)


def _faults(plan: Plan, placement: Placement) -> tuple[str, ...]:
    judgement = judge(plan, [(one.broker, one.role) for one in placement.replicas])
    return tuple(faults_of(judgement, broken_goals(plan.request.policy.survive, placement)))


def faults_of(judgement: Judgement, broken: Iterable[BrokenGoal]) -> list[str]:
    """The violations of the policy, each in a few words."""
    found = [str(one) for one in broken]
    for one in judgement.violations:
        if one.reason.code != "goal":  # Those are broken goals, which say more.
            found.append(f"{one.constraint}: {one.reason.text_for(one.brokers)}")
    if judgement.surplus:
        found.append(f"no rule requires the replicas of {brokers_named(judgement.surplus)}")
    missing = sum(judgement.missing.values())
    if missing:
        found.append(f"{missing} fewer replica{'s' * (missing > 1)} than the rules require")
    if judgement.unknown:
        verb = "is" if len(judgement.unknown) == 1 else "are"
        found.append(f"{brokers_named(judgement.unknown)} {verb} not registered")
    return found


def _elsewhere(plans: Mapping[int, Plan], partitions: Sequence[PartitionState]) -> tuple[int, ...]:
    choices = {
        count: LeaderChoice(plan, rng=seeded(0))
        for count, plan in plans.items()
        if plan.leader_tiers
    }
    found = []
    for one in partitions:
        choice = choices.get(len(one.voters))
        if choice is not None and one.leader != NO_BROKER:
            universe = plans[len(one.voters)].universe
            should = choice.may_lead(universe.mask(universe.index[voter] for voter in one.voters))
            if not should >> universe.index[one.leader] & 1:
                found.append(one.index)
    return tuple(found)


def _waits(
    request: Request,
    alike: Iterable[Alike],
    voting: Mapping[tuple[Roles, tuple[BrokerId, ...]], Placement],
    partitions: Sequence[PartitionState],
) -> tuple[Wait, ...]:
    if request.round_trips is None:
        return ()
    trips = request.round_trips
    by_leader = {
        (index, wait.leader): wait.commit_ms
        for one in alike
        for wait in commit_latencies(voting[one.roles, one.acting].without(one.lost), trips)
        for index in one.partitions
    }
    found: dict[int | None, list[int]] = {}
    for one in partitions:
        if (one.index, one.leader) in by_leader:
            found.setdefault(by_leader[one.index, one.leader], []).append(one.index)
    return tuple(
        Wait(commit_ms, tuple(indexes))
        for commit_ms, indexes in sorted(found.items(), key=lambda pair: (pair[0] is None, pair))
    )


def _ways(
    placements: Mapping[Roles, Placement], partitions: Sequence[PartitionState]
) -> list[Traffic]:
    """The bytes that the leader of each partition with a leader sends."""
    by_leader = {
        (roles, one.leader): one
        for roles, placement in placements.items()
        for one in traffic_of(placement)
    }
    found = (by_leader.get((one.roles, one.leader)) for one in partitions)
    return [one for one in found if one is not None]


def _mean(amounts: Sequence[Decimal]) -> Decimal:
    """To a millionth; 0 of nothing."""
    mean = sum(amounts, Decimal(0)) / max(len(amounts), 1)
    return mean.quantize(Decimal("0.000001")).normalize()
