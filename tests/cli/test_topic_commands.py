"""`strandline topic` and `cluster alter`: what is printed."""

import json
from collections.abc import Callable
from pathlib import Path

from tests.cli.command_line import Run, cluster, run, stdin
from tests.client.fake_cluster import (
    FakeCluster,
    describe_configs,
    list_offsets,
    metadata,
)

from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_configs import DescribeConfigsResponse
from strandline.protocol.messages.describe_observers import (
    DescribeObserversResponse,
    ObservedPartition,
)
from strandline.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from strandline.protocol.messages.list_offsets import ListOffsetsResponse
from strandline.protocol.messages.metadata import MetadataResponse
from strandline.protocol.table import Message

__all__ = ["cluster", "run", "stdin"]  # The fixtures.


def test_a_topic_is_created_listed_described_and_deleted(run: Run, cluster: FakeCluster) -> None:
    code, out, _ = run("topic", "create", "orders", "-p", "2", "-c", "retention.ms=5", "--json")
    assert code == 0
    assert json.loads(out)["topics"][0]["partitions"] == 2
    cluster.add_topic("__internal", 1)
    code, out, _ = run("topic", "list")
    assert [line.split() for line in out.splitlines()] == [
        ["TOPIC", "PARTITIONS", "REPLICAS", "LEADERLESS", "UNDER-REPLICATED"],
        ["orders", "2", "3", "0", "0"],
    ]
    assert "__internal" in run("topic", "list", "--internal")[1]
    code, out, _ = run("topic", "describe", "orders")
    lines = out.splitlines()
    assert lines[1] == "configuration retention.ms=1000"
    assert lines[3].split() == [
        "0", "1@region-1", "1", "1@region-1", "2@region-2", "3@region-3", "1,2,3", "0", "0",
    ]  # fmt: skip
    assert run("topic", "delete", "orders")[:2] == (0, "topic orders deleted\n")
    assert json.loads(run("topic", "list", "--json")[1]) == {"topics": []}


def test_a_topic_that_the_user_may_not_see_is_created_with_a_note(
    run: Run, cluster: FakeCluster
) -> None:
    cluster.hidden.add("orders")
    code, out, _ = run("topic", "create", "orders", "plain")
    assert code == 0
    head, seen, note = out.splitlines()
    assert (head.split()[0], seen.split()[0]) == ("TOPIC", "plain")
    assert note.startswith("note: topic orders is created; your user may not see it")


def test_observers_are_told_in_a_column_of_their_own(run: Run, cluster: FakeCluster) -> None:
    """And lack nothing by not being in sync, for they never are."""
    cluster.add_topic("orders", 1)
    cluster.add_topic("plain", 1)
    watched = [ObservedPartition(topic="orders", partition=0, observers=[3])]

    def describe(fake: FakeCluster, broker: int, request: Message) -> Message:
        answer = metadata(fake, broker, request)
        assert isinstance(answer, MetadataResponse)
        for one in answer.topics:
            if one.name == "orders":
                one.partitions[0].isr_nodes = [1, 2]
        return answer

    cluster.extra["Metadata"] = describe
    cluster.extra["DescribeObservers"] = lambda *_: DescribeObserversResponse(partitions=watched)
    code, out, _ = run("topic", "describe", "orders", "--json")
    (partition,) = json.loads(out)["topics"][0]["partitions"]
    assert (code, partition["replicas"], partition["observers"]) == (0, [1, 2, 3], [3])
    lines = [line.split() for line in run("topic", "describe", "orders")[1].splitlines()]
    assert lines[2] == ["PARTITION", "LEADER", "EPOCH", "REPLICAS", "OBSERVERS", "IN", "SYNC",
                        "START", "END"]  # fmt: skip
    assert lines[3][-4:] == ["3", "1,2", "0", "0"]
    assert "OBSERVERS" not in run("topic", "describe", "plain")[1]
    lines = [line.split() for line in run("topic", "list")[1].splitlines()]
    assert lines == [
        ["TOPIC", "PARTITIONS", "REPLICAS", "OBSERVERS", "LEADERLESS", "UNDER-REPLICATED"],
        ["orders", "1", "3", "1", "0", "0"],
        ["plain", "1", "3", "0", "0", "0"],
    ]


