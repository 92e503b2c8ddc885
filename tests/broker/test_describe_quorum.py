"""DescribeQuorum: any broker tells of the controller's log. Source: KIP-595, KIP-836, KIP-853."""

from uuid import UUID

import pytest
from tests.broker.cluster_world import ClusterWorld

from strandline.controller.commands import AllocateProducerIds
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    RequestedPartition,
    RequestedTopic,
)
from strandline.protocol.table import NO_ID

BROKERS = (1, 2, 3)


def asked(topic: str = "__cluster_metadata", *indexes: int) -> DescribeQuorumRequest:
    partitions = [RequestedPartition(index) for index in indexes or (0,)]
    return DescribeQuorumRequest(topics=[RequestedTopic(topic, partitions)])


def quorum(cluster: ClusterWorld, at: int, version: int = 2) -> PartitionData:
    answer = cluster.ask(at, asked(), DescribeQuorumResponse, version)
    assert answer.error_code == 0
    (topic,) = answer.topics
    (one,) = topic.partitions
    assert (topic.topic_name, one.partition_index, one.error_code) == ("__cluster_metadata", 0, 0)
    return one


@pytest.mark.parametrize("version", range(3))
def test_any_broker_tells_what_the_controller_knows(cluster: ClusterWorld, version: int) -> None:
    cluster.create_topic("t")
    cluster.advance(1_000)
    leader = cluster.controller(1).leader_id
    log = cluster.controller(leader)
    for at in BROKERS:
        one = quorum(cluster, at, version)
        assert (one.leader_id, one.leader_epoch) == (leader, log.epoch)
        assert one.high_watermark == log.high_watermark
        voters = {each.replica_id: each for each in one.current_voters}
        assert set(voters) == set(log.configuration.all_voters)
        assert {each.log_end_offset for each in voters.values()} == {log.log_end_offset}
        if version >= 1:
            now_ms = cluster.broker(at).services.clock.wall_ms()
            assert 0 <= now_ms - voters[leader].last_caught_up_timestamp < 1_000
            for each in voters.values():
                assert 0 <= now_ms - each.last_fetch_timestamp < 2_000


def test_voters_are_told_with_endpoints_and_directories(cluster: ClusterWorld) -> None:
    answer = cluster.ask(1, asked(), DescribeQuorumResponse, 2)
    registered = cluster.broker(1).services.cluster.brokers
    told = {node.node_id: (node.listeners[0].host, node.listeners[0].port) for node in answer.nodes}
    assert told == {one.id: (one.rpc.host, one.rpc.port) for one in registered.values()}
    state = cluster.broker(1).services.controller.state
    for voter in quorum(cluster, 1).current_voters:
        known = state.directories[BrokerId(voter.replica_id)].id
        expected = UUID(known) if len(known) == 36 else NO_ID
        assert voter.replica_directory_id == expected


def test_a_follower_that_is_down_is_behind(cluster: ClusterWorld) -> None:
    leader = cluster.controller(1).leader_id
    down = next(one for one in (2, 3) if one != leader)
    cluster.hosts[down].kill()
    cluster.submit(AllocateProducerIds(BrokerId(1)))
    one = quorum(cluster, 1)
    (late,) = [each for each in one.current_voters if each.replica_id == down]
    assert late.log_end_offset < one.high_watermark


def test_no_other_log_has_a_quorum_to_tell_of(cluster: ClusterWorld) -> None:
    for request in (asked("t"), asked("__cluster_metadata", 1), asked("__cluster_metadata", 0, 1)):
        answer = cluster.ask(1, request, DescribeQuorumResponse, 2)
        assert answer.error_code == 0
        for one in answer.topics[0].partitions:
            assert one.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
            assert one.error_message


def test_without_a_controller_the_answer_is_an_error_in_time(cluster: ClusterWorld) -> None:
    for down in (2, 3):
        cluster.hosts[down].kill()
    cluster.advance(10_000)
    answer = cluster.ask(1, asked(), DescribeQuorumResponse, 2)
    assert (answer.error_code, answer.topics) == (Error.REQUEST_TIMED_OUT, [])
    assert answer.error_message == "no controller answers"
