"""What a lake job asks the cluster: ids of topics, where partitions begin and end, and the group
whose offsets show how far the job is.

Why:    a batch is planned by the driver before executors read; and a missing topic should be told
        before Spark starts.
How:    Strandline's own client, over the wire.
Owns:   one client; the committed offsets of the job's group."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self

from strandline.base.errors import ApiError, OperatorError, StrandlineError
from strandline.client.access import Access, AccessTransport
from strandline.client.admin import EARLIEST, LATEST, find_coordinator, list_offsets
from strandline.client.buckets.options import BucketOptions
from strandline.client.cluster import Client
from strandline.client.errors import CannotConnectError, refusal
from strandline.client.operations.configs import describe_configs
from strandline.client.rights import (
    MissingRightError,
    naming_right,
    require_group,
    require_topics,
)
from strandline.config.addresses import parse_bootstrap
from strandline.model.access import Kind, Operation
from strandline.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

TIMEOUT_MS = 30_000
COMMIT_TIMEOUT_MS = 10_000
NO_ID = "00000000-0000-0000-0000-000000000000"
"""The id of a topic whose brokers know no ids."""


@dataclass(frozen=True, slots=True)
class TopicSnapshot:
    """A topic at one moment: {partition: its first offset}, {partition: where it ends}."""

    id: str
    starts: Mapping[int, int]
    ends: Mapping[int, int]
    limits: Mapping[int, int] = field(default_factory=dict)
    """{partition: where its records in buckets end}, if the job reads nothing else."""

    def readable_end(self, partition: int) -> int:
        """Up to where the job may read a partition now."""
        end = self.ends[partition]
        return min(end, self.limits.get(partition, end))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The job's topics at one moment."""

    cluster_id: str
    topics: Mapping[str, TopicSnapshot]


class Questions(Protocol):
    """What a job asks, of `Cluster` or of `java_cluster.JavaCluster`."""

    def snapshot(self, topics: Sequence[str]) -> Snapshot:
        """See Cluster."""

    def offsets_at(self, topic: str, time_ms: int) -> dict[int, int]:
        """See Cluster."""

    def racks(self) -> set[str]:
        """See Cluster."""

    def commit(self, group: str, offsets: Mapping[str, Mapping[int, int]]) -> None:
        """See Cluster."""

    def lacks(self, group: str) -> str:
        """See Cluster."""


class Cluster:
    """Answers a job's questions; every operation raises StrandlineError after TIMEOUT_MS."""

    def __init__(
        self,
        bootstrap: str,
        buckets: BucketOptions | None = None,
        *,
        access: Access | None = None,
    ) -> None:
        self._buckets = buckets
        self._is_secured = access is not None
        self._is_readable = False
        try:
            addresses = parse_bootstrap(bootstrap)
        except ValueError as error:
            raise OperatorError(f"--bootstrap {error}") from error
        self._client = Client(
            addresses,
            timeout_ms=TIMEOUT_MS,
            client_id="strandline-lake",
            transport=AccessTransport(access),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def snapshot(self, topics: Sequence[str]) -> Snapshot:
        """Ids and offsets of the topics; OperatorError if one does not exist, or at first if a
        leader would refuse to read one."""
        if self._is_secured and not self._is_readable:
            require_topics(self._client, topics, Operation.READ)
            self._is_readable = True
        view = self._client.metadata(list(topics))
        found = {}
        for name in topics:
            with naming_right(self._client, Operation.READ, Kind.TOPIC, name):
                found[name] = self._topic(name)
        return Snapshot(view.cluster_id, found)

    def _topic(self, name: str) -> TopicSnapshot:
        ids = str(self._client.topic(name).id)
        starts = list_offsets(self._client, name, EARLIEST)
        ends = list_offsets(self._client, name, LATEST, isolation_level=1)
        return TopicSnapshot(ids, starts, ends, self._limits(name, ends))

    def _limits(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        if self._buckets is None or not self._buckets.is_exclusive:
            return {}
        from strandline.spark.reading.tiers import tiered_ends

        asked = [(topic, one) for one in partitions]
        found = tiered_ends(self._client, asked, self._buckets)
        return {partition: end for (_, partition), end in found.items()}

    def lacks(self, group: str) -> str:
        """Why brokers would not take the offsets of the job's group; empty if they would."""
        try:
            require_group(self._client, group)
        except MissingRightError as error:
            return f"the table is filled, and group {group} does not show how far: {error}"
        except StrandlineError:
            return ""  # If that lasts, the commit says so.
        return ""

    def check_ids(self, ids: Mapping[str, str]) -> None:
        """Raises OperatorError if a topic is not any more the one with this id."""
        self._client.metadata(list(ids))
        for name, known in ids.items():
            found = str(self._client.topic(name).id)
            if found != known:
                raise OperatorError(
                    f"topic {name} was made anew while its records were read (id {found}, not "
                    f"{known}): start the job again"
                )

    def offsets_at(self, topic: str, time_ms: int) -> dict[int, int]:
        """{partition: the first offset with this timestamp or a later one; -1: there is none}."""
        return list_offsets(self._client, topic, time_ms)

    def configured(self, topics: Sequence[str], key: str) -> dict[str, str]:
        """{topic: its value of a configuration key}; "" where brokers do not know the key."""
        found = {}
        for topic in topics:
            with naming_right(self._client, Operation.DESCRIBE_CONFIGS, Kind.TOPIC, topic):
                views = describe_configs(self._client, [topic], (key,))[topic]
            found[topic] = next((each.value for each in views if each.name == key), "")
        return found

    def racks(self) -> set[str]:
        """The racks (regions) of the brokers."""
        return {broker.rack for broker in self._client.metadata().brokers.values() if broker.rack}

    def commit(self, group: str, offsets: Mapping[str, Mapping[int, int]]) -> None:
        """Commits {topic: {partition: next offset}} for a group without members."""
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=-1,
            member_id="",
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[OffsetCommitRequestPartition(*pair) for pair in each.items()],
                )
                for topic, each in offsets.items()
            ],
        )

        def ask(until: int) -> None:
            coordinator = find_coordinator(self._client, group, until)
            answer = self._client.ask(coordinator, request, OffsetCommitResponse, deadline_ms=until)
            for topic in answer.topics:
                for partition in topic.partitions:
                    if partition.error_code:
                        raise refusal(partition.error_code, f"offsets of group {group}")

        now_ms = self._client.transport.monotonic_ms()
        with naming_right(self._client, Operation.READ, Kind.GROUP, group):
            self._client.attempt(ask, now_ms + COMMIT_TIMEOUT_MS)


def is_outage(error: StrandlineError) -> bool:
    """Whether an error may pass when brokers are back."""
    from strandline.protocol.errors import is_retriable

    if isinstance(error, ApiError):
        return is_retriable(error.code)
    return isinstance(error, CannotConnectError)