def test_brokers_that_know_of_no_observers_have_none_to_tell(
    run: Run, cluster: FakeCluster
) -> None:
    """As those of Kafka, or of an earlier release."""
    cluster.add_topic("orders", 1)
    cluster.max_versions = {20_005: -1}
    code, out, _ = run("topic", "describe", "orders", "--json")
    assert (code, json.loads(out)["topics"][0]["partitions"][0]["observers"]) == (0, [])


def test_the_oldest_records_of_a_partition_are_deleted(
    run: Run, cluster: FakeCluster, stdin: Callable[[bytes], None]
) -> None:
    cluster.add_topic("orders", 1)
    stdin(b"one\ntwo\nthree\n")
    assert run("produce", "orders")[0] == 0
    command = ("topic", "delete-records", "orders", "--partition", "0", "--before")
    assert run(*command, "2") == (0, "orders-0 now starts at offset 2\n", "")
    assert json.loads(run(*command, "1", "--json")[1])["start_offset"] == 2
    code, out, err = run(*command, "4")
    assert (code, out) == (1, "")
    assert err == "error: partition orders-0 has no offset 4 yet\n"
    assert run(*command, "-1")[1] == "orders-0 now starts at offset 3\n"
    assert run(*command, "-2")[0] == 2


def alter_configs(cluster: FakeCluster, _: int, request: Message) -> Message:
    """Refuses what is asked of topic `none`, and notes the rest."""
    assert isinstance(request, IncrementalAlterConfigsRequest)
    (wanted,) = request.resources
    for row in wanted.configs:
        cluster.asked.append(
            (row.config_operation, f"{wanted.resource_name}:{row.name}={row.value}")
        )
    code = Error.POLICY_VIOLATION if wanted.resource_name == "none" else Error.NONE
    answer = AlterConfigsResourceResponse(
        error_code=code,
        error_message="cannot place 3 voters" if code else None,
        resource_type=wanted.resource_type,
        resource_name=wanted.resource_name,
    )
    return IncrementalAlterConfigsResponse(responses=[answer])


def test_keys_of_a_topic_are_changed_or_it_is_said_why_not(
    run: Run, cluster: FakeCluster, tmp_path: Path
) -> None:
    cluster.extra = {"IncrementalAlterConfigs": alter_configs}
    policy = tmp_path / "policy.yaml"
    policy.write_text("survive: region\n")
    code, out, _ = run(
        "topic", "alter", "orders", "--policy", str(policy), "-c", "retention.ms=5",
        "--unset", "segment.bytes",
    )  # fmt: skip
    assert (code, out) == (0, "topic orders changed\n")
    asked = set(cluster.asked)
    assert {
        (0, "orders:retention.ms=5"),
        (1, "orders:segment.bytes=None"),
        (0, 'orders:placement.policy={"survive":[{"region":1}]}'),
    } <= asked
    code, _, err = run("topic", "alter", "none", "-c", "placement.policy={}")
    assert code == 1
    assert err == "error: topic none: cannot place 3 voters (POLICY_VIOLATION)\n"
    assert run("topic", "alter", "orders")[0] == 1
    code, out, _ = run("cluster", "alter", "-c", "num.partitions=3")
    assert (code, out) == (0, "cluster changed\n")
    assert (0, ":num.partitions=3") in cluster.asked
    assert run("cluster", "alter")[0] == 1


