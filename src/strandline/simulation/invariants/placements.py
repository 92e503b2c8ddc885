"""A placement that keeps its policy goes on keeping it.

Why:    a balancer that repairs one promise may break another without a sign.
How:    whenever voters become stable, or a policy or a label changes, each broker reports the
        placements that it knows. The solver's constraints judge them, over all registered brokers,
        up or down, without any code of the balancer.
Owns:   which placements have kept their policies; one set for each run.
Source: docs/decisions/0010-the-balancer.md; design section 7."""

from functools import lru_cache
from typing import NamedTuple

from strandline.base.errors import ApiError
from strandline.config.cluster import ClusterConfig
from strandline.config.topic import TopicConfig
from strandline.controller.placing.policies import policy_of
from strandline.model.cluster import Cluster, Labels, Partition, Roles
from strandline.model.ids import BrokerId, GroupId
from strandline.placement.solver.judge import judge, seated
from strandline.placement.solver.plan import make_plan
from strandline.placement.solver.request import Request
from strandline.placement.topology.universe import Candidate, Universe
from strandline.simulation.invariants.facts import PlacementKnown, Subject
from strandline.simulation.invariants.invariants import Invariant

ANSWERS_MAX = 4096
"""How many answers the cache keeps: every broker asks the same questions."""


class PlacementHolds(Invariant):
    """A placement that keeps its policy, at rest, keeps it until policy or labels change. If a
    replica without another place may break the policy, Convergence judges instead."""

    def __init__(self) -> None:
        self._last: dict[GroupId, int] = {}
        """{group: the last version of the state that this judged}"""
        self._kept: dict[GroupId, tuple[str, str]] = {}
        """{group: the question to which its placement, at rest, was right}"""

    def on_placement_known(self, fact: PlacementKnown) -> None:
        """In the order of the state's versions, whichever broker reports first."""
        if fact.state_version <= self._last.get(fact.group, -1):
            return
        self._last[fact.group] = fact.state_version
        if self._kept.get(fact.group) != fact.question:
            self._kept.pop(fact.group, None)
        if fact.is_right and not fact.is_moving:
            self._kept[fact.group] = fact.question
        if fact.group in self._kept and not fact.is_right and not fact.may_break:
            raise self.broken(
                f"group {fact.group}: its replicas became {list(fact.replicas)}, which break "
                f"{fact.question[0]}; those before kept it",
                Subject(fact.group),
            )


def placement_of(partition: Partition, cluster: Cluster) -> PlacementKnown | None:
    """The placement of a partition as a broker knows it; None if it has no policy."""
    answer = _judged(
        tuple(cluster.topics[partition.topic].configs.items()),
        tuple(cluster.cluster_configs.items()),
        tuple((one.id, one.labels) for one in cluster.brokers.values()),
        partition.roles,
    )
    if answer is None:
        return None
    return PlacementKnown(
        group=partition.group,
        state_version=cluster.version,
        replicas=partition.roles.all,
        is_moving=partition.is_moving,
        is_right=answer.is_right,
        question=answer.question,
        may_break=ClusterConfig.from_values(cluster.cluster_configs).balancer_best_effort_enable,
    )


class _Answer(NamedTuple):
    is_right: bool
    question: tuple[str, str]


@lru_cache(maxsize=ANSWERS_MAX)
def _judged(
    configs: tuple[tuple[str, str], ...],
    cluster_configs: tuple[tuple[str, str], ...],
    brokers: tuple[tuple[BrokerId, Labels], ...],
    roles: Roles,
) -> _Answer | None:
    """Whether roles are right; a function of its arguments, and every broker asks the same."""
    own, defaults = dict(configs), dict(cluster_configs)
    try:
        found = policy_of(own, defaults)
    except ApiError:
        return None
    if found is None:
        return None
    key, policy = found
    least = TopicConfig.from_overrides(defaults, own).min_insync_replicas
    candidates = [Candidate(id=one, labels=labels) for one, labels in brokers]
    count = len(roles.voters)
    request = Request(policy=policy, min_insync_replicas=least, default_voters=count)
    plan = make_plan(request, Universe(candidates), voters=count)
    is_right = judge(plan, seated(roles)).is_right
    labels = ",".join(f"{one.id}:{one.labels.region}" for one in plan.universe.candidates)
    return _Answer(is_right, (own.get(key, key), f"{least} {labels}"))
