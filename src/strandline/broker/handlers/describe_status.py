"""DescribeStatus: what this broker knows of the cluster's health, whether there is a controller or
not.

How:    everything is in memory: the committed state as replayed here, which brokers are heard, and
        as the controller what its balancer does about silent ones.
Source: docs/decisions/0046-cluster-status.md."""

import asyncio
from collections.abc import Iterable

from strandline.broker.context import RequestContext, Services
from strandline.broker.handlers.metadata import Living, controller_id
from strandline.broker.partitions import known_leader
from strandline.controller.outages.outlook import Around, Outlook, is_thin, outlook, refusal
from strandline.model.cluster import ONLY_LISTENER, Partition, Topic
from strandline.model.ids import NO_BROKER, BrokerId
from strandline.placement.survival.courses import Rules
from strandline.protocol.messages.describe_status import (
    DescribeStatusRequest,
    DescribeStatusResponse,
    StatusBroker,
    StatusLostLogs,
    StatusPartitions,
)

OFFSETS_TOPIC = "__consumer_offsets"
STEP = 500
"""After so many partitions other work of the loop has its turn."""


async def handle(_: DescribeStatusRequest, context: RequestContext) -> DescribeStatusResponse:
    """Describe what is known here and now."""
    return await describe(context.services, context.session.listener)


async def describe(services: Services, listener: str = ONLY_LISTENER) -> DescribeStatusResponse:
    """See the module. `listener`: the answer has its addresses, of the brokers that have it."""
    cluster = services.cluster
    findings = services.balancing.findings
    offsets = cluster.topics.get(OFFSETS_TOPIC)
    answer = DescribeStatusResponse(
        cluster_id=cluster.cluster_id,
        broker_id=services.broker_id,
        cluster_version=cluster.version,
        controller_id=controller_id(services),
        is_controller=findings is not None,
        is_settled=findings is not None and services.balancing.outages.judgement.is_settled,
        controller_voters=sorted(services.controller.voters),
        brokers=[_broker(services, one, listener) for one in sorted(cluster.brokers)],
        partition_count=len(cluster.groups),
        offsets_partition_count=0 if offsets is None else len(offsets.partitions),
    )
    await _tell_partitions(services, answer)
    return answer


# ---- brokers -------------------------------------------------------------------------------------


def _broker(services: Services, broker: BrokerId, listener: str) -> StatusBroker:
    known = services.cluster.brokers[broker]
    address = known.address_at(listener) or known.kafka
    is_self = broker == services.broker_id
    silence_ms = 0 if is_self else services.replication.silence_ms(broker)
    told = StatusBroker(
        broker_id=broker,
        host=address.host,
        port=address.port,
        region=known.labels.region,
        zone=known.labels.zone,
        is_heard=is_self or services.replication.is_peer_alive(broker),
        silent_ms=-1 if silence_ms is None else silence_ms,
        silent_since_ms=services.cluster.silent_since_ms.get(broker, -1),
    )
    if not told.is_heard:
        told.fate, told.fate_text, told.due_ms = _fate(services, broker)
    return told


def _fate(services: Services, broker: BrokerId) -> tuple[str, str, int]:
    """What the controller does about a silent broker: (a word, words, in how many ms); nothing on
    other brokers, and while the controller does not know yet."""
    findings = services.balancing.findings
    if findings is None or broker not in findings.condition.down_since_ms:
        return "", "", -1
    condition = findings.condition
    if broker in condition.held:
        return "held", condition.held[broker][1], -1
    if broker in condition.lost:
        return "lost", "", 0
    if broker in condition.spared:
        return "maintenance", "", -1
    now = services.clock.monotonic_ms()
    silent_ms = now - condition.down_since_ms[broker]
    return "due", "", max(0, findings.settings.lost_after_ms - silent_ms)


# ---- partitions ----------------------------------------------------------------------------------


async def _tell_partitions(services: Services, answer: DescribeStatusResponse) -> None:
    cluster, living = services.cluster, Living(services)
    around = Around(
        heard=living.alive,
        regions={one.id: one.labels.region for one in cluster.brokers.values()},
        has_controller=answer.controller_id != NO_BROKER,
    )
    is_whole = len(living.alive) == len(cluster.brokers)
    leaderless: list[tuple[Partition, Outlook]] = []
    refusing: list[tuple[Partition, Outlook]] = []
    thin: list[tuple[Partition, Outlook]] = []
    lost: dict[str, list[int]] = {}
    position = 0
    for topic in list(cluster.topics.values()):
        rules: Rules | None = None
        for one in list(topic.partitions):
            position += 1
            if position % STEP == 0:
                await asyncio.sleep(0)
            if one.acting:
                answer.fewer_voters_count += len(one.acting) < len(one.replicas)
                answer.observers_vote_count += not set(one.acting).issubset(one.replicas)
            leader, _ = known_leader(services, one)
            is_led = leader in living.named
            is_refusing = leader == services.broker_id and _refuses(services, one, around)
            if is_led and not is_refusing and is_whole:
                continue
            rules = rules or _rules(services, topic)
            if not is_led:
                leaderless.append((one, outlook(one, rules, around)))
                if _has_lost_its_log(services, one):
                    lost.setdefault(topic.name, []).append(one.index)
            elif is_refusing:
                refusing.append((one, refusal(one, rules, around)))
            elif is_thin(one, rules, living.alive):
                thin.append((one, outlook(one, rules, around)))
    answer.leaderless = _grouped(leaderless)
    answer.refusing = _grouped(refusing)
    answer.thin = _grouped(thin)
    answer.lost_logs = [
        StatusLostLogs(name, indexes, _has_buckets(services, name))
        for name, indexes in lost.items()
    ]


def _rules(services: Services, topic: Topic) -> Rules:
    config = services.topic_configs.of(topic, services.cluster)
    return Rules(
        config.min_insync_replicas,
        config.voters_shrink_enable,
        promotion=services.leader_ranks.of(topic, services.cluster).promotion,
        promises=not config.write_caching,
    )


def _has_lost_its_log(services: Services, partition: Partition) -> bool:
    """Whether the replica here was a member, and its log proves nothing: it does not vote."""
    replica = services.replication.replicas.get(partition.group)
    return replica is not None and replica.raft.has_lost_state


def _has_buckets(services: Services, name: str) -> bool:
    topic = services.cluster.topics.get(name)
    if topic is None:
        return False
    return services.topic_configs.of(topic, services.cluster).remote_storage_enable


def _refuses(services: Services, partition: Partition, around: Around) -> bool:
    """Whether a leader here takes no acks=all now: too few vote, or too few of them are heard."""
    replica = services.replication.replicas.get(partition.group)
    if replica is None or not replica.can_serve_reads:
        return False
    present = replica.configuration
    return replica.appender.lacks_voters or not present.can_commit(around.heard)


def _grouped(found: Iterable[tuple[Partition, Outlook]]) -> list[StatusPartitions]:
    """One entry for all partitions of a topic that fare alike."""
    groups: dict[tuple[str, Outlook], list[int]] = {}
    for partition, one in found:
        groups.setdefault((partition.topic, one), []).append(partition.index)
    return [
        StatusPartitions(
            topic=topic,
            partitions=indexes,
            course=one.course.value,
            voters=one.voters,
            left=one.left,
            back=one.back,
            missing=list(one.missing),
        )
        for (topic, one), indexes in groups.items()
    ]
