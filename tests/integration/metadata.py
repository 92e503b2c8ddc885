"""What Metadata tells a client of a topic, while brokers are killed.

Why:    librdkafka asks one broker, and keeps to it: who asks in the moment in which that one dies
        waits for the whole time-out, though the others would answer at once. So the time-out is
        short, and another one is asked then."""

import time

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata, PartitionMetadata

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
    """{partition: its leader, replicas and in-sync replicas}, in the order of their numbers."""
    return dict(sorted(metadata_of(admin, topic).topics[topic].partitions.items()))
