"""Administrators' clients, unchanged, ask real brokers for what Kafka's tools show."""

from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ACLFilter, ACLOperation, ACLPermissionType, KafkaAdminClient
from kafka.admin import ACLResourcePatternType as PatternType
from kafka.admin import ResourcePatternFilter as PatternFilter
from kafka.admin import ResourceType as Type
from kafka.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    GroupIdNotFoundError,
    NotCoordinatorError,
    SecurityDisabledError,
)
from tests.integration.conftest import DevCluster, wait_until

pytestmark = pytest.mark.integration

T = TypeVar("T")


def asked(question: Callable[[], T]) -> T:
    """The answer about a group. It is asked again while the broker does not know the coordinator
    yet, which this client takes for the answer."""
    found: list[T] = []

    def is_answered() -> bool:
        try:
            found.append(question())
        except (CoordinatorNotAvailableError, CoordinatorLoadInProgressError, NotCoordinatorError):
            return False
        return True

    wait_until(is_answered, what="a coordinator")
    return found[0]


@pytest.fixture(scope="module")
def admin(cluster: DevCluster) -> Iterator[KafkaAdminClient]:
    """kafka-python's."""
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    yield client
    client.close()


@pytest.fixture
def topic(cluster: DevCluster, topic_name: str) -> str:
    """A topic with records of one idempotent producer."""
    cluster.run("topic", "create", topic_name, "-p", "1", "-r", "3", "-b", cluster.bootstrap)
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, enable_idempotence=True)
    for _ in range(5):
        producer.send(topic_name, b"value").get(30)
    producer.close()
    return topic_name


def test_the_controllers_quorum_is_described(cluster: DevCluster, admin: KafkaAdminClient) -> None:
    (topic,) = admin.describe_metadata_quorum()["topics"]
    (partition,) = topic["partitions"]
    voters = {one["replica_id"]: one for one in partition["current_voters"]}
    others = {one["replica_id"] for one in partition["observers"]}
    assert set(voters) | others == set(cluster.brokers)
    assert partition["leader_id"] in voters
    assert partition["high_watermark"] > 0


def test_producers_are_described(admin: KafkaAdminClient, topic: str) -> None:
    partition = TopicPartition(topic, 0)
    (one,) = admin.describe_producers([partition])[partition].active_producers
    assert (one.producer_epoch, one.last_sequence) == (0, 4)
    assert one.current_transaction_start_offset == -1


def test_offsets_of_a_group_are_deleted(
    cluster: DevCluster, admin: KafkaAdminClient, topic: str
) -> None:
    group, partition = f"g-{topic}", TopicPartition(topic, 0)
    consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap, group_id=group)
    consumer.assign([partition])
    consumer.seek(partition, 3)
    consumer.commit()
    assert asked(lambda: admin.list_group_offsets(group))[group][partition].offset == 3
    (error,) = asked(lambda: admin.delete_group_offsets(group, [partition])).values()
    assert error.errno == 0
    assert partition not in asked(lambda: admin.list_group_offsets(group))[group]
    consumer.close()
    with pytest.raises(GroupIdNotFoundError):
        asked(lambda: admin.delete_group_offsets(f"none-{topic}", [partition]))


def test_without_an_authoriser_nothing_is_listed_or_added(
    cluster: DevCluster, admin: KafkaAdminClient
) -> None:
    everything = ACLFilter(
        None,
        None,
        ACLOperation.ANY,
        ACLPermissionType.ANY,
        PatternFilter(Type.ANY, None, PatternType.ANY),
    )
    with pytest.raises(SecurityDisabledError):
        admin.describe_acls(everything)
    assert admin.describe_user_scram_credentials() == {}
    rule = AclBinding(
        ResourceType.TOPIC,
        "t",
        ResourcePatternType.LITERAL,
        "User:a",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    librdkafka = AdminClient({"bootstrap.servers": cluster.bootstrap})
    (future,) = librdkafka.create_acls([rule]).values()
    with pytest.raises(KafkaException, match="SECURITY_DISABLED"):
        future.result(30)


def test_versions_and_features_are_listed(admin: KafkaAdminClient) -> None:
    """kafka-python fails on a key that Kafka does not have."""
    names = {key.name for key in admin.api_versions()}
    assert {"Produce", "OffsetDelete", "DescribeQuorum", "DescribeProducers"} <= names
    assert admin.describe_features() == {}
