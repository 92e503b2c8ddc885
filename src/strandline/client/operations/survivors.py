"""The logs left of a partition, from every broker that may hold one.

How:    the broker that knows the newest decisions of the controller names the possible voters; then
        each of them, and each observer, reports its own log, in parallel and with a short timeout.
        The result says what the answering replicas can do, and which would be given up.
Source: decisions 0026 and 0027."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from strandline.base.errors import StrandlineError
from strandline.client.cluster import Client
from strandline.client.errors import CannotConnectError, ClientError, refusal
from strandline.client.operations.observers import AllObserved, Observed, describe_observers
from strandline.client.operations.topology import describe_brokers
from strandline.client.wire.side_by_side import look_at_each, look_side_by_side
from strandline.controller.arbitration.survivors import SurvivingLog, Survivors, assess
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_replica_logs import (
    DescribeReplicaLogsRequest,
    DescribeReplicaLogsResponse,
)

Name = tuple[str, int]
"""(topic, partition)."""


@dataclass(frozen=True, slots=True)
class ReplicaLogs:
    """`possible`: the voters that may be in force; `hosts`: brokers that should hold the log;
    `answers`: {broker: its own log}, for those that answer; `heard`: brokers that others hear,
    whether they answer here or not; `needs_all`: see `controller.arbiter.GroupVoters`; `floor`:
    see `Partition`; `observers`: brokers placed as observers, now or next, whether they vote now
    or not."""

    possible: tuple[tuple[BrokerId, ...], ...]
    hosts: tuple[BrokerId, ...]
    answers: Mapping[BrokerId, DescribeReplicaLogsResponse]
    heard: frozenset[BrokerId]
    needs_all: bool = False
    floor: int = 0
    observers: frozenset[BrokerId] = frozenset()

    def may_vote(self, broker: BrokerId) -> bool:
        """Whether it has a vote now, as far as is known."""
        return any(broker in voters for voters in self.possible)

    @property
    def silent(self) -> list[BrokerId]:
        """Brokers that should hold the log, do not answer, and are not heard by others."""
        return [one for one in self.hosts if one not in self.answers and one not in self.heard]

    def judge(self) -> Survivors:
        """What the answering replicas can do."""
        logs = [
            SurvivingLog(
                broker=broker,
                is_led=one.is_led,
                last_epoch=one.last_epoch,
                last_index=one.last_index,
                start=one.log_start_offset,
                committed=one.committed_offset,
                end=one.log_end_offset,
                has_lost=one.has_lost,
                leader=one.leader_id,
                epoch=one.epoch,
            )
            for broker, one in self.answers.items()
            if not one.error_code
        ]
        return assess(self.possible, logs, needs_all=self.needs_all, floor=self.floor)


def ask_leaderless_logs(client: Client, topics: Sequence[str] | None) -> dict[Name, ReplicaLogs]:
    """{(topic, partition): its logs}, for each partition of these topics, or of all, that has no
    leader. Every broker is asked once, whatever the number of partitions. Raises ClientError where
    there is no such topic."""
    view = client.metadata(topics)
    for topic in topics or ():
        if topic not in view.topics or not view.topics[topic].partitions:
            raise ClientError(f"topic {topic} does not exist; see `strandline topic list`")
    places = {
        (topic.name, one.index): one.replicas
        for topic in view.topics.values()
        for one in topic.partitions
        if one.leader not in view.brokers
    }
    if not places:
        return {}
    best = view.controller if view.controller in view.brokers else next(iter(view.brokers))
    told = _ask_about(client, {best: list(places)}).get(best, {})
    missing = [place for place in places if place not in told]
    if missing:
        raise CannotConnectError(f"broker {best} does not answer about {len(missing)} partitions")
    hosts = {
        place: tuple(
            sorted({*(one for each in told[place].possible for one in each.voters), *replicas})
        )
        for place, replicas in places.items()
    }
    asked: dict[BrokerId, list[Name]] = {}
    for place, brokers in hosts.items():
        for broker in map(BrokerId, brokers):
            asked.setdefault(broker, []).append(place)
    answers = _ask_about(client, asked)
    heard = frozenset(one.id for one in describe_brokers(client) if one.is_alive)
    observed = _observed_of(client, sorted({topic for topic, _ in places}))
    return {
        place: _replica_logs(
            told[place],
            tuple(map(BrokerId, hosts[place])),
            {broker: found[place] for broker, found in answers.items() if place in found},
            heard,
            observed.get(place, Observed()),
        )
        for place in sorted(places)
    }


def _ask_about(
    client: Client, asked: Mapping[BrokerId, Sequence[Name]]
) -> dict[BrokerId, dict[Name, DescribeReplicaLogsResponse]]:
    """{broker: {partition: its answer}}; each broker is asked about its partitions."""
    requests = {
        broker: [DescribeReplicaLogsRequest(topic=topic, partition=one) for topic, one in places]
        for broker, places in asked.items()
    }
    found = look_side_by_side(client, requests, DescribeReplicaLogsResponse)
    return {
        broker: dict(zip(asked[broker], answers, strict=False))
        for broker, answers in found.items()
        if answers
    }


def ask_replica_logs(client: Client, topic: str, partition: int) -> ReplicaLogs:
    """Ask each of the partition's brokers. Raises ClientError where there is no such partition."""
    indexes = {one.index: one for one in client.topic(topic).partitions}
    if partition not in indexes:
        raise ClientError(
            f"topic {topic} has no partition {partition}: its partitions are 0 to "
            f"{len(indexes) - 1}"
        )
    request = DescribeReplicaLogsRequest(topic=topic, partition=partition)

    def look(until: int) -> DescribeReplicaLogsResponse:
        found = client.ask_best_informed(request, DescribeReplicaLogsResponse, deadline_ms=until)
        if found.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION:
            raise refusal(found.error_code, f"{topic}-{partition}")
        return found

    found = client.attempt(look)
    voters = (BrokerId(one) for each in found.possible for one in each.voters)
    hosts = tuple(sorted({*voters, *map(BrokerId, indexes[partition].replicas)}))
    answers = look_at_each(client, hosts, request, DescribeReplicaLogsResponse)
    brokers = describe_brokers(client)
    heard = frozenset(one.id for one in brokers if one.is_alive)
    observed = _observed_of(client, [topic]).get((topic, partition), Observed())
    return _replica_logs(found, hosts, answers, heard, observed)


def _replica_logs(
    found: DescribeReplicaLogsResponse,
    hosts: tuple[BrokerId, ...],
    answers: Mapping[BrokerId, DescribeReplicaLogsResponse],
    heard: frozenset[BrokerId],
    observed: Observed,
) -> ReplicaLogs:
    """`found`: by the best-informed broker."""
    possible = tuple(tuple(map(BrokerId, one.voters)) for one in found.possible)
    newcomers = set(observed.wanted or ()).difference(*possible)
    observers = frozenset(newcomers.union(observed.present))
    return ReplicaLogs(possible, hosts, answers, heard, found.needs_all, found.floor, observers)


def _observed_of(client: Client, topics: Sequence[str]) -> AllObserved:
    """Their observers; none if unknown, because the logs count, not the names."""
    try:
        return describe_observers(client, topics)
    except StrandlineError:
        return {}
