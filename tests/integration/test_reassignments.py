"""kafka-python moves replicas: AlterPartitionReassignments, ListPartitionReassignments and
DescribeTopicPartitions as a real client speaks them.

Source: docs/decisions/0009-moving-replicas.md; Kafka's protocol (KIP-455, KIP-966)."""

import pytest
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.errors import InvalidReplicationAssignmentError, NoReassignmentInProgressError
from tests.integration.conftest import DevCluster, wait_until

pytestmark = pytest.mark.integration

COUNT = 200
PARTITIONS = 5


def test_kafka_python_moves_lists_and_cancels(own_cluster: DevCluster, topic_name: str) -> None:
    cluster, topic = own_cluster, topic_name
    where = ("--bootstrap", cluster.bootstrap)
    cluster.run("topic", "create", topic, "-p", "1", "-r", "1", *where)
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap)
    for number in range(COUNT):
        producer.send(topic, b"%d" % number * 100)
    producer.flush()
    producer.close()
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    try:
        partition = TopicPartition(topic, 0)

        def described() -> dict[str, object]:
            """As a broker tells that has heard of the topic."""
            found: list[dict[str, object]] = []

            def is_known() -> bool:
                (one,) = admin.describe_topic_partitions([topic])["topics"]
                assert one["name"] == topic
                found[:] = one["partitions"]
                return one["error_code"] == 0

            wait_until(is_known, what="the topic to be known")
            (partition,) = found
            return partition

        def move(replicas: list[int] | None) -> object:
            return admin.alter_partition_reassignments({partition: replicas})[partition]

        before = described()["leader_id"]
        assert isinstance(before, int)
        other, third = sorted({1, 2, 3} - {before})
        assert admin.list_partition_reassignments() == {}
        assert move(None) is NoReassignmentInProgressError
        assert move([other, other]) is InvalidReplicationAssignmentError

        # Nothing is copied, so what moves stays so until it is cancelled.
        cluster.run("cluster", "alter", "-c", "moves.bytes.per.s=0", *where)
        assert move([other, third]) is None
        moving = {
            "replicas": [other, third, before],
            "adding_replicas": [other, third],
            "removing_replicas": [before],
        }
        for listed in (
            admin.list_partition_reassignments(),
            admin.list_partition_reassignments({topic: [0]}),
        ):
            assert listed.keys() == {partition}
            assert {name: sorted(ids) for name, ids in listed[partition].items()} == {
                name: sorted(ids) for name, ids in moving.items()
            }
        assert admin.list_partition_reassignments({topic: [7]}) == {}
        assert move(None) is None
        wait_until(lambda: not admin.list_partition_reassignments(), what="the end of the cancel")
        # Who is asked may hear of it after the controller.
        wait_until(lambda: described()["replica_nodes"] == [before], what="the old replicas")

        cluster.run("cluster", "alter", "-c", "moves.bytes.per.s=-1", *where)
        assert move([other, third]) is None
        wait_until(lambda: not admin.list_partition_reassignments(), what="the end of the move")
        settled = {"leader_id": other, "replica_nodes": [other, third], "offline_replicas": []}
        wait_until(lambda: settled.items() <= described().items(), what="the new replicas")
        wait_until(
            lambda: sorted(described()["isr_nodes"]) == [other, third],  # type: ignore[call-overload]
            what="both in sync",
        )
    finally:
        admin.close()


def test_kafka_python_describes_partitions_page_by_page(
    cluster: DevCluster, topic_name: str
) -> None:
    names = [f"{topic_name}-{one}" for one in "ab"]
    for name in names:
        cluster.run(
            "topic", "create", name, "-p", str(PARTITIONS), "-r", "3", "-b", cluster.bootstrap
        )
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    try:

        def are_known() -> bool:
            topics = admin.describe_topic_partitions(names)["topics"]
            return [one["error_code"] for one in topics] == [0, 0]

        # Each broker may be asked, and hear of a topic after the others.
        for _ in cluster.brokers:
            wait_until(are_known, what="both topics to be known")
        pages, cursor = [], None
        while not pages or cursor is not None:
            page = admin.describe_topic_partitions(names, response_partition_limit=3, cursor=cursor)
            cursor = page["next_cursor"]
            pages.append(
                [
                    (topic["name"], one["partition_index"], sorted(one["replica_nodes"]))
                    for topic in page["topics"]
                    for one in topic["partitions"]
                ]
            )
        assert [len(page) for page in pages] == [3, 3, 3, 1]
        assert [one for page in pages for one in page] == [
            (name, index, [1, 2, 3]) for name in names for index in range(PARTITIONS)
        ]
        (unknown,) = admin.describe_topic_partitions([f"{topic_name}-none"])["topics"]
        assert unknown["error_code"] == 3 and unknown["partitions"] == []
    finally:
        admin.close()
