"""Checks the replicas that a client chose for new partitions against the policy that will apply.

Why:    a cluster's default policy is a promise for all topics. The balancer would move replicas
        that break it within seconds, and data that may not leave a country must not be there even
        that long.
How:    This judges each set of replicas once, as the balancer judges existing ones. It refuses a
        set that the balancer would find broken. It accepts one that only costs more by soft rules;
        the balancer moves that in time.
Source: decision 0008, "Replicas that a client chooses"."""

from collections.abc import Mapping, Sequence

from strandline.config.topic import TopicConfig
from strandline.controller.balancer.plans import Ask, Plans, Wanted
from strandline.controller.decision import Facts, refuse
from strandline.controller.placing.policies import PARTITIONS_BY_POLICY_MAX, Said
from strandline.model.cluster import Roles
from strandline.placement.explain.topics import faults_of, placement_of
from strandline.placement.solver.judge import judge, seated
from strandline.placement.survival.goals import broken_goals
from strandline.protocol.errors import Error


def check_given(
    facts: Facts, policy: Said | None, placed: Sequence[Roles], configs: Mapping[str, str]
) -> None:
    """Refuse replicas that break the policy, which is given with its key; raises ApiError.

    `configs`: the topic's own keys."""
    if policy is None:
        return
    key, wanted = policy
    distinct = list(dict.fromkeys(placed))
    if len(distinct) > PARTITIONS_BY_POLICY_MAX:
        raise refuse(
            Error.POLICY_VIOLATION,
            f"one request may choose {PARTITIONS_BY_POLICY_MAX} different sets of replicas where "
            f"{key} is in force: send several",
        )
    cluster = facts.state.cluster
    least = TopicConfig.from_overrides(cluster.cluster_configs, configs).min_insync_replicas
    plans = Plans(facts.brokers, frozenset(), facts.leaving)
    ask = Ask(key, wanted, least)
    for one in distinct:
        found = plans.of(ask, one)
        if isinstance(found, Wanted) and not found.is_right(one):
            chosen = ",".join(map(str, one.all))
            raise refuse(
                Error.POLICY_VIOLATION,
                f"replicas {chosen} of partition {placed.index(one)} break {key}: choose others, "
                f"or leave the choice to the policy\n{_why(found, one)}",
            )


def _why(wanted: Wanted, replicas: Roles) -> str:
    """A line for each reason."""
    if wanted.refusal:
        return wanted.refusal.removeprefix(f"{wanted.key}: ")
    plan = wanted.plan()
    placement = placement_of(plan.universe, replicas, wanted.request)
    broken = broken_goals(wanted.request.policy.survive, placement)
    return "\n".join(faults_of(judge(plan, seated(replicas)), broken))
