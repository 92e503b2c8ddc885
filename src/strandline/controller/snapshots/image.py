"""The controller's state as a list of parts, and the state made of them again.

Why:    a snapshot is written while the state goes on: it needs a copy, taken at one moment, whose
        parts are encoded one after the other without holding up the broker.
How:    state --`capture`--> image --`parts`--> HeadPart, BrokersPart, TopicsPart..., GroupsPart...
        parts --`Builder.add`--> state
        `capture` copies containers only: brokers, partitions and bootstraps are immutable.
            What other fields say is not stored: `topic_names`, `groups`, `moving`. Fields may be
        added with a default; a field is never given another meaning.
Owns:   nothing.
Source: decision 0062; Raft thesis, section 5 (log compaction)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from uuid import UUID

import msgspec

from strandline.config.cluster import SECRET_CLUSTER_KEYS
from strandline.controller.state import ControllerState, Directory, GroupBootstrap
from strandline.model.access import Access, QuotaEntity, Rule, ScramSecret
from strandline.model.cluster import (
    Broker,
    BucketIdentity,
    Cluster,
    Domain,
    Outage,
    Partition,
    Roles,
    Topic,
)
from strandline.model.ids import BrokerId, GroupId

TOPICS_COUNT = 200
GROUPS_COUNT = 200
"""Topics and groups in one part, at most: encoding one takes about a millisecond."""
ACCESS_COUNT = 1_000
"""Rules, secrets or quotas in one part, at most."""


class HeadPart(msgspec.Struct, frozen=True, tag_field="kind", tag="head"):
    """What the cluster has once. Fields as in `model.cluster.Cluster`."""

    cluster_id: str
    next_group: int
    next_producer_id: int
    version: int
    rules_version: int
    outages_version: int
    cluster_configs: dict[str, str]
    broker_configs: dict[BrokerId, dict[str, str]]
    silent_ms: dict[BrokerId, int]
    silent_since_ms: dict[BrokerId, int]
    outages: list[tuple[Domain, Outage]]
    displaced: dict[GroupId, Roles]
    returning: dict[GroupId, Roles]
    deleted_tiered: dict[UUID, str] = {}
    buckets: dict[str, BucketIdentity] = {}


class BrokersPart(msgspec.Struct, frozen=True, tag_field="kind", tag="brokers"):
    """The registered brokers. `directories` and `started` as in `ControllerState`."""

    brokers: list[Broker]
    directories: dict[BrokerId, Directory]
    started: dict[BrokerId, int]


class TopicsPart(msgspec.Struct, frozen=True, tag_field="kind", tag="topics"):
    """Topics without their partitions."""

    topics: list[Topic]


class GroupsPart(msgspec.Struct, frozen=True, tag_field="kind", tag="groups"):
    """Partitions in the order of their groups; the same place of each list is of one group."""

    partitions: list[Partition]
    bootstraps: list[GroupBootstrap]
    rejoins: list[dict[BrokerId, int]]


class AccessPart(msgspec.Struct, frozen=True, tag_field="kind", tag="access"):
    """What principals may do. Only clusters with such state have these parts; the version of the
    last change is in each."""

    version: int
    rules: list[Rule]
    secrets: list[ScramSecret]
    quotas: list[tuple[QuotaEntity, dict[str, float]]]


Part = HeadPart | BrokersPart | TopicsPart | GroupsPart | AccessPart


@dataclass(frozen=True, slots=True)
class Image:
    """A copy of the state at one moment."""

    head: HeadPart
    brokers: BrokersPart
    topics: list[Topic]
    groups: list[Partition]
    bootstraps: dict[GroupId, GroupBootstrap]
    rejoins: dict[GroupId, dict[BrokerId, int]]
    access: Access

    def parts(self) -> Iterator[Part]:
        """All parts in order."""
        yield self.head
        yield self.brokers
        for first in range(0, len(self.topics), TOPICS_COUNT):
            yield TopicsPart(self.topics[first : first + TOPICS_COUNT])
        for first in range(0, len(self.groups), GROUPS_COUNT):
            some = self.groups[first : first + GROUPS_COUNT]
            yield GroupsPart(
                some,
                [self.bootstraps[one.group] for one in some],
                [self.rejoins.get(one.group, {}) for one in some],
            )
        yield from self._access_parts()

    def without_secrets(self) -> "Image":
        """The same for readers that must not learn anything of passwords, nor the values of keys
        that are secret."""
        secrets = {
            key: msgspec.structs.replace(one, salt=b"", stored_key=b"", server_key=b"")
            for key, one in self.access.secrets.items()
        }
        shown = {
            name: value
            for name, value in self.head.cluster_configs.items()
            if name not in SECRET_CLUSTER_KEYS
        }
        head = msgspec.structs.replace(self.head, cluster_configs=shown)
        return replace(self, head=head, access=replace(self.access, secrets=secrets))

    def _access_parts(self) -> Iterator[AccessPart]:
        access, step = self.access, ACCESS_COUNT
        rules, secrets = list(access.rules), list(access.secrets.values())
        quotas = list(access.quotas.items())
        for first in range(0, len(rules), step):
            yield AccessPart(access.version, rules[first : first + step], [], [])
        for first in range(0, len(secrets), step):
            yield AccessPart(access.version, [], secrets[first : first + step], [])
        for first in range(0, len(quotas), step):
            yield AccessPart(access.version, [], [], quotas[first : first + step])


def capture(state: ControllerState) -> Image:
    """A copy of the state as it is now."""
    cluster = state.cluster
    head = HeadPart(
        cluster_id=cluster.cluster_id,
        next_group=cluster.next_group,
        next_producer_id=cluster.next_producer_id,
        version=cluster.version,
        rules_version=cluster.rules_version,
        outages_version=cluster.outages_version,
        cluster_configs=dict(cluster.cluster_configs),
        broker_configs={one: dict(values) for one, values in cluster.broker_configs.items()},
        silent_ms=dict(cluster.silent_ms),
        silent_since_ms=dict(cluster.silent_since_ms),
        outages=list(cluster.outages.items()),
        displaced=dict(cluster.displaced),
        returning=dict(cluster.returning),
        deleted_tiered=dict(cluster.deleted_tiered),
        buckets=dict(cluster.buckets),
    )
    return Image(
        head,
        BrokersPart(list(cluster.brokers.values()), dict(state.directories), dict(state.started)),
        [
            replace(topic, partitions=[], configs=dict(topic.configs))
            for topic in cluster.topics.values()
        ],
        list(cluster.groups.values()),
        dict(state.bootstraps),
        {group: dict(known) for group, known in state.rejoins.items()},
        Access(
            dict(cluster.access.rules),
            dict(cluster.access.secrets),
            {entity: dict(values) for entity, values in cluster.access.quotas.items()},
            cluster.access.version,
        ),
    )


class Builder:
    """Makes a state of the parts of one snapshot, added in their order."""

    def __init__(self) -> None:
        self.state = ControllerState()
        self._adders = {
            HeadPart: self._add_head,
            BrokersPart: self._add_brokers,
            TopicsPart: self._add_topics,
            GroupsPart: self._add_groups,
            AccessPart: self._add_access,
        }

    def add(self, part: Part) -> None:
        """Add the next part."""
        self._adders[type(part)](part)  # type: ignore[operator]

    def _add_head(self, head: HeadPart) -> None:
        cluster = self.state.cluster
        cluster.outages.update(head.outages)
        for name in head.__struct_fields__:
            if name != "outages":
                setattr(cluster, name, getattr(head, name))

    def _add_brokers(self, part: BrokersPart) -> None:
        self.state.cluster.brokers.update({one.id: one for one in part.brokers})
        self.state.directories.update(part.directories)
        self.state.started.update(part.started)

    def _add_topics(self, part: TopicsPart) -> None:
        cluster = self.state.cluster
        for topic in part.topics:
            cluster.topics[topic.name] = topic
            cluster.topic_names[topic.id] = topic.name

    def _add_groups(self, part: GroupsPart) -> None:
        state = self.state
        cluster: Cluster = state.cluster
        for partition, bootstrap, rejoins in zip(
            part.partitions, part.bootstraps, part.rejoins, strict=True
        ):
            group = partition.group
            topic = cluster.topics[partition.topic]
            assert partition.index == len(topic.partitions), partition.name
            topic.partitions.append(partition)
            cluster.groups[group] = partition
            state.bootstraps[group] = bootstrap
            if rejoins:
                state.rejoins[group] = rejoins
            if partition.is_moving:
                cluster.moving.add(group)

    def _add_access(self, part: AccessPart) -> None:
        access = self.state.cluster.access
        access.version = part.version
        access.rules.update(dict.fromkeys(part.rules))
        access.secrets.update({(one.user, one.mechanism): one for one in part.secrets})
        access.quotas.update(part.quotas)
