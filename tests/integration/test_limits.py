"""Limits of new connections and of changes of topics, on a real broker.

Source: KIP-599, KIP-612; docs/operating/security-quotas.md, "Quotas" and "Limits"."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from tests.integration.conftest import (
    COMMAND,
    DevCluster,
    start_cluster,
    stop_cluster,
    wait_until,
)
from tests.integration.raw_client import RawClient, brokers_of

from strandline.protocol.errors import Error
from strandline.protocol.messages.alter_client_quotas import (
    AlterClientQuotasEntry,
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    OpData,
)
from strandline.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from strandline.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

pytestmark = pytest.mark.integration

TRIES = 500
TIMEOUT_S = 60


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevCluster]:
    """One broker of its own: its clients' address gets quotas."""
    directory: Path = tmp_path_factory.mktemp("limits") / "cluster"
    cluster = start_cluster(directory, regions="east=1")
    yield cluster
    stop_cluster(cluster)


def strandline(cluster: DevCluster, *words: str) -> str:
    command = [COMMAND, *words, "--bootstrap", cluster.bootstrap]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def is_served(port: int) -> bool:
    with RawClient(port) as client:
        client.request(ApiVersionsRequest("tester", "1"), 3)
        try:
            client.receive(ApiVersionsResponse, 3)
        except (AssertionError, ConnectionError):
            return False
        return True


def test_an_address_that_connects_too_often_is_refused_until_its_quota_goes(
    cluster: DevCluster,
) -> None:
    (broker,) = brokers_of(cluster)
    with broker.connect() as kept:
        strandline(cluster, "quota", "set", "connection_creation_rate=5", "--ip", "127.0.0.1")
        assert "ip 127.0.0.1" in strandline(cluster, "quota", "list")
        assert not all(is_served(broker.port) for _ in range(TRIES))
        entry = AlterClientQuotasEntry(
            [EntityData("ip", "127.0.0.1")], [OpData("connection_creation_rate", 0.0, True)]
        )
        answer = kept.ask(AlterClientQuotasRequest([entry]), AlterClientQuotasResponse, 1)
        assert [one.error_code for one in answer.entries] == [Error.NONE]
    wait_until(lambda: is_served(broker.port), what="a client is served without the quota")


def test_a_client_that_makes_too_many_partitions_is_refused(cluster: DevCluster) -> None:
    (broker,) = brokers_of(cluster)
    strandline(cluster, "quota", "set", "controller_mutation_rate=0.5", "--client-id", "raw")

    def made(name: str, partitions: int) -> tuple[int, int]:
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        with broker.connect() as client:
            answer = client.ask(
                CreateTopicsRequest(topics=[topic], timeout_ms=30_000), CreateTopicsResponse, 7
            )
        return answer.topics[0].error_code, answer.throttle_time_ms

    assert made("large", 12) == (Error.NONE, 0)
    code, throttle_ms = made("small", 1)
    assert code == Error.THROTTLING_QUOTA_EXCEEDED
    assert 0 < throttle_ms <= 13_000
    assert strandline(cluster, "topic", "list").count("large") == 1


def test_a_broker_accepts_no_more_connections_in_a_second_than_it_may(cluster: DevCluster) -> None:
    """By Kafka's own key, while it runs."""
    (broker,) = brokers_of(cluster)
    name = "max.connection.creation.rate"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})

    def alter(operation: AlterConfigOpType) -> None:
        entry = ConfigEntry(name, "1", incremental_operation=operation)
        resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
        for one in admin.incremental_alter_configs([resource]).values():
            one.result(TIMEOUT_S)

    alter(AlterConfigOpType.SET)
    with broker.connect() as first, broker.connect() as second, broker.connect() as third:
        for client in (first, second, third):
            client.request(ApiVersionsRequest("tester", "1"), 3)
        for client in (first, second, third):  # They wait, and are served one after the other.
            assert client.receive(ApiVersionsResponse, 3).error_code == Error.NONE
    alter(AlterConfigOpType.DELETE)
    assert any("new connections wait" in line for line in broker.log.read_text().splitlines())