def test_it_is_told_who_leaves_the_voters_of_a_topic_where_that_may_be(
    run: Run, cluster: FakeCluster
) -> None:
    cluster.add_topic("orders", 1)
    isr, leads = [1, 2], 1

    def describe(fake: FakeCluster, broker: int, request: Message) -> Message:
        answer = metadata(fake, broker, request)
        assert isinstance(answer, MetadataResponse)
        for one in answer.topics:
            one.partitions[0].isr_nodes = isr
            one.partitions[0].leader_id = leads
        return answer

    cluster.extra["Metadata"] = describe
    assert "leaves the voters" not in run("topic", "describe", "orders")[1]

    def configs(fake: FakeCluster, broker: int, request: Message) -> Message:
        answer = describe_configs(fake, broker, request)
        assert isinstance(answer, DescribeConfigsResponse)
        row = answer.results[0].configs[0]
        row.name, row.value = "voters.shrink.enable", "true"
        return answer

    cluster.extra["DescribeConfigs"] = configs
    assert run("topic", "describe", "orders")[1].splitlines()[-1] == (
        "partition 0: broker 3 is down or behind, and leaves the voters until it keeps up "
        "(voters.shrink.enable)"
    )
    isr, leads = [1], 1
    text = "partition 0: brokers 2,3 are down or behind, and leave the voters until they keep up "
    assert run("topic", "describe", "orders")[1].splitlines()[-1] == f"{text}(voters.shrink.enable)"
    leads = -1
    assert run("topic", "describe", "orders")[1].splitlines()[-1] == (
        "partition 0: brokers 2,3 are down or behind"
    )


def test_it_is_told_which_observer_stands_in_for_a_voter(run: Run, cluster: FakeCluster) -> None:
    cluster.add_topic("orders", 1)
    watched = [ObservedPartition(topic="orders", partition=0, observers=[3])]

    def observers(fake: FakeCluster, broker: int, request: Message) -> Message:
        return DescribeObserversResponse(partitions=watched)

    def in_sync(fake: FakeCluster, broker: int, request: Message) -> Message:
        answer = metadata(fake, broker, request)
        assert isinstance(answer, MetadataResponse)
        for one in answer.topics:
            one.partitions[0].isr_nodes = [1, 3]
        return answer

    cluster.extra |= {"Metadata": in_sync, "DescribeObservers": observers}
    assert run("topic", "describe", "orders")[1].splitlines()[-1] == (
        "partition 0: observer 3 stands in for a voter"
    )
    listed = json.loads(run("topic", "list", "--json")[1])["topics"]
    assert [one["under_replicated"] for one in listed] == [1]


def test_a_partition_without_a_leader_is_described_all_the_same(
    run: Run, cluster: FakeCluster
) -> None:
    cluster.add_topic("orders", 2)
    cluster.down = {2}
    code, out, _ = run("topic", "describe", "orders", "--json")
    assert code == 0
    (described,) = json.loads(out)["topics"]
    assert [one["leader"] for one in described["partitions"]] == [1, -1]
    assert [one["end_offset"] for one in described["partitions"]] == [0, None]
    assert described["configs"] == {"retention.ms": {"value": "1000", "set_on_topic": True}}


def test_a_leader_that_tells_nothing_hides_its_own_offsets_alone(
    run: Run, cluster: FakeCluster
) -> None:
    cluster.add_topic("orders", 3)
    cluster.topics["orders"][2].leader = 1

    def answer(fake: FakeCluster, broker: int, request: Message) -> Message | None:
        told = list_offsets(fake, broker, request)
        assert isinstance(told, ListOffsetsResponse)
        for one in told.topics[0].partitions:
            if one.partition_index == 2:
                one.error_code = Error.NOT_LEADER_OR_FOLLOWER
        return told if broker == 1 else None

    cluster.extra["ListOffsets"] = answer
    code, out, _ = run("topic", "describe", "orders", "--json")
    assert code == 0
    (described,) = json.loads(out)["topics"]
    assert [one["leader"] for one in described["partitions"]] == [1, 2, 1]
    assert [one["end_offset"] for one in described["partitions"]] == [0, None, None]
