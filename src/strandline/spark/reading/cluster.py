"""What planning asks a cluster: which partitions there are, and offsets by edge or by time.

How:    one Metadata request, then one ListOffsets request to each leader; repeated after errors
        that a retry mends, until kafka.default.api.timeout.ms is over.
Owns:   the client's connections.
Source: Kafka's Metadata and ListOffsets APIs."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from strandline.base.errors import OperatorError
from strandline.client.access import AccessTransport
from strandline.client.cluster import Client
from strandline.client.errors import refusal
from strandline.client.rights import naming_right, require_topics
from strandline.client.views import ClusterView, TopicView
from strandline.model.access import Kind, Operation
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error
from strandline.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from strandline.spark.reading.bounds import TopicPartition, name_of
from strandline.spark.reading.options import ReachOptions, Subscription

READ_COMMITTED = 1


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that is read. `id`: its UUID as text, empty where the cluster gives topics none."""

    name: str
    id: str
    partitions: tuple[int, ...]


def connect(reach: ReachOptions) -> Client:
    """A client for planning."""
    return Client(
        reach.bootstrap,
        client_id=reach.client_id,
        timeout_ms=reach.plan_timeout_ms,
        transport=AccessTransport(reach.access),
    )


def id_text(topic_id: UUID) -> str:
    """A topic's id as splits and offsets have it; empty for the id that means none."""
    return str(topic_id) if topic_id.int else ""


class ClusterReader:
    """See the module."""

    def __init__(self, client: Client, *, read_committed: bool) -> None:
        self._client = client
        self._isolation = READ_COMMITTED if read_committed else 0

    def topics(self, subscription: Subscription, *, missing_ok: bool = False) -> dict[str, Topic]:
        """{name: topic} of what is subscribed to, by name. Raises OperatorError for a topic or
        partition that does not exist, unless `missing_ok`."""
        if subscription.pattern:
            return self._matching(subscription.pattern)
        assigned = subscription.assigned
        names = subscription.topics if assigned is None else tuple(assigned)
        found: dict[str, Topic] = {}
        for name in sorted(names):
            view = self._existing(name, missing_ok=missing_ok)
            if view is None:
                continue
            partitions = tuple(one.index for one in view.partitions)
            if assigned is not None:
                absent = sorted(set(assigned[name]) - set(partitions))
                if absent and not missing_ok:
                    raise OperatorError(
                        f"assign: topic {name} has no partition {absent[0]}: its partitions are 0 "
                        f"to {len(partitions) - 1}"
                    )
                partitions = tuple(one for one in assigned[name] if one in partitions)
            found[name] = Topic(name, id_text(view.id), partitions)
        return found

    def _matching(self, pattern: str) -> dict[str, Topic]:
        """Topics whose whole name matches; none of the cluster's own."""
        view = self._client.metadata(None)
        return {
            name: Topic(name, id_text(topic.id), tuple(one.index for one in topic.partitions))
            for name, topic in sorted(view.topics.items())
            if re.fullmatch(pattern, name) and not topic.is_internal and not topic.error_code
        }

    def _existing(self, name: str, *, missing_ok: bool) -> TopicView | None:
        view = self._client.metadata([name]).topics.get(name)
        if view is None or view.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION:
            if missing_ok:
                return None
            # Asks again for a moment: a new topic may not have reached each broker.
            return self._client.topic(name)
        if view.error_code not in (Error.NONE, Error.LEADER_NOT_AVAILABLE):
            with naming_right(self._client, Operation.READ, Kind.TOPIC, name):
                raise refusal(view.error_code, f"topic {name}")
        return view

    def require_readable(self, topics: Iterable[str]) -> None:
        """Raises MissingRightError if a leader would refuse to read a topic to this client, as far
        as the client has proved who it is."""
        transport = self._client.transport
        if isinstance(transport, AccessTransport) and transport.is_secured:
            require_topics(self._client, sorted(topics), Operation.READ)

    def offsets(self, asked: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """{partition: offset} for {partition: EARLIEST, LATEST or a time in ms}; -1 where no record
        is at or after the time. LATEST is the last stable offset for read_committed."""
        if not asked:
            return {}
        found: dict[TopicPartition, int] = {}

        def ask(until: int) -> None:
            left = {one: when for one, when in asked.items() if one not in found}
            for leader, partitions in self._by_leader(left, until).items():
                request = self._request(
                    {one: left[one] for one in partitions}, self._client.left_ms(until)
                )
                answer = self._client.ask(leader, request, ListOffsetsResponse, deadline_ms=until)
                self._take(answer, found)

        self._client.attempt(ask)
        return {one: found[one] for one in sorted(asked)}

    def _by_leader(
        self, partitions: Iterable[TopicPartition], until: int
    ) -> dict[BrokerId, list[TopicPartition]]:
        wanted = sorted(partitions)
        view = self._client.metadata(sorted({topic for topic, _ in wanted}), deadline_ms=until)
        led: dict[BrokerId, list[TopicPartition]] = defaultdict(list)
        for partition in wanted:
            led[leader_in(view, partition)].append(partition)
        return led

    def _request(self, asked: Mapping[TopicPartition, int], timeout_ms: int) -> ListOffsetsRequest:
        topics: dict[str, list[ListOffsetsPartition]] = defaultdict(list)
        for (topic, partition), when in asked.items():
            topics[topic].append(ListOffsetsPartition(partition_index=partition, timestamp=when))
        return ListOffsetsRequest(
            replica_id=-1,
            isolation_level=self._isolation,
            topics=[ListOffsetsTopic(name=name, partitions=each) for name, each in topics.items()],
            timeout_ms=timeout_ms,
        )

    def _take(self, answer: ListOffsetsResponse, found: dict[TopicPartition, int]) -> None:
        for topic in answer.topics:
            for one in topic.partitions:
                if one.error_code:
                    place = name_of((topic.name, one.partition_index))
                    with naming_right(self._client, Operation.DESCRIBE, Kind.TOPIC, topic.name):
                        raise refusal(one.error_code, f"partition {place}")
                found[topic.name, one.partition_index] = one.offset


def leader_in(view: ClusterView, partition: TopicPartition) -> BrokerId:
    """The leader of a partition. Raises the refusal that brokers would give if there is none."""
    topic, index = partition
    found = view.topics.get(topic)
    if found is None or found.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION:
        raise refusal(Error.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic}")
    if found.error_code not in (Error.NONE, Error.LEADER_NOT_AVAILABLE):
        raise refusal(found.error_code, f"topic {topic}")
    for one in found.partitions:
        if one.index == index:
            if one.leader not in view.brokers:
                raise refusal(Error.LEADER_NOT_AVAILABLE, f"partition {name_of(partition)}")
            return one.leader
    raise refusal(Error.UNKNOWN_TOPIC_OR_PARTITION, f"partition {name_of(partition)}")
