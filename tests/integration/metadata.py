"""What Metadata tells a client of a topic, while brokers are killed.

Why:    librdkafka asks one broker, and keeps to it: who asks in the moment in which that one dies
        waits for the whole time-out, though the others would answer at once. So the time-out is
        short, and another one is asked then."""

import time

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata, PartitionMetadata
from tests.integration.conftest import wait_until

ASK_S, TIMEOUT_S = 5, 60
UNANSWERED = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT)


def metadata_of(admin: AdminClient, topic: str | None = None) -> ClusterMetadata:
    """What the first broker that answers says of a topic, or of all."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            return admin.list_topics(topic, timeout=ASK_S)
        except KafkaException as error:
            if error.args[0].code() not in UNANSWERED or time.monotonic() > deadline:
                raise


def partitions_of(admin: AdminClient, topic: str) -> dict[int, PartitionMetadata]:
    """{partition: its leader, replicas and in-sync replicas}, in the order of their numbers. A
    broker that has yet to hear of the topic is asked again."""
    found: dict[int, PartitionMetadata] = {}

    def is_known() -> bool:
        described = metadata_of(admin, topic).topics[topic]
        found.update(described.partitions)
        return described.error is None

    wait_until(is_known, what=f"{topic} is known", timeout_s=TIMEOUT_S)
    return dict(sorted(found.items()))
