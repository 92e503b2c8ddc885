"""The leader of each partition, from the brokers themselves."""

from collections import Counter

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from demo.cluster import Cluster

ASK_TIMEOUT_S = 2


class LeaderWatch:
    """Asks the cluster for the leaders of one topic."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._admin = AdminClient(
            {
                "bootstrap.servers": cluster.bootstrap,
                "client.id": "demo-watch",
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )

    def leaders(self) -> dict[int, int]:
        """Leader by partition, -1 if there is none; empty if no broker answers in time."""
        try:
            metadata = self._admin.list_topics(self._topic, timeout=ASK_TIMEOUT_S)
        except KafkaException:
            return {}
        found = metadata.topics[self._topic].partitions
        return {number: partition.leader for number, partition in found.items()}

    def by_region(self) -> Counter[str]:
        """How many partitions each region leads."""
        brokers = self._cluster.brokers
        return Counter(
            brokers[leader].region for leader in self.leaders().values() if leader in brokers
        )
