"""What a lake job asks a cluster that wants TLS or a login: by Kafka's own client, in Spark's Java.

Why:    Strandline's client speaks over plain connections only. The connector's client is there
        anyhow, and takes the very properties that the executors read with.
How:    Kafka's admin client through py4j; Spark starts before the job looks at its topics.
Owns:   one admin client. No error shows a secret.
Source: org.apache.kafka.clients.admin.Admin of kafka-clients 3.9."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

from strandline.base.errors import OperatorError
from strandline.client.errors import CannotConnectError
from strandline.pipeline.lake.cluster import COMMIT_TIMEOUT_MS, TIMEOUT_MS, Snapshot, TopicSnapshot
from strandline.pipeline.lake.kafka_settings import without_secrets
from strandline.pipeline.lake.options import LakeOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

PASSING = ("Timeout", "Disconnect", "Network", "NotAvailable", "NotController", "NotCoordinator",
           "NotLeader", "LoadInProgress", "UnknownServer")  # fmt: skip
"""Words in the names of errors that may pass when brokers are back."""


class JavaCluster:
    """Answers the same questions as `cluster.Cluster`."""

    def __init__(self, spark: "SparkSession", options: LakeOptions) -> None:
        java: Any = spark._jvm
        self._java, self._kafka = java, java.org.apache.kafka
        self._options = options
        self._admin: Any = None

    def __enter__(self) -> Self:
        settings = self._java.java.util.HashMap()
        for name, value in self._properties().items():
            settings.put(name, value)
        self._admin = self._asked(lambda: self._kafka.clients.admin.Admin.create(settings))
        return self

    def __exit__(self, *_: object) -> None:
        if self._admin is not None:
            self._admin.close(self._java.java.time.Duration.ofMillis(1_000))

    def snapshot(self, topics: Sequence[str]) -> Snapshot:
        """See `Cluster.snapshot`."""
        return self._asked(lambda: self._snapshot(topics))

    def offsets_at(self, topic: str, time_ms: int) -> dict[int, int]:
        """See `Cluster.offsets_at`."""

        def ask() -> dict[int, int]:
            (described,) = self._described([topic]).values()
            when = self._kafka.clients.admin.OffsetSpec.forTimestamp(time_ms)
            return self._offsets({topic: _partitions(described)}, when)[topic]

        return self._asked(ask)

    def racks(self) -> set[str]:
        """See `Cluster.racks`."""

        def ask() -> set[str]:
            nodes = self._admin.describeCluster().nodes().get()
            return {str(one.rack()) for one in nodes if one.rack()}

        return self._asked(ask)

    def lacks(self, group: str) -> str:
        """Nothing that is known before the first commit."""
        return ""

    def commit(self, group: str, offsets: Mapping[str, Mapping[int, int]]) -> None:
        """See `Cluster.commit`."""

        def ask() -> None:
            told = self._java.java.util.HashMap()
            for topic, each in offsets.items():
                for partition, offset in each.items():
                    at = self._kafka.clients.consumer.OffsetAndMetadata(offset)
                    told.put(self._place(topic, partition), at)
            options = self._kafka.clients.admin.AlterConsumerGroupOffsetsOptions()
            options.timeoutMs(self._java.java.lang.Integer(COMMIT_TIMEOUT_MS))
            self._admin.alterConsumerGroupOffsets(group, told, options).all().get()

        self._asked(ask)

    def _snapshot(self, topics: Sequence[str]) -> Snapshot:
        specs = self._kafka.clients.admin.OffsetSpec
        described = self._described(topics)
        partitions = {name: _partitions(each) for name, each in described.items()}
        starts = self._offsets(partitions, specs.earliest())
        ends = self._offsets(partitions, specs.latest())
        found = {
            name: TopicSnapshot(_uuid(described[name].topicId()), starts[name], ends[name])
            for name in topics
        }
        return Snapshot(str(self._admin.describeCluster().clusterId().get()), found)

    def _described(self, topics: Sequence[str]) -> dict[str, Any]:
        names = self._java.java.util.ArrayList()
        for name in topics:
            names.add(name)
        return dict(self._admin.describeTopics(names).allTopicNames().get())

    def _offsets(
        self, partitions: Mapping[str, Sequence[int]], spec: Any
    ) -> dict[str, dict[int, int]]:
        """{topic: {partition: offset}}, below the last stable offset."""
        asked = self._java.java.util.HashMap()
        for topic, numbers in partitions.items():
            for number in numbers:
                asked.put(self._place(topic, number), spec)
        level = self._kafka.common.IsolationLevel.READ_COMMITTED
        options = self._kafka.clients.admin.ListOffsetsOptions(level)
        found: dict[str, dict[int, int]] = {name: {} for name in partitions}
        for place, told in dict(self._admin.listOffsets(asked, options).all().get()).items():
            found[str(place.topic())][int(place.partition())] = int(told.offset())
        return found

    def _place(self, topic: str, partition: int) -> Any:
        return self._kafka.common.TopicPartition(topic, partition)

    def _properties(self) -> dict[str, str]:
        return {
            "default.api.timeout.ms": str(TIMEOUT_MS),
            "request.timeout.ms": str(TIMEOUT_MS // 3),
            "client.id": "strandline-lake",
            **self._options.kafka,
            "bootstrap.servers": self._options.bootstrap,
        }

    def _asked(self, ask: Callable[[], T]) -> T:
        """The answer; Java's errors as ours."""
        try:
            return ask()
        except Py4JJavaError as error:
            name, message = _cause(error.java_exception)
        text = without_secrets(message, self._options.kafka)
        if name == "UnknownTopicOrPartitionException":
            raise OperatorError(f"{', '.join(self._options.topics)}: a topic does not exist")
        if any(word in name for word in PASSING):
            raise CannotConnectError(
                f"{self._options.bootstrap}: {name}: {text}: check --bootstrap and --kafka-config"
            )
        raise OperatorError(f"{self._options.bootstrap}: {name}: {text}: check --kafka-config")


def _cause(error: Any) -> tuple[str, str]:
    """(name, message) of the innermost error."""
    while error.getCause() is not None:
        error = error.getCause()
    return str(error.getClass().getSimpleName()), str(error.getMessage()).partition("\n")[0]


def _partitions(described: Any) -> list[int]:
    return sorted(int(one.partition()) for one in described.partitions())


def _uuid(found: Any) -> str:
    high, low = (
        int(one) & (2**64 - 1)
        for one in (found.getMostSignificantBits(), found.getLeastSignificantBits())
    )
    return str(uuid.UUID(int=high << 64 | low))
