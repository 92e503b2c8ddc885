"""Whom the client asks, how long it tries, and how it says that it gave up."""

import pytest
from tests.client.fake_cluster import FakeCluster, FakeTransport

from strandline.base.errors import ApiError
from strandline.client.admin import (
    EARLIEST,
    LATEST,
    NewTopic,
    create_topic,
    delete_topic,
    describe_group,
    list_groups,
    list_offsets,
)
from strandline.client.cluster import Client
from strandline.client.errors import CannotConnectError, ClientError, refusal
from strandline.client.operations.configs import describe_topic_configs
from strandline.model.cluster import Address
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from strandline.protocol.messages.find_coordinator import FindCoordinatorResponse
from strandline.protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from strandline.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)


def client_of(cluster: FakeCluster, *, timeout_ms: int = 10_000) -> Client:
    return Client(cluster.bootstrap, timeout_ms=timeout_ms, transport=FakeTransport(cluster))


def test_metadata_names_brokers_controller_and_topics() -> None:
    cluster = FakeCluster(2)
    cluster.add_topic("orders", 3)
    view = client_of(cluster).metadata(None)
    assert (view.cluster_id, view.controller) == ("fake", 1)
    assert [(one.id, one.address.port, one.rack) for one in view.brokers.values()] == [
        (1, 9001, "region-1"),
        (2, 9002, "region-2"),
    ]
    assert [one.leader for one in view.topics["orders"].partitions] == [1, 2, 1]


def test_a_dead_bootstrap_broker_is_passed_over() -> None:
    cluster = FakeCluster()
    cluster.down = {1, 2}
    assert set(client_of(cluster).metadata().brokers) == {3}


def test_a_silent_broker_is_left_for_another_one() -> None:
    cluster = FakeCluster()
    cluster.silent = {1}
    client = client_of(cluster)
    assert set(client.metadata().brokers) == {1, 2, 3}


def test_no_broker_at_all_is_one_line_soon() -> None:
    cluster = FakeCluster(1)
    cluster.down = {1}
    client = client_of(cluster, timeout_ms=10_000)
    with pytest.raises(CannotConnectError) as caught:
        client.metadata()
    assert str(caught.value) == "cannot reach the cluster: fake:9001: connection refused"
    assert 1_000 <= client.transport.monotonic_ms() <= 2_000


def test_a_cluster_that_was_reached_once_is_tried_until_the_deadline() -> None:
    cluster = FakeCluster(1)
    client = client_of(cluster, timeout_ms=10_000)
    client.metadata()
    cluster.down = {1}
    with pytest.raises(CannotConnectError):
        client.metadata()
    assert 9_000 <= client.transport.monotonic_ms() <= 10_000


def test_a_cluster_that_comes_up_within_the_deadline_is_waited_for() -> None:
    cluster = FakeCluster(1)
    cluster.down = {1}
    client = client_of(cluster)
    assert isinstance(client.transport, FakeTransport)
    client.transport.on_sleep = lambda now_ms: cluster.down.clear() if now_ms > 500 else None
    assert set(client.metadata().brokers) == {1}


def test_an_older_broker_is_asked_in_its_own_version() -> None:
    cluster = FakeCluster(1)
    cluster.max_versions = {3: 4, 2: 1}
    cluster.add_topic("orders", 1)
    assert list_offsets(client_of(cluster), "orders", LATEST) == {0: 0}


def test_an_api_that_a_broker_does_not_offer_is_one_line() -> None:
    cluster = FakeCluster(1)
    cluster.max_versions = {3: -1}
    with pytest.raises(ClientError, match=r"fake:9001 does not offer Metadata in a version"):
        client_of(cluster).metadata()


