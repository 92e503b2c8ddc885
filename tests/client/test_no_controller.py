"""Commands that need the controller say who is missing where most of its voters are.

Source: docs/operating/outages.md, "Most of the controller's voters are lost"."""

from collections.abc import Callable

import pytest
from tests.client.fake_cluster import FakeCluster, FakeTransport

from strandline.base.errors import ApiError
from strandline.client.admin import NewTopic, create_topic
from strandline.client.cluster import Client
from strandline.client.errors import CannotConnectError, ClientError
from strandline.client.operations.balance import describe_balance_soon
from strandline.client.operations.configs import alter_cluster_configs
from strandline.client.operations.losses import forecast_loss
from strandline.client.operations.no_controller import tell
from strandline.client.operations.zones import describe_zones, describe_zones_soon
from strandline.model.ids import NO_BROKER, BrokerId
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from strandline.protocol.messages.describe_topology import DescribeTopologyResponse, TopologyBroker
from strandline.protocol.messages.describe_zones import DescribeZonesResponse
from strandline.protocol.table import Message

MISSING = "no controller: 2 of 5 of its voters answer, 3 are needed: start 1 of broker 3, 4, 5"


def seeds(fake: FakeCluster, broker: int, request: Message) -> Message:
    assert isinstance(request, DescribeConfigsRequest)
    (asked,) = request.resources
    assert asked.resource_name == str(broker)
    value = ",".join(f"{one}@fake:{8000 + one}" for one in range(1, 6))
    row = DescribeConfigsResourceResult(name="cluster.seeds", value=value)
    result = DescribeConfigsResult(resource_name=str(broker), configs=[row])
    return DescribeConfigsResponse(results=[result])


def hearing(fake: FakeCluster, broker: int, request: Message) -> Message:
    return DescribeTopologyResponse(
        broker_id=broker,
        brokers=[TopologyBroker(one, one not in fake.down) for one in fake.brokers],
    )


@pytest.fixture
def fake() -> FakeCluster:
    """Of six brokers five vote in the controller, and three of these are down."""
    found = FakeCluster(6)
    found.down = {3, 4, 5}
    found.controller = NO_BROKER
    found.extra = {"DescribeConfigs": seeds, "DescribeTopology": hearing}
    return found


def client_of(fake: FakeCluster) -> Client:
    return Client(fake.bootstrap, timeout_ms=10_000, transport=FakeTransport(fake))


@pytest.mark.parametrize(
    "command",
    [
        describe_zones,
        lambda client: alter_cluster_configs(client, {"outage.low.percent": "40"}),
        lambda client: create_topic(client, NewTopic("orders", partitions=1)),
    ],
)
@pytest.mark.parametrize("controller", [NO_BROKER, 1])
def test_it_is_said_who_is_to_be_started(
    fake: FakeCluster, controller: int, command: object
) -> None:
    """Also where the one before is still taken for the controller, and says that it is not."""
    fake.controller = controller
    for api in ("DescribeZones", "IncrementalAlterConfigs", "CreateTopics"):
        fake.extra[api] = lambda *_: None
    fake.extra["DescribeZones"] = lambda *_: DescribeZonesResponse(
        error_code=Error.NOT_CONTROLLER, error_message="this broker is not the controller"
    )
    assert callable(command)
    with pytest.raises(ClientError) as raised:
        command(client_of(fake))
    assert str(raised.value) == MISSING


def test_a_voter_that_is_heard_and_does_not_answer_is_named(fake: FakeCluster) -> None:
    """It hangs, or is not reached from here, and may be the controller."""
    fake.down, fake.silent = {4, 5}, {3}
    with pytest.raises(ClientError) as raised:
        describe_zones(client_of(fake))
    assert str(raised.value) == (
        "no controller: 2 of 5 of its voters answer here, 3 are needed; broker 1 receives "
        "heartbeats from broker 3: check that it is healthy and reachable from here"
    )


def test_what_is_not_known_is_not_said(fake: FakeCluster) -> None:
    fake.extra.pop("DescribeConfigs")
    with pytest.raises(ApiError, match="the cluster's controller"):
        describe_zones(client_of(fake))
    fake.down = set(fake.brokers)
    with pytest.raises(CannotConnectError, match="cannot reach the cluster"):
        describe_zones(client_of(fake))


def test_a_controller_that_refuses_is_not_missing(fake: FakeCluster) -> None:
    fake.down, fake.controller = set(), 1
    for code in (Error.INVALID_REQUEST, Error.NOT_CONTROLLER):
        fake.extra["DescribeZones"] = lambda *_, code=code: DescribeZonesResponse(error_code=code)
        with pytest.raises(ApiError, match="the zones"):
            describe_zones(client_of(fake))


def test_voters_that_do_not_hear_each_other_are_told_apart_from_those_that_are_down() -> None:
    one, two, three = map(BrokerId, (1, 2, 3))
    heard = {one: [one], two: [two, three], three: [two, three]}
    assert tell([one, two, three], heard) == ""
    assert tell([one, two, three], {at: [at] for at in (one, two, three)}) == (
        "no controller: 3 of 3 of its voters answer but do not reach each other: repair the "
        "network between them (broker 1 receives from none; broker 2 receives from none; "
        "broker 3 receives from none)"
    )
    assert tell([one, two, three], {}).endswith("start 2 of broker 1, 2, 3")
    assert tell([one, two], {one: [one]}) == (
        "no controller: 1 of 2 of its voters answers, 2 are needed: start broker 2"
    )


def forecast_of_a_loss(client: Client) -> object:
    return forecast_loss(client, "orders", 0, brokers=[BrokerId(2)], grant=1)


@pytest.mark.parametrize("ask", [describe_zones_soon, describe_balance_soon, forecast_of_a_loss])
def test_who_asks_in_an_outage_is_refused_soon_and_not_after_the_whole_timeout(
    fake: FakeCluster, ask: Callable[[Client], object]
) -> None:
    transport = FakeTransport(fake)
    client = Client(fake.bootstrap, timeout_ms=30_000, transport=transport)
    with pytest.raises(ClientError) as raised:
        ask(client)
    assert str(raised.value) == MISSING
    assert transport.now_ms < 3_000


def test_an_election_that_is_under_way_is_waited_for(fake: FakeCluster) -> None:
    fake.down, fake.extra["DescribeZones"] = set(), lambda *_: DescribeZonesResponse()
    transport = FakeTransport(fake)

    def elect(now_ms: int) -> None:
        if now_ms >= 5_000:
            fake.controller = 1

    transport.on_sleep = elect
    client = Client(fake.bootstrap, timeout_ms=30_000, transport=transport)
    assert describe_zones_soon(client) == DescribeZonesResponse()
