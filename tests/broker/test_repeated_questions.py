"""Requests that name an item a thousand times, or far more items than exist.

Source: reliability reference, "Python traps"; Kafka, which drops or refuses doubles."""

from typing import TYPE_CHECKING, cast

import pytest
from tests.broker.broker_world import BrokerWorld

from strandline.base.errors import ApiError, ProtocolError
from strandline.broker.server.request_limits import ITEM_COUNT_MAX, distinct
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from strandline.protocol.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from strandline.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from strandline.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from strandline.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from strandline.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from strandline.protocol.table import Message

if TYPE_CHECKING:
    from strandline.broker.coordinators.coordinator_host import CoordinatorHost

TIMES = 1_000
TOO_MANY = ITEM_COUNT_MAX + 1


class NoCoordinator:
    def shard_of(self, group: str) -> None:
        raise ApiError(Error.NOT_COORDINATOR)


def test_metadata_describes_a_topic_once(world: BrokerWorld) -> None:
    world.add_topic("t")
    named = [MetadataRequestTopic(name="t"), MetadataRequestTopic(name="absent")]
    request = MetadataRequest(topics=named * TIMES, allow_auto_topic_creation=False)
    answer = world.ask(request, MetadataResponse, 9)
    assert [topic.name for topic in answer.topics] == ["t", "absent"]


def test_configuration_and_groups_are_described_once(world: BrokerWorld) -> None:
    world.add_topic("t")
    world.services.coordinator = cast("CoordinatorHost", NoCoordinator())
    resource = DescribeConfigsResource(resource_type=2, resource_name="t", configuration_keys=None)
    configs = world.ask(
        DescribeConfigsRequest(resources=[resource] * TIMES), DescribeConfigsResponse, 4
    )
    assert [one.resource_name for one in configs.results] == ["t"]
    groups = world.ask(DescribeGroupsRequest(groups=["g"] * TIMES), DescribeGroupsResponse, 5)
    assert [one.group_id for one in groups.groups] == ["g"]


def test_a_partition_that_is_fetched_twice_is_read_once(world: BrokerWorld) -> None:
    world.add_topic("t")
    twice = FetchTopic(topic="t", partitions=[FetchPartition(partition=0)] * 2)
    other = FetchTopic(topic="u", partitions=[FetchPartition(partition=0)])
    request = FetchRequest(max_wait_ms=0, topics=[twice, other, twice])
    answer = world.ask(request, FetchResponse, 11)
    assert [(one.topic, len(one.partitions)) for one in answer.responses] == [("t", 1), ("u", 1)]


def test_the_end_of_a_partition_is_looked_up_once(world: BrokerWorld) -> None:
    world.add_topic("t")
    twice = [ListOffsetsPartition(partition_index=0, timestamp=-1)] * 2
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=twice)])
    first, second = world.ask(request, ListOffsetsResponse, 5).topics[0].partitions
    assert (first.error_code, first.offset) == (0, 0)
    assert second.error_code == Error.INVALID_REQUEST


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (MetadataRequest(topics=[MetadataRequestTopic(name="t")] * TOO_MANY), 9),
        (DescribeGroupsRequest(groups=["g"] * TOO_MANY), 5),
        (FetchRequest(topics=[FetchTopic(partitions=[FetchPartition()] * TOO_MANY)]), 11),
        (
            ListOffsetsRequest(
                topics=[ListOffsetsTopic(partitions=[ListOffsetsPartition()] * TOO_MANY)]
            ),
            5,
        ),
        (
            ProduceRequest(
                topic_data=[
                    TopicProduceData(partition_data=[PartitionProduceData(records=b"")] * TOO_MANY)
                ]
            ),
            9,
        ),
    ],
    ids=["metadata", "groups", "fetch", "offsets", "produce"],
)
def test_a_request_that_names_too_much_ends_its_connection(
    world: BrokerWorld, request_: Message, version: int
) -> None:
    with pytest.raises(ProtocolError, match="names too many items; the limit is 100000"):
        world.send(request_, version)


def test_the_first_of_each_stays_in_its_place() -> None:
    assert distinct(["b", "a", "B", "c"], str.lower) == ["b", "a", "c"]