def test_a_peer_that_is_no_broker_is_one_line() -> None:
    cluster = FakeCluster(1)
    cluster.handle = lambda broker, frame: b"HTTP/1.1 400 Bad Request\r\n\r\n"  # type: ignore[method-assign]
    with pytest.raises(ClientError, match=r"fake:9001 does not speak Kafka's protocol"):
        client_of(cluster).metadata()


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP answers there: it may be the port of a con"),
        (b"\x15\x03\x03\x00\x02\x02\x50", "TLS answers there: it expects an encrypted"),
        (b"<!DOCTYPE HTML>", "HTTP answers there"),
        (b"SSH-2.0-OpenSSH_9.9\r\n", "SSH answers there"),
        (b"login: ", "text answers there, beginning with 'logi'"),
        (b"\xff\xff\xff\xff????", "an answer of -1 bytes"),
    ],
)
def test_who_answers_in_place_of_a_broker_is_named(answer: bytes, says: str) -> None:
    cluster = FakeCluster(1)
    cluster.handle = lambda broker, frame: answer  # type: ignore[method-assign]
    with pytest.raises(ClientError) as caught:
        client_of(cluster).metadata()
    assert str(caught.value).startswith(f"fake:9001 does not speak Kafka's protocol: {says}")


def test_a_peer_that_hangs_up_may_be_another_port() -> None:
    cluster = FakeCluster(1)
    cluster.handle = lambda broker, frame: None  # type: ignore[method-assign]
    with pytest.raises(CannotConnectError) as caught:
        client_of(cluster).metadata()
    assert (
        "closed the connection without an answer: it may expect TLS (--client-config FILE)"
        in str(caught.value)
    )


def test_an_unknown_topic_is_one_line_after_a_short_grace() -> None:
    client = client_of(FakeCluster())
    with pytest.raises(ClientError, match=r"topic orders does not exist"):
        client.leaders("orders", deadline_ms=client.deadline())
    assert client.transport.monotonic_ms() < 2_000


def test_a_topic_just_made_is_waited_for() -> None:
    cluster = FakeCluster()
    client = client_of(cluster)
    assert isinstance(client.transport, FakeTransport)
    client.transport.on_sleep = lambda now_ms: cluster.add_topic("orders", 1)
    assert len(client.topic("orders").partitions) == 1


def test_leaders_are_waited_for() -> None:
    cluster = FakeCluster()
    cluster.add_topic("orders", 3)
    cluster.down = {2}
    client = client_of(cluster)
    assert isinstance(client.transport, FakeTransport)

    def elect(now_ms: int) -> None:
        if now_ms > 1_000:
            cluster.topics["orders"][1].leader = 3

    client.transport.on_sleep = elect
    assert client.leaders("orders", deadline_ms=client.deadline()) == {0: 1, 1: 3, 2: 3}


def test_a_partition_that_is_not_there_is_one_line() -> None:
    cluster = FakeCluster()
    cluster.add_topic("orders", 3)
    client = client_of(cluster)
    with pytest.raises(
        ClientError, match=r"topic orders has no partition 3: its partitions are 0 to 2"
    ):
        client.leaders("orders", [3], deadline_ms=client.deadline())


def test_topics_are_created_at_the_controller_and_waited_for() -> None:
    cluster = FakeCluster()
    cluster.controller = 3
    topic = create_topic(client_of(cluster), NewTopic("orders", partitions=2))
    assert len(topic.partitions) == 2
    assert (3, "CreateTopics") in cluster.asked


def test_a_topic_that_the_client_may_create_and_not_see_is_created() -> None:
    cluster = FakeCluster()
    cluster.hidden.add("orders")
    view = create_topic(client_of(cluster), NewTopic("orders"))
    assert "orders" in cluster.topics
    assert (view.name, view.error_code) == ("orders", Error.TOPIC_AUTHORIZATION_FAILED)
    assert view.partitions == ()


def test_creation_goes_on_at_the_new_controller() -> None:
    cluster = FakeCluster()
    cluster.faults["CreateTopics"] = [int(Error.NOT_CONTROLLER), "die"]
    create_topic(client_of(cluster), NewTopic("orders"))
    assert "orders" in cluster.topics


