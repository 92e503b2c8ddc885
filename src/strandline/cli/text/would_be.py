"""Topics as they would be: one that is not there yet, and one whose keys would change.

Why:    a dry run tells what a topic survives in the words that its creation would use.
How:    the controller says whether it would refuse it; then the client places an example as the
        controller does, by the policy or evenly. The controller's own choice may be other brokers
        that are as good.
Source: decisions 0008 and 0026."""

import random
from collections.abc import Mapping
from dataclasses import replace

from strandline.cli.text.live_cluster import (
    CACHING,
    MIN_INSYNC,
    THE_CLUSTER,
    LiveCluster,
    LiveTopic,
    TopicDefaults,
)
from strandline.client.admin import NewTopic
from strandline.client.cluster import Client
from strandline.client.operations.broker_configs import VOTERS_SHRINK
from strandline.client.operations.configs import describe_configs
from strandline.config.effective import ConfigSource
from strandline.controller.placing.policies import CLUSTER_POLICY_KEYS, Said, policy_of
from strandline.model.cluster import Address, Broker, Roles
from strandline.placement.explain.topics import PartitionState
from strandline.placement.policy.document import Policy
from strandline.placement.solver.refusal import Refusal
from strandline.placement.solver.request import Request
from strandline.placement.solver.solve import solve
from strandline.placement.spread import Load, place
from strandline.placement.topology.universe import BrokerState

PARTITIONS = "num.partitions"
ON = "true"
_NOWHERE = Address("", 0)


def new_topic(
    client: Client, cluster: LiveCluster, defaults: TopicDefaults, new: NewTopic
) -> LiveTopic:
    """The topic as it would be created; the controller was asked before whether it would be."""
    own = dict(new.configs)
    rows = describe_configs(client, [THE_CLUSTER], (*CLUSTER_POLICY_KEYS, PARTITIONS))[THE_CLUSTER]
    inherited = {one.name: one.value for one in rows if one.source == ConfigSource.CLUSTER}
    count = next((int(one.value) for one in rows if one.name == PARTITIONS), 1)
    said = policy_of(own, inherited)
    policy = Policy(distinct_host=False) if said is None else said[1]
    observers = sum(rule.count or 0 for rule in policy.observer_rules())
    staying = sum(one.state is not BrokerState.DECOMMISSIONING for one in cluster.candidates)
    factor = new.replication_factor
    request = Request(
        policy=policy,
        min_insync_replicas=int(own.get(MIN_INSYNC) or defaults.min_insync_replicas),
        default_voters=(
            max(1, factor - observers) if factor > 0 else min(defaults.replicas, max(staying, 1))
        ),
        round_trips=cluster.round_trips,
        takes_down_brokers=True,
        disk_used_percent_max=defaults.disk_full_percent,
        disk_high_percent=defaults.disk_high_percent,
    )
    placed = _placed(cluster, request, said, new.partitions if new.partitions > 0 else count)
    shrinks = own.get(VOTERS_SHRINK)
    return LiveTopic(
        name=new.name,
        policy_key="" if said is None else said[0],
        request=request,
        partitions=tuple(
            PartitionState(index, one.voters, leader=one.voters[0], observers=one.observers)
            for index, one in enumerate(placed)
        ),
        own=own,
        shrinks=defaults.shrinks_by(policy) if shrinks is None else shrinks == ON,
        caches=own.get(CACHING) == ON,
    )


def _placed(
    cluster: LiveCluster, request: Request, said: Said | None, partitions: int
) -> list[Roles]:
    rng = random.Random(1)
    if said is not None:
        found = solve(request, cluster.candidates_with_room(), partitions=partitions, rng=rng)
        assert not isinstance(found, Refusal), "the controller would place it"
        return [Roles(one.voters, one.observers) for one in found.partitions]
    staying = [one for one in cluster.candidates if one.state is not BrokerState.DECOMMISSIONING]
    load = Load()
    for one in staying:
        load.replicas[one.id], load.leaders[one.id] = one.replicas, one.leaders
    brokers = [Broker(one.id, "", _NOWHERE, _NOWHERE, one.labels) for one in staying]
    placed = place(
        brokers,
        partitions=partitions,
        replication_factor=min(request.default_voters, len(staying)),
        rng=rng,
        load=load,
        avoid=[one.id for one in staying if one.state is not BrokerState.ACTIVE],
    )
    return [Roles(one) for one in placed]


def with_changes(
    topic: LiveTopic, changes: Mapping[str, str | None], defaults: TopicDefaults
) -> LiveTopic:
    """The topic with other values of the keys that decide what it survives; where it is placed
    stays."""
    least, shrinks, caches = topic.request.min_insync_replicas, topic.shrinks, topic.caches
    if MIN_INSYNC in changes:
        least = int(changes[MIN_INSYNC] or defaults.min_insync_replicas)
    if VOTERS_SHRINK in changes:
        value = changes[VOTERS_SHRINK]
        policy = topic.request.policy
        shrinks = defaults.shrinks_by(policy) if value is None else value == ON
    if CACHING in changes:
        caches = changes[CACHING] == ON
    request = replace(topic.request, min_insync_replicas=least)
    return replace(topic, request=request, shrinks=shrinks, caches=caches)
