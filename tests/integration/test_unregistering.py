"""A real broker is taken off the cluster by Kafka's own request, and later joins again.

Source: KIP-631; docs/decisions/0011-the-life-of-a-broker.md; docs/operating/brokers.md."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from tests.integration.conftest import DevCluster, start_cluster, stop_cluster, wait_until
from tests.integration.metadata import metadata_of
from tests.integration.pages import commands, type_in
from tests.integration.raw_client import Broker
from tests.integration.test_broker_life import PAGE, leaving

from strandline.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from strandline.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)

pytestmark = pytest.mark.integration

KEY = UnregisterBrokerRequest.API_KEY


@pytest.fixture
def four(tmp_path: Path) -> Iterator[DevCluster]:
    """Four brokers; the controller's voters are 1, 2 and 3."""
    cluster = start_cluster(tmp_path / "cluster", regions="east=1,west=1,south=2")
    yield cluster
    stop_cluster(cluster)


def seen(cluster: DevCluster) -> list[int]:
    """The brokers that librdkafka is told of."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    return sorted(metadata_of(admin).brokers)


def test_an_emptied_broker_is_forgotten_and_joins_anew_from_its_old_directory(
    four: DevCluster,
) -> None:
    title = "Take a broker away for good"
    where = ("--bootstrap", four.bootstrap)
    four.run("topic", "create", "orders", "-p", "4", "-r", "3", *where)
    with Broker(four, 2).connect() as client:
        offered = client.ask(ApiVersionsRequest("tester", "1"), ApiVersionsResponse, 3).api_keys
        (row,) = (one for one in offered if one.api_key == KEY)
        assert (row.min_version, row.max_version) == (0, 0)

        def ask(broker: int) -> tuple[int, str]:
            request = UnregisterBrokerRequest(broker)
            answer = client.ask(request, UnregisterBrokerResponse, 0)
            return answer.error_code, answer.error_message or ""

        assert ask(9) == (102, "there is no broker 9")
        assert ask(1)[0] == 44 and "vote in the controller" in ask(1)[1]
        code, why = ask(4)
        assert code == 44 and "decommission it first" in why
        type_in(four, commands(PAGE, title, 0))
        wait_until(lambda: bool(leaving(four)[4]["empty"]), what="an empty broker", timeout_s=90)
        assert ask(4) == (44, "broker 4 is up: stop it first")
        four.kill(4)

        def may_go() -> bool:
            return ask(4) == (0, "")

        wait_until(may_go, what="its silence")
        assert ask(4)[0] == 102
    refused = four.run("broker", "unregister", "4", *where, check=False)
    assert refused.returncode == 1 and "there is no broker 4" in refused.stderr
    assert leaving(four) == {}
    wait_until(lambda: seen(four) == [1, 2, 3], what="all brokers hear of it")
    four.start(4)
    wait_until(lambda: seen(four) == [1, 2, 3, 4], what="the broker")
    # It is one like the others: replicas are placed there, and what was wanted is forgotten.
    four.run("topic", "create", "later", "-p", "1", "-r", "4", *where)
    assert leaving(four) == {}
    four.run("topic", "delete", "later", *where)
    type_in(four, commands(PAGE, title, 0))
    wait_until(lambda: bool(leaving(four)[4]["empty"]), what="an empty broker", timeout_s=90)
    four.kill(4)

    def is_down() -> bool:
        told = four.run("broker", "status", *where).stdout
        return "is empty and stopped: you may unregister it" in told

    wait_until(is_down, what="its silence")
    type_in(four, commands(PAGE, title, 1))
    wait_until(lambda: seen(four) == [1, 2, 3], what="all brokers hear of it")
