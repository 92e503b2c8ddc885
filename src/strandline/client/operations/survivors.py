"""The logs left of a partition, from every broker that may hold one.

How:    the broker that knows the newest decisions of the controller names the possible voters; then
        each of them, and each observer, reports its own log, in parallel and with a short timeout.
        The result says what the answering replicas can do, and which would be given up.
Source: decisions 0026 and 0027."""

from collections.abc import Mapping
from dataclasses import dataclass

from strandline.base.errors import StrandlineError
from strandline.client.cluster import Client
from strandline.client.errors import ClientError, refusal
from strandline.client.operations.observers import Observed, describe_observers
from strandline.client.operations.topology import describe_brokers
from strandline.client.wire.side_by_side import look_at_each
from strandline.controller.arbitration.survivors import SurvivingLog, Survivors, assess
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_replica_logs import (
    DescribeReplicaLogsRequest,
    DescribeReplicaLogsResponse,
)


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
    possible = tuple(tuple(map(BrokerId, one.voters)) for one in found.possible)
    voters = (one for each in possible for one in each)
    hosts = tuple(sorted({*voters, *map(BrokerId, indexes[partition].replicas)}))
    answers = look_at_each(client, hosts, request, DescribeReplicaLogsResponse)
    brokers = describe_brokers(client)
    heard = frozenset(one.id for one in brokers if one.is_alive)
    observed = _observed(client, topic, partition)
    newcomers = set(observed.wanted or ()).difference(*possible)
    observers = frozenset(newcomers.union(observed.present))
    return ReplicaLogs(possible, hosts, answers, heard, found.needs_all, found.floor, observers)


def _observed(client: Client, topic: str, partition: int) -> Observed:
    """Its observers; empty if unknown, because the logs count, not the names."""
    try:
        return describe_observers(client, [topic]).get((topic, partition), Observed())
    except StrandlineError:
        return Observed()
