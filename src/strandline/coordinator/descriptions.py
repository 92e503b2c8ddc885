"""Descriptions of groups for operators and tools: one group, the list, the committed offsets.

Source: Kafka's DescribeGroups, ListGroups, OffsetFetch (KIP-518 states, KIP-848 types)."""

import msgspec

from strandline.coordinator.group import Group, GroupState

CLASSIC_GROUP_TYPE = "classic"


class DescribedMember(msgspec.Struct, frozen=True, kw_only=True):
    """A member; metadata only while the group is stable. `assignment`: the last that it got."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class DescribedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A group and its members; `protocol` only while it is stable."""

    group: str
    state: str
    protocol_type: str
    protocol: str = ""
    members: tuple[DescribedMember, ...] = ()


class ListedGroup(msgspec.Struct, frozen=True):
    """A row of the list of groups."""

    group: str
    state: str
    protocol_type: str
    type: str = CLASSIC_GROUP_TYPE


def describe(group: Group) -> DescribedGroup:
    """The full description of a group."""
    is_stable = group.state is GroupState.STABLE
    name = (group.protocol_name or "") if is_stable else ""
    return DescribedGroup(
        group=group.id,
        state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol=name,
        members=tuple(
            DescribedMember(
                member_id=member.id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                metadata=member.protocols.get(name, b"") if is_stable else b"",
                assignment=member.assignment,
            )
            for member in group.roster
        ),
    )


def list_one(group: Group) -> ListedGroup:
    """A group as a row of the list."""
    return ListedGroup(group.id, group.state.value, group.protocol_type or "")
