"""What buckets hold, from the leaders of the partitions.

Source: decision 0058."""

from collections.abc import Collection, Sequence
from typing import NamedTuple
from uuid import UUID

from strandline.base.errors import StrandlineError
from strandline.client.cluster import Client
from strandline.client.errors import ClientError, refusal
from strandline.client.rights import missing_right
from strandline.model.access import Kind, Operation
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error, message_of
from strandline.protocol.messages.describe_tier import (
    DescribeTierRequest,
    DescribeTierResponse,
    TierBucketTraffic,
    TierPartitionStatus,
)
from strandline.protocol.messages.repair_object import RepairObjectRequest, RepairObjectResponse
from strandline.tiered.collection.collect import Answer, UncertainError
from strandline.tiered.collection.orphans import Place
from strandline.tiered.state.commands import Checkpoint
from strandline.tiered.state.encoding import UnknownRecordError, decode

REPAIR_MS_MAX = 600_000
"""A leader has so long to put an object again."""
ATTEMPTS_MAX = 3
"""A leader that has moved meanwhile is looked for again."""


class UnknownTopicError(UncertainError):
    """The controller knows neither the topic nor that it was deleted."""


class TierStatus(NamedTuple):
    """`partitions`: those that buckets have or should have records of, in order; `missing`: what is
    not known, and why; `traffic`: what each broker has asked of each bucket since it started."""

    partitions: list[TierPartitionStatus]
    missing: list[str]
    traffic: list[TierBucketTraffic]


def tier_status(client: Client, topics: Sequence[str] = ()) -> TierStatus:
    """Every partition of these topics, or of all, that has to do with buckets."""
    view = client.metadata(sorted(topics) if topics else None)
    for name in topics:
        topic = view.topics.get(name)
        if topic is None or topic.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION:
            raise ClientError(f"topic {name} does not exist; see `strandline topic list`")
    found: dict[tuple[str, int], TierPartitionStatus] = {}
    missing = [
        f"{topic.name}-{one.index} has no leader"
        for topic in view.topics.values()
        for one in topic.partitions
        if one.leader not in view.brokers
    ]
    traffic: list[TierBucketTraffic] = []
    request = DescribeTierRequest(topics=list(topics))
    for broker in view.brokers:
        answer = client.look(broker, request, DescribeTierResponse)
        if answer is None:
            missing.append(f"broker {broker} does not answer for what it leads")
            continue
        if answer.error_code:
            raise refusal(answer.error_code, "what buckets have")
        traffic += answer.traffic
        for row in answer.partitions:
            known = found.get((row.topic, row.partition))
            if known is None or known.leader_epoch < row.leader_epoch:
                found[row.topic, row.partition] = row
    return TierStatus([found[name] for name in sorted(found)], missing, traffic)


def tier_state(client: Client, place: Place, *, cluster_id: str = "") -> Checkpoint | None:
    """The whole state of a partition, from its present leader; None if the controller says that
    the topic was deleted. `cluster_id`: brokers of another cluster do not count. Raises
    UnknownTopicError if the controller knows neither the topic nor its deletion, UncertainError if
    neither answers now."""
    found = tier_partition(client, place, cluster_id=cluster_id)
    return None if found is None else found[1]


def tier_partition(
    client: Client, place: Place, *, cluster_id: str = ""
) -> tuple[TierPartitionStatus, Checkpoint] | None:
    """The same, and how far the partition and its log are at that moment."""
    reason = "no broker answers"
    for _ in range(ATTEMPTS_MAX):
        view = client.metadata(None)
        topic = next((one for one in view.topics.values() if one.id == place.topic_id), None)
        target = view.controller
        if topic is not None:
            if place.partition >= len(topic.partitions):
                raise UncertainError(f"topic {topic.name} has no partition {place.partition}")
            target = topic.partitions[place.partition].leader
        answer = _ask(client, target, place.topic_id, place.partition)
        if answer is None:
            reason = f"broker {target} does not answer" if target >= 0 else "no leader is known"
        elif cluster_id and answer.cluster_id != cluster_id:
            raise UncertainError(f"broker {target} is of cluster {answer.cluster_id}")
        elif answer.error_code == Error.UNKNOWN_TOPIC_ID:
            return None
        elif topic is None and answer.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION:
            raise UnknownTopicError(
                f"the cluster knows neither a topic with the id {place.topic_id} nor its deletion"
            )
        elif topic is not None and answer.error_code == Error.TOPIC_AUTHORIZATION_FAILED:
            raise UncertainError(str(missing_right(client, Operation.READ, Kind.TOPIC, topic.name)))
        elif answer.error_code:
            reason = f"broker {target}: {message_of(answer.error_code)}"
        else:
            return answer.partitions[0], _state_of(answer)
    raise UncertainError(reason)


def repair_object(client: Client, place: Place, bucket: str, name: str) -> RepairObjectResponse:
    """Have the partition's leader put an object again. Raises UncertainError."""
    request = RepairObjectRequest(place.topic_id, place.partition, bucket, name)
    reason = "no leader is known"
    for _ in range(ATTEMPTS_MAX):
        view = client.metadata(None)
        topic = next((one for one in view.topics.values() if one.id == place.topic_id), None)
        if topic is None or place.partition >= len(topic.partitions):
            raise UncertainError("there is no such partition any more")
        leader = topic.partitions[place.partition].leader
        if leader < 0:
            continue
        until = client.transport.monotonic_ms() + REPAIR_MS_MAX
        try:
            answer = client.ask(leader, request, RepairObjectResponse, deadline_ms=until)
        except StrandlineError as error:
            reason = f"broker {leader}: {error}"
            continue
        if not answer.error_code:
            return answer
        reason = f"broker {leader}: {answer.error_message or message_of(answer.error_code)}"
    raise UncertainError(reason)


def known_objects(
    client: Client, place: Place, bucket: str, *, cluster_id: str, deleted: Collection[UUID] = ()
) -> Answer:
    """The names of all objects that a partition's log has in a bucket. `deleted`: topics that the
    operator takes for deleted if the cluster does not know them. Raises UncertainError."""
    try:
        state = tier_state(client, place, cluster_id=cluster_id)
    except UnknownTopicError as error:
        if place.topic_id not in deleted:
            raise UncertainError(
                f"{error}; if it was deleted long ago: --deleted-topic {place.topic_id}"
            ) from None
        state = None
    if state is None:
        return Answer((), is_topic_gone=True)
    names: set[str] = set()
    for image in state.buckets:
        if image.bucket == bucket:
            names.update(one.name for one in image.live)
            names.update(one.name for one in image.intents)
            names.update(one.name for one in image.removals)
            if image.replacement is not None:
                names.add(image.replacement.name)
    return Answer(names)


def _ask(
    client: Client, broker: BrokerId, topic_id: UUID, partition: int
) -> DescribeTierResponse | None:
    if broker < 0:
        return None
    request = DescribeTierRequest(topic_id=topic_id, partition=partition)
    return client.look(broker, request, DescribeTierResponse)


def _state_of(answer: DescribeTierResponse) -> Checkpoint:
    (row,) = answer.partitions
    try:
        state = decode(row.state or b"")
    except UnknownRecordError as error:
        raise UncertainError(f"broker {answer.broker_id}: {error}") from None
    if not isinstance(state, Checkpoint):
        raise UncertainError(f"broker {answer.broker_id} gives no state")
    return state
