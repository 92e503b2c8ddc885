"""Administers topics, groups and offsets.

How:    each function makes one request, or a few, within the client's deadline; `errors.refusal`
        words the `ApiError` of a refused request.
Source: kafka-protocol reference 7."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from strandline.base.errors import ApiError, ProtocolError
from strandline.client.brokers import LOOK_MS
from strandline.client.cluster import Client
from strandline.client.errors import CannotConnectError, refusal
from strandline.client.views import TopicView
from strandline.client.wire.side_by_side import look_side_by_side
from strandline.model.ids import BrokerId
from strandline.protocol.consumer import decode_assignment
from strandline.protocol.errors import Error
from strandline.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from strandline.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from strandline.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from strandline.protocol.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from strandline.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from strandline.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from strandline.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from strandline.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from strandline.protocol.table import NO_ID

LATEST = -1
EARLIEST = -2
USE_DEFAULT = -1


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create; -1 leaves partitions or replicas to the cluster's configuration."""

    name: str
    partitions: int = USE_DEFAULT
    replication_factor: int = USE_DEFAULT
    configs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group in the list of all."""

    id: str
    state: str
    protocol_type: str
    coordinator: BrokerId


@dataclass(frozen=True, slots=True)
class MemberView:
    """A member of a group, and the partitions it has been given: {topic: partitions}."""

    id: str
    client_id: str
    host: str
    assignment: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group. `offsets`: {(topic, partition): committed offset}."""

    id: str
    state: str
    protocol: str
    coordinator: BrokerId
    members: tuple[MemberView, ...]
    offsets: Mapping[tuple[str, int], int]


def create_topic(client: Client, topic: NewTopic) -> TopicView:
    """Create a topic and wait until every partition has a leader. A client that may create it and
    not see it gets a view with the error, at once."""
    until = client.deadline()
    _create(client, topic, until)
    try:
        client.leaders(topic.name, deadline_ms=until)
        return client.topic(topic.name, deadline_ms=until)
    except ApiError as error:
        if error.code != Error.TOPIC_AUTHORIZATION_FAILED:
            raise
        return TopicView(topic.name, NO_ID, is_internal=False, error_code=error.code, partitions=())


def check_topic(client: Client, topic: NewTopic, *, subject: str) -> None:
    """Ask whether a topic would be created, and create none; the refusal is about `subject`."""
    _create(client, topic, client.deadline(), subject=subject, validate_only=True)


def _create(
    client: Client,
    topic: NewTopic,
    until: int,
    *,
    subject: str = "",
    validate_only: bool = False,
) -> None:
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=topic.name,
                num_partitions=topic.partitions,
                replication_factor=topic.replication_factor,
                configs=[CreatableTopicConfig(name=key, value=text) for key, text in topic.configs],
            )
        ],
        timeout_ms=client.timeout_ms,
        validate_only=validate_only,
    )
    # Set when an answer was lost: then it may have been done already.
    was_asked = False

    def create(controller: BrokerId, until: int) -> None:
        nonlocal was_asked
        try:
            answer = client.ask(controller, request, CreateTopicsResponse, deadline_ms=until)
        except CannotConnectError:
            was_asked = True
            raise
        for one in answer.topics:
            if one.error_code == Error.TOPIC_ALREADY_EXISTS and was_asked:
                continue
            if one.error_code:
                about = subject or f"topic {one.name}"
                raise refusal(one.error_code, about, one.error_message)

    client.attempt_at_controller(create, until)


def delete_topic(client: Client, name: str) -> None:
    """Delete a topic with everything in it."""
    request = DeleteTopicsRequest(topic_names=[name], timeout_ms=client.timeout_ms)

    # Set when an answer was lost: then it may have been done already.
    was_asked = False

    def delete(controller: BrokerId, until: int) -> None:
        nonlocal was_asked
        try:
            answer = client.ask(controller, request, DeleteTopicsResponse, deadline_ms=until)
        except CannotConnectError:
            was_asked = True
            raise
        for one in answer.responses:
            if one.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION:
                if not was_asked:
                    client.topic(name, deadline_ms=until)  # Words it, or it is there after all.
                continue
            if one.error_code:
                raise refusal(one.error_code, f"topic {name}", one.error_message)

    client.attempt_at_controller(delete)


def list_offsets(
    client: Client,
    topic: str,
    timestamp: int,
    *,
    partitions: Sequence[int] | None = None,
    deadline_ms: int | None = None,
    isolation_level: int = 0,
) -> dict[int, int]:
    """{partition: offset} at a time in ms, at LATEST or at EARLIEST; -1 where there is none. With
    isolation level 1 LATEST is the last stable offset."""

    def look(until: int) -> dict[int, int]:
        leaders = client.leaders(topic, partitions, deadline_ms=until)
        offsets: dict[int, int] = {}
        for leader, led in _by_leader(leaders).items():
            request = _offsets_request(
                topic, led, timestamp, client.left_ms(until), isolation_level=isolation_level
            )
            answer = client.ask(leader, request, ListOffsetsResponse, deadline_ms=until)
            for one in _offsets_in(answer):
                if one.error_code:
                    raise refusal(one.error_code, f"partition {topic}-{one.partition_index}")
                offsets[one.partition_index] = one.offset
        return dict(sorted(offsets.items()))

    return client.attempt(look, deadline_ms)


def offsets_told(
    client: Client, topic: str, leaders: Mapping[int, BrokerId], timestamps: Sequence[int]
) -> list[dict[int, int]]:
    """For each timestamp {partition: offset}, for partitions whose leaders answer soon; in
    parallel. `leaders`: {partition: leader}."""
    requests = {
        leader: [_offsets_request(topic, led, when, LOOK_MS) for when in timestamps]
        for leader, led in _by_leader(leaders).items()
    }
    found: list[dict[int, int]] = [{} for _ in timestamps]
    for answers in look_side_by_side(client, requests, ListOffsetsResponse).values():
        for offsets, answer in zip(found, answers, strict=False):
            told = {
                one.partition_index: one.offset for one in _offsets_in(answer) if not one.error_code
            }
            offsets.update(told)
    return found


