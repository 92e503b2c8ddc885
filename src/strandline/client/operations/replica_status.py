"""Progress of each replica, from its partition's leader; start of its log, from its broker.

How:    requests to all brokers in parallel, many partitions in each. A leader does not know where
        the logs of other replicas start, so a second round asks their brokers.
Source: reference observers 4.4 (kafka-replica-status)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from strandline.base.json_value import Json
from strandline.client.cluster import Client
from strandline.client.errors import ClientError
from strandline.client.views import ClusterView, PartitionView
from strandline.client.wire.side_by_side import look_side_by_side
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_replica_status import (
    DescribeReplicaStatusRequest,
    DescribeReplicaStatusResponse,
    PartitionReplicaStatus,
    ReplicaStatus,
    ReplicaStatusTopic,
)

Name = tuple[str, int]
"""(topic, partition)."""
PARTITIONS_MAX = 1_000
"""Partitions in one request; a broker describes them without a pause."""


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """One partition. `answer`: what its leader says, None where it has none or that is silent."""

    topic: str
    partition: int
    leader: BrokerId
    is_internal: bool
    answer: PartitionReplicaStatus | None

    @property
    def replicas(self) -> Sequence[ReplicaStatus]:
        """The known replicas."""
        return () if self.answer is None else self.answer.replicas

    @property
    def end(self) -> int:
        """Where the leader's log ends; -1 where that is not known."""
        return max((one.log_end_offset for one in self.replicas if one.is_leader), default=-1)

    @property
    def counts(self) -> Mapping[str, int]:
        """What Kafka's metrics of a partition count; nothing where no leader answers."""
        if self.answer is None:
            return {}
        in_isr = [one for one in self.replicas if one.is_in_isr]
        caught_up = sum(1 for one in self.replicas if one.is_caught_up)
        return {
            "ReplicasCount": len(self.replicas),
            "ObserverReplicasCount": sum(1 for one in self.replicas if one.is_observer),
            "InSyncReplicasCount": len(in_isr),
            "CaughtUpReplicasCount": caught_up,
            "IsNotCaughtUp": int(caught_up < len(self.replicas)),
            "ObserversInIsrCount": sum(1 for one in in_isr if one.is_observer),
        }


def replica_status(
    client: Client, topics: Collection[str] = (), *, partitions: Collection[int] = ()
) -> list[PartitionStatus]:
    """Every partition of these topics, or all, with one of these numbers, or any. Asks leaders
    that have moved meanwhile once more, and does not wait for silent ones."""
    view = client.metadata(sorted(topics) if topics else None)
    for topic in sorted(topics):
        if topic not in view.topics or view.topics[topic].error_code == (
            Error.UNKNOWN_TOPIC_OR_PARTITION
        ):
            raise ClientError(f"topic {topic} does not exist; see `strandline topic list`")
    internal = {one.name for one in view.topics.values() if one.is_internal}
    wanted = _wanted(view, partitions)
    answers = _ask(client, view, wanted)
    missing = {name: one for name, one in wanted.items() if name not in answers}
    if missing:
        view = client.metadata(sorted({topic for topic, _ in missing}))
        wanted |= {name: one for name, one in _wanted(view, partitions).items() if name in missing}
        answers |= _ask(client, view, {name: wanted[name] for name in missing})
    return [
        PartitionStatus(
            topic=topic,
            partition=index,
            leader=BrokerId(wanted[topic, index].leader),
            is_internal=topic in internal,
            answer=answers.get((topic, index)),
        )
        for topic, index in sorted(wanted)
    ]


def ask_log_starts(client: Client, shown: Mapping[Name, Sequence[ReplicaStatus]]) -> None:
    """Fill in where the logs of these replicas begin, as far as their brokers say so soon."""
    held: dict[BrokerId, dict[Name, ReplicaStatus]] = {}
    for name, replicas in shown.items():
        for one in replicas:
            if one.log_start_offset < 0:
                held.setdefault(BrokerId(one.broker_id), {})[name] = one
    for broker, answers in _look(client, held).items():
        for name, answer in answers.items():
            held[broker][name].log_start_offset = answer.log_start_offset


def lag_of(one: PartitionStatus, replica: ReplicaStatus) -> int | None:
    """How many offsets a replica is behind its leader; None where that is not known."""
    end = replica.log_end_offset
    return None if end < 0 or one.end < 0 else max(one.end - end, 0)


def _known(value: int) -> int | None:
    return None if value < 0 else value


def status_json(one: PartitionStatus, replicas: Sequence[ReplicaStatus]) -> dict[str, Json]:
    """As JSON, for these replicas; None for unknown values."""
    answer = one.answer
    return {
        "topic": one.topic,
        "partition": one.partition,
        "leader": _known(one.leader),
        "leader_answers": answer is not None,
        "leader_epoch": None if answer is None else answer.leader_epoch,
        "leading_ms": None if answer is None else answer.leading_ms,
        "metrics": {**one.counts},
        "replicas": [
            {
                "replica": each.broker_id,
                "is_leader": each.is_leader,
                "is_observer": each.is_observer,
                "is_isr_eligible": each.is_isr_eligible,
                "is_in_isr": each.is_in_isr,
                "is_caught_up": each.is_caught_up,
                "last_caught_up_lag_ms": _known(each.last_caught_up_lag_ms),
                "last_fetch_lag_ms": _known(each.last_fetch_lag_ms),
                "log_start_offset": _known(each.log_start_offset),
                "log_end_offset": _known(each.log_end_offset),
                "lag_records": lag_of(one, each),
            }
            for each in replicas
        ],
    }


def _wanted(view: ClusterView, partitions: Collection[int]) -> dict[Name, PartitionView]:
    return {
        (topic.name, one.index): one
        for topic in view.topics.values()
        for one in topic.partitions
        if not partitions or one.index in partitions
    }


def _ask(
    client: Client, view: ClusterView, wanted: Mapping[Name, PartitionView]
) -> dict[Name, PartitionReplicaStatus]:
    led: dict[BrokerId, list[Name]] = {}
    for name, one in sorted(wanted.items()):
        if one.leader in view.brokers:
            led.setdefault(one.leader, []).append(name)
    return {
        name: one
        for answers in _look(client, led).values()
        for name, one in answers.items()
        if not one.error_code
    }


def _look(
    client: Client, asked: Mapping[BrokerId, Iterable[Name]]
) -> dict[BrokerId, dict[Name, PartitionReplicaStatus]]:
    """What each of these brokers says of these partitions, whether it leads them or not."""
    requests = {broker: _requests(sorted(names)) for broker, names in asked.items()}
    return {
        broker: {
            (topic.name, one.partition_index): one
            for answer in answers
            for topic in answer.topics
            for one in topic.partitions
        }
        for broker, answers in look_side_by_side(
            client, requests, DescribeReplicaStatusResponse
        ).items()
    }


def _requests(names: Sequence[Name]) -> list[DescribeReplicaStatusRequest]:
    found = []
    for first in range(0, len(names), PARTITIONS_MAX):
        topics: dict[str, list[int]] = {}
        for topic, index in names[first : first + PARTITIONS_MAX]:
            topics.setdefault(topic, []).append(index)
        found.append(
            DescribeReplicaStatusRequest(
                topics=[ReplicaStatusTopic(topic, indexes) for topic, indexes in topics.items()]
            )
        )
    return found