def test_a_topic_whose_creation_lost_its_answer_is_created_once() -> None:
    cluster = FakeCluster()
    cluster.faults["CreateTopics"] = ["drop"]
    assert create_topic(client_of(cluster), NewTopic("orders")).name == "orders"
    cluster.faults["DeleteTopics"] = ["drop"]
    delete_topic(client_of(cluster), "orders")
    assert cluster.topics == {}


def test_refusals_are_one_line_with_kafkas_name() -> None:
    cluster = FakeCluster()
    cluster.add_topic("orders", 1)
    with pytest.raises(ApiError) as caught:
        create_topic(client_of(cluster), NewTopic("orders"))
    assert caught.value.code == Error.TOPIC_ALREADY_EXISTS
    assert str(caught.value).startswith("topic orders: ")
    assert str(caught.value).endswith("(TOPIC_ALREADY_EXISTS)")
    found = refusal(9999, "x", " two  words\n\n more,  and\nmore")
    assert (str(found), found.details) == ("x: two words (9999)", ("more, and", "more"))


def test_deleting_what_is_not_there_is_one_line() -> None:
    with pytest.raises(ClientError, match=r"topic orders does not exist"):
        delete_topic(client_of(FakeCluster()), "orders")


def test_configs_of_a_topic() -> None:
    (config,) = describe_topic_configs(client_of(FakeCluster()), "orders")
    assert (config.name, config.value, config.source) == ("retention.ms", "1000", 1)


def test_offsets_are_asked_of_every_leader() -> None:
    cluster = FakeCluster()
    cluster.add_topic("orders", 5)
    cluster.topics["orders"][4].end = 9
    cluster.topics["orders"][3].start = 2
    client = client_of(cluster)
    assert list_offsets(client, "orders", LATEST) == {0: 0, 1: 0, 2: 0, 3: 0, 4: 9}
    assert list_offsets(client, "orders", EARLIEST, partitions=[3]) == {3: 2}


def test_groups_are_listed_and_described_with_members_and_offsets() -> None:
    cluster = FakeCluster(2)
    cluster.extra["ListGroups"] = lambda _, broker, request: ListGroupsResponse(
        groups=[ListedGroup(group_id=f"g{3 - broker}", group_state="Stable")]
    )
    cluster.extra["FindCoordinator"] = lambda *_: FindCoordinatorResponse(node_id=2)
    cluster.extra["DescribeGroups"] = lambda *_: DescribeGroupsResponse(
        groups=[
            DescribedGroup(
                group_id="g1",
                group_state="Stable",
                protocol_type="consumer",
                members=[
                    DescribedGroupMember(
                        member_id="m",
                        client_host="/10.0.0.1",
                        # Version 0; one topic "orders" with the partitions 0 and 2; no user data.
                        member_assignment=bytes.fromhex(
                            "0000"
                            "00000001"
                            "0006" + b"orders".hex() + "00000002"
                            "00000000"
                            "00000002"
                            "ffffffff"
                        ),
                    )
                ],
            )
        ]
    )
    cluster.extra["OffsetFetch"] = lambda *_: OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name="orders",
                partitions=[
                    OffsetFetchResponsePartition(partition_index=0, committed_offset=5),
                    OffsetFetchResponsePartition(partition_index=2, committed_offset=-1),
                ],
            )
        ]
    )
    client = client_of(cluster)
    assert [(one.id, one.coordinator) for one in list_groups(client)] == [("g1", 2), ("g2", 1)]
    group = describe_group(client, "g1")
    assert group.coordinator == 2
    assert group.members[0].host == "10.0.0.1"
    assert group.members[0].assignment == {"orders": (0, 2)}
    assert group.offsets == {("orders", 0): 5}


def test_addresses_without_a_broker_are_told_apart() -> None:
    cluster = FakeCluster(1)
    client = Client([Address("nowhere", 1), *cluster.bootstrap], transport=FakeTransport(cluster))
    assert set(client.metadata().brokers) == {1}
