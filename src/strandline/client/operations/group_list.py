"""Lists consumer groups, and says whose list is incomplete.

Why:    a coordinator that is silent is named by no metadata; a list without its groups looks whole,
        and an operator takes the groups for deleted.
How:    all brokers are asked in parallel, with a short timeout. The partitions of
        `__consumer_offsets` say which coordinators there should be.
Source: Kafka's ListGroups."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from strandline.client.admin import GroupListing
from strandline.client.cluster import Client
from strandline.client.wire.side_by_side import look_at_each
from strandline.model.ids import NO_BROKER, BrokerId
from strandline.protocol.errors import Error
from strandline.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse

OFFSETS_TOPIC = "__consumer_offsets"
LOADING_MS = 5_000
"""How long coordinators that are loading groups are waited for."""
LOADING_PAUSE_MS = 200


@dataclass(frozen=True, slots=True)
class FoundGroups:
    """Groups by name. `missing`: {coordinator that did not answer, or NO_BROKER: the partitions of
    `__consumer_offsets` whose groups are missing}; `partition_count`: of that topic."""

    groups: Sequence[GroupListing]
    missing: Mapping[BrokerId, Sequence[int]]
    partition_count: int

    @property
    def missing_partitions(self) -> list[int]:
        """All partitions whose groups are missing."""
        return sorted(one for some in self.missing.values() for one in some)


def find_groups(client: Client) -> FoundGroups:
    """Every group whose coordinator answers soon."""
    view = client.metadata([OFFSETS_TOPIC])
    offsets = view.topics.get(OFFSETS_TOPIC)
    partitions = () if offsets is None else offsets.partitions
    found = _ask(client, view.brokers)
    answers = {broker: answer for broker, answer in found.items() if not answer.error_code}
    missing: dict[BrokerId, list[int]] = {}
    for one in partitions:
        if one.leader not in answers:
            leader = one.leader if one.leader in view.brokers else NO_BROKER
            missing.setdefault(leader, []).append(one.index)
    groups = [
        GroupListing(
            id=one.group_id,
            state=one.group_state,
            protocol_type=one.protocol_type,
            coordinator=broker,
        )
        for broker, answer in found.items()
        for one in answer.groups
    ]
    return FoundGroups(sorted(groups, key=lambda one: one.id), missing, len(partitions))


def _ask(client: Client, brokers: Iterable[BrokerId]) -> dict[BrokerId, ListGroupsResponse]:
    """What they answer; those that are loading groups are asked again for a while."""
    found = look_at_each(client, brokers, ListGroupsRequest(), ListGroupsResponse)
    until_ms = client.transport.monotonic_ms() + min(client.timeout_ms, LOADING_MS)
    while client.transport.monotonic_ms() < until_ms:
        loading = [
            broker
            for broker, answer in found.items()
            if answer.error_code == Error.COORDINATOR_LOAD_IN_PROGRESS
        ]
        if not loading:
            break
        client.transport.sleep_ms(LOADING_PAUSE_MS)
        found |= look_at_each(client, loading, ListGroupsRequest(), ListGroupsResponse)
    return found