def _by_leader(leaders: Mapping[int, BrokerId]) -> dict[BrokerId, list[int]]:
    """{leader: the partitions that it leads}, by id."""
    led: dict[BrokerId, list[int]] = {leader: [] for leader in sorted(set(leaders.values()))}
    for index, leader in leaders.items():
        led[leader].append(index)
    return led


def _offsets_in(answer: ListOffsetsResponse) -> Iterator[ListOffsetsPartitionResponse]:
    return (one for name in answer.topics for one in name.partitions)


def _offsets_request(
    topic: str,
    partitions: Sequence[int],
    timestamp: int,
    timeout_ms: int,
    *,
    isolation_level: int = 0,
) -> ListOffsetsRequest:
    asked = [ListOffsetsPartition(partition_index=one, timestamp=timestamp) for one in partitions]
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[ListOffsetsTopic(name=topic, partitions=asked)],
        timeout_ms=timeout_ms,
    )


def delete_records(client: Client, topic: str, partition: int, before: int) -> int:
    """Delete the records of a partition below an offset, or all that can be read with LATEST;
    returns where the partition begins then."""

    def attempt(until: int) -> int:
        leader = client.leaders(topic, [partition], deadline_ms=until)[partition]
        asked = DeleteRecordsPartition(partition_index=partition, offset=before)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=topic, partitions=[asked])],
            timeout_ms=client.left_ms(until),
        )
        answer = client.ask(leader, request, DeleteRecordsResponse, deadline_ms=until)
        (result,) = answer.topics[0].partitions
        if result.error_code == Error.OFFSET_OUT_OF_RANGE:
            raise ApiError(
                result.error_code, f"partition {topic}-{partition} has no offset {before} yet"
            )
        if result.error_code == Error.POLICY_VIOLATION:
            raise ApiError(
                result.error_code,
                f"topic {topic} is compacted: set cleanup.policy to delete, or compact,delete",
            )
        if result.error_code:
            raise refusal(result.error_code, f"partition {topic}-{partition}")
        return result.low_watermark

    return client.attempt(attempt)


def list_groups(client: Client, brokers: Collection[BrokerId] | None = None) -> list[GroupListing]:
    """Every group of the cluster, by name; `brokers`: those that they coordinate."""

    def look(until: int) -> list[GroupListing]:
        groups = []
        for broker in client.metadata(deadline_ms=until).brokers:
            if brokers is not None and broker not in brokers:
                continue
            answer = client.ask(broker, ListGroupsRequest(), ListGroupsResponse, deadline_ms=until)
            if answer.error_code:
                raise refusal(answer.error_code, f"the groups of broker {broker}")
            groups += [
                GroupListing(
                    id=one.group_id,
                    state=one.group_state,
                    protocol_type=one.protocol_type,
                    coordinator=broker,
                )
                for one in answer.groups
            ]
        return sorted(groups, key=lambda group: group.id)

    return client.attempt(look)


def describe_group(client: Client, group: str) -> GroupView:
    """A group with its members and committed offsets; state "Dead" when there is none."""

    def look(until: int) -> GroupView:
        coordinator = find_coordinator(client, group, until)
        answer = client.ask(
            coordinator,
            DescribeGroupsRequest(groups=[group]),
            DescribeGroupsResponse,
            deadline_ms=until,
        )
        (described,) = answer.groups
        if described.error_code == Error.GROUP_ID_NOT_FOUND:
            raise ApiError(described.error_code, f"group {group} does not exist")
        if described.error_code:
            raise refusal(described.error_code, f"group {group}")
        return GroupView(
            id=group,
            state=described.group_state,
            protocol=described.protocol_data,
            coordinator=coordinator,
            members=tuple(
                MemberView(
                    id=one.member_id,
                    client_id=one.client_id,
                    host=one.client_host.removeprefix("/"),
                    assignment=_assignment(described.protocol_type, one.member_assignment),
                )
                for one in described.members
            ),
            offsets=_committed_offsets(client, coordinator, group, until),
        )

    return client.attempt(look)


def find_coordinator(client: Client, group: str, until: int) -> BrokerId:
    """The coordinator of a group; the first request in a cluster creates the offsets topic."""
    client.metadata(deadline_ms=until)
    answer = client.ask_any(
        FindCoordinatorRequest(key=group), FindCoordinatorResponse, deadline_ms=until
    )
    if answer.error_code:
        raise refusal(answer.error_code, f"group {group}", answer.error_message)
    return BrokerId(answer.node_id)


def _committed_offsets(
    client: Client, coordinator: BrokerId, group: str, until: int
) -> dict[tuple[str, int], int]:
    request = OffsetFetchRequest(group_id=group, topics=None)
    answer = client.ask(coordinator, request, OffsetFetchResponse, deadline_ms=until)
    if answer.error_code:
        raise refusal(answer.error_code, f"offsets of group {group}")
    return {
        (topic.name, one.partition_index): one.committed_offset
        for topic in answer.topics
        for one in topic.partitions
        if one.committed_offset >= 0
    }


def _assignment(protocol_type: str, blob: bytes) -> dict[str, tuple[int, ...]]:
    """What a member's assignment says, where it is a consumer's."""
    if protocol_type != "consumer" or not blob:
        return {}
    try:
        decoded = decode_assignment(blob)
    except ProtocolError:
        return {}
    return {one.topic: tuple(one.partitions) for one in decoded.assigned_partitions}
