"""The commands as people type them: what is printed, what goes wrong and with which exit code."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.client.fake_cluster import (
    FakeCluster,
    FakeTransport,
    describe_configs,
    list_offsets,
    metadata,
)

from strandline.cli.commands import (
    broker,
    broker_label,
    cluster_alter,
    consume,
    group,
    partition,
    produce,
    topic,
    zone,
)
from strandline.cli.commands import cluster_balance as balance_commands
from strandline.cli.main import main
from strandline.cli.options import find_bootstrap
from strandline.cli.output import program
from strandline.client.cluster import Client
from strandline.controller.balancer.reasons import WAITS
from strandline.protocol.errors import Error
from strandline.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from strandline.protocol.messages.describe_balance import (
    BalanceBroker,
    BalanceMove,
    BalanceWait,
    CopyRate,
    CopyShare,
    DescribeBalanceResponse,
)
from strandline.protocol.messages.describe_configs import DescribeConfigsResponse
from strandline.protocol.messages.describe_leadership import (
    DescribeLeadershipResponse,
    LeaderWait,
)
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
from strandline.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from strandline.protocol.messages.metadata import MetadataResponse
from strandline.protocol.table import Message

Run = Callable[..., tuple[int, str, str]]

CONFIG = """
[broker]
id = 1
data_directory = "/data"

[cluster]
seeds = ["1@127.0.0.1:33145"]
"""


@pytest.fixture
def run(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Run:
    """Run a command line: exit code, standard output, standard error."""
    for name in list(os.environ):
        if name.startswith("STRANDLINE_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        sys.stdout.flush()
        out, err = capfdbinary.readouterr()
        code = ended.value.code
        assert isinstance(code, int) or code is None
        return code or 0, out.decode(), err.decode()

    return run


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """A cluster in memory that every command finds."""
    fake = FakeCluster()

    def open_client(bootstrap: str, timeout_s: float) -> Client:
        return Client(
            fake.bootstrap, timeout_ms=int(timeout_s * 1000), transport=FakeTransport(fake)
        )

    for module in (
        broker, broker_label, cluster_alter, balance_commands, topic, partition, produce, consume,
        group, zone,
    ):  # fmt: skip
        monkeypatch.setattr(module, "open_client", open_client)
    return fake


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bytes], None]]:
    """Give the next command its standard input."""
    kept = os.dup(0)

    def give(data: bytes) -> None:
        reader, writer = os.pipe()
        with open(writer, "wb") as pipe:
            pipe.write(data)
        os.dup2(reader, 0)
        os.close(reader)

    yield give
    os.dup2(kept, 0)
    os.close(kept)


# ---- topics --------------------------------------------------------------------------------------


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


def alter_moves(cluster: FakeCluster, _: int, request: Message) -> Message:
    """Refuses what is asked of partition 9."""
    assert isinstance(request, AlterPartitionReassignmentsRequest)
    (wanted,) = request.topics
    (one,) = wanted.partitions
    code = Error.UNKNOWN_TOPIC_OR_PARTITION if one.partition_index == 9 else Error.NONE
    cluster.asked.append((one.partition_index, str(one.replicas)))
    answer = ReassignablePartitionResponse(one.partition_index, code, None)
    return AlterPartitionReassignmentsResponse(
        responses=[ReassignableTopicResponse(wanted.name, [answer])]
    )


def one_moves(cluster: FakeCluster, _: int, request: Message) -> Message:
    """One partition goes from broker 1 to broker 3."""
    assert isinstance(request, ListPartitionReassignmentsRequest) and request.topics is None
    one = OngoingPartitionReassignment(0, [3, 2, 1], [3], [1])
    return ListPartitionReassignmentsResponse(topics=[OngoingTopicReassignment("orders", [one])])


def test_replicas_are_moved_and_the_move_is_seen_and_cancelled(
    run: Run, cluster: FakeCluster
) -> None:
    cluster.add_topic("orders", 1)
    cluster.extra["AlterPartitionReassignments"] = alter_moves
    cluster.extra["ListPartitionReassignments"] = one_moves
    cluster.extra["DescribeBalance"] = describe_balance
    code, out, _ = run("partition", "move", "orders", "0", "--to", "3,2")
    assert (code, out.split(";")[0]) == (0, "orders-0 moves to brokers 3,2")
    assert cluster.asked[-1] == (0, "[3, 2]")
    code, out, _ = run("partition", "moves")
    assert (code, out.splitlines()[:3]) == (0, RATES)
    assert out.splitlines()[4].split() == ["orders-0", "3,2,1", "3", "1", "3:?", "0"]
    (seen,) = json.loads(run("partition", "moves", "--json")[1])["moves"]
    assert (seen["adding"], seen["removing"], seen["reached"]) == ([3], [1], {"3": None})
    assert run("partition", "cancel", "orders", "0")[:2] == (0, "orders-0 stays where it was\n")
    assert cluster.asked[-1] == (0, "None")
    code, out, err = run("partition", "move", "orders", "9", "--to", "1")
    assert (code, out) == (1, "")
    assert "orders-9" in err
    assert run("partition", "move", "orders", "0", "--to", "one")[0] == 1


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


RATES = [
    "copies may use 20.0 MB/s in total: broker 1 10.0 MB/s, broker 3 1.0 MB/s",
    "copies between regions are halted",
    "copies to broker 3 may use 1.5 kB/s in total",
]


def describe_balance(cluster: FakeCluster, _: int, request: Message) -> Message:
    """Three partitions move, two of them from a full disk, fourteen wait for a broker."""
    full = "disk of broker 3 is 91 % full, 80 is wanted"
    needed = "needs one more broker with region=south in place of broker 5"
    return DescribeBalanceResponse(
        rates=[
            CopyRate("all", 20_000_000, [CopyShare(1, 10_000_000), CopyShare(3, 999_960)]),
            CopyRate("cross-region", 0, [CopyShare(1, 0)]),
            CopyRate("to broker 3", 1_500),
        ],
        is_enabled=True,
        moves_max=10,
        lost_after_ms=900_000,
        has_looked=True,
        brokers=[BalanceBroker(1, "up"), BalanceBroker(5, "lost", 901_500)],
        moves=[
            BalanceMove("orders", 2, [1, 5], [1, 3], "broker-lost"),
            BalanceMove("orders", 3, [1, 3], [1, 4], "disk-high", full, 8_000_000_000),
            BalanceMove("orders", 4, [3, 1], [4, 1], "disk-high", full, 3_900_000_000),
        ],
        waits=[
            BalanceWait("disk-high", "disk of broker 6 is 86 % full, 80 is wanted; no logs", 0),
            BalanceWait("needs-broker", needed, 14, ["a-0", "a-1", "b-0"]),
        ],
    )


def describe_leadership(_: FakeCluster, broker: int, __: Message) -> DescribeLeadershipResponse:
    """Broker 1 leads what 2 should lead."""
    text = "broker 2 leads once it has been in sync for 300 s: 12 s are left"
    waits = [LeaderWait("orders", one, 2, "delay", text) for one in (0, 2)]
    return DescribeLeadershipResponse(waits=waits if broker == 1 else [])


def test_what_moves_by_itself_is_shown_with_its_reasons(run: Run, cluster: FakeCluster) -> None:
    cluster.extra = {
        "DescribeBalance": describe_balance,
        "DescribeLeadership": describe_leadership,
        "IncrementalAlterConfigs": alter_configs,
    }
    code, out, _ = run("cluster", "balance")
    assert code == 0
    assert out.splitlines() == [
        "broker 5: lost for 901 s",
        *RATES,
        "disk-high: disk of broker 3 is 91 % full, 80 is wanted: 2 partitions move, 11.9 GB",
        "PARTITION  REPLICAS  TARGET  BYTES   REASON",
        "orders-2   1,5       1,3     -       broker-lost",
        "orders-3   1,3       1,4     8.0 GB  disk-high",
        "orders-4   3,1       4,1     3.9 GB  disk-high",
        "disk-high: disk of broker 6 is 86 % full, 80 is wanted; no logs",
        "needs-broker: needs one more broker with region=south in place of broker 5; 14 partitions "
        "wait (a-0, a-1, b-0, ...)",
        "leader delay: broker 2 leads once it has been in sync for 300 s: 12 s are left; 2 "
        "partitions are led elsewhere (orders-0, ...)",
    ]
    code, out, _ = run("cluster", "balance", "--pause")
    assert code == 0 and out.startswith("paused: ")
    assert (0, ":balancer.enable=false") in cluster.asked
    told = json.loads(run("cluster", "balance", "--resume", "--json")[1])
    assert told["enabled"] and told["waits"][1]["partitions"] == 14
    assert told["moves"][0]["reason"] == "broker-lost"
    assert [one["bytes"] for one in told["moves"]] == [None, 8_000_000_000, 3_900_000_000]
    assert told["rates"]["all"] == {
        "bytes_per_s": 20_000_000,
        "shares": {"1": 10_000_000, "3": 999_960},
    }
    assert [one["reason"] for one in told["leaders"]] == ["delay", "delay"]
    assert run("cluster", "balance", "--pause", "--resume")[0] == 1


def test_a_pause_is_told_once_with_what_waits_for_it(run: Run, cluster: FakeCluster) -> None:
    text = "disk of broker 3 is 91 % full"
    cluster.extra = {
        "DescribeBalance": lambda *_: DescribeBalanceResponse(
            has_looked=True,
            waits=[
                BalanceWait("paused", WAITS["paused"], 14, ["a-0", "a-1"]),
                BalanceWait("paused", f"{text}; balancer.enable is false", 1, ["b-0"]),
            ],
        ),
        "DescribeLeadership": describe_leadership,
    }
    assert run("cluster", "balance")[1].splitlines() == [
        "paused: no move starts (balancer.enable is false); 14 partitions wait (a-0, a-1, ...)",
        f"paused: {text}; 1 partition waits (b-0)",
    ]


def test_leaders_that_are_to_change_leave_no_word_that_all_is_well(
    run: Run, cluster: FakeCluster
) -> None:
    def settled(*_: object) -> DescribeBalanceResponse:
        return DescribeBalanceResponse(
            is_enabled=True, has_looked=True, brokers=[BalanceBroker(1, "up")]
        )

    cluster.extra = {"DescribeBalance": settled, "DescribeLeadership": describe_leadership}
    lines = run("cluster", "balance")[1].splitlines()
    assert lines[0].startswith("leader delay: ") and lines[1:] == ["no replica has to move"]
    cluster.extra["DescribeLeadership"] = lambda *_: DescribeLeadershipResponse()
    assert run("cluster", "balance")[1] == "every replica is where it should be\n"


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


def test_a_refusal_is_one_line_and_exit_code_1(run: Run, cluster: FakeCluster) -> None:
    cluster.add_topic("orders", 1)
    code, out, err = run("topic", "create", "orders")
    assert (code, out) == (1, "")
    assert err.startswith("error: topic orders: ") and err.endswith("(TOPIC_ALREADY_EXISTS)\n")
    assert run("topic", "delete", "payments")[2] == (
        "error: topic payments does not exist; see `strandline topic list`\n"
    )


def test_a_cluster_that_is_not_there_is_exit_code_3(run: Run) -> None:
    code, out, err = run("topic", "list", "-b", "127.0.0.1:1", "--timeout", "0.1")
    assert (code, out) == (3, "")
    assert err == "error: cannot reach the cluster: 127.0.0.1:1: connection refused\n"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("topic", "list", "-b", "host:port"), "--bootstrap must look like host:port"),
        (("topic", "create", "x", "-c", "retention.ms"), ": expected key=value"),
        (("produce", "x", "--acks", "2"), "--acks '2': expected 0, 1 or all"),
        (
            ("produce", "x", "-z", "zip"),
            "--compression 'zip': expected none, gzip, snappy, lz4 or zstd",
        ),
        (("dev", "status"), "no cluster here; to create one: strandline dev start"),
        (("dev", "stop"), "no cluster here; to create one: strandline dev start"),
        (("dev", "broker", "kill", "1"), "no cluster here; to create one: strandline dev start"),
        (("dev", "start", "--regions", "east=x"), "--regions: 'east=x': expected name=brokers"),
        (("dev", "start", "--rtt", "east-nowhere=3"), "--rtt: 'east-nowhere' is not a link"),
        (("serve", "--config", "nowhere.toml"), "nowhere.toml: cannot read: No such file"),
        (("config", "check", "nowhere.toml"), "nowhere.toml: cannot read: No such file"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_1(
    run: Run, arguments: tuple[str, ...], reason: str
) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (1, "")
    assert err.startswith("error: ") and err.count("\n") == 1
    assert reason in err


@pytest.mark.parametrize(
    "arguments", [("topc",), ("topic", "create"), ("dev", "broker", "kill", "one"), ("serve",)]
)
def test_a_wrong_command_line_is_exit_code_2(run: Run, arguments: tuple[str, ...]) -> None:
    code, _, err = run(*arguments)
    assert code == 2
    assert err.startswith("Usage: strandline")


# ---- records -------------------------------------------------------------------------------------


def test_lines_become_records_and_records_lines(
    run: Run, cluster: FakeCluster, stdin: Callable[[bytes], None]
) -> None:
    cluster.add_topic("orders", 1)
    stdin(b"one\ntwo\r\n\nlast without an end")
    code, out, _ = run("produce", "orders")
    assert (code, out) == (0, "orders-0: 4 records at 0 to 3\n")
    code, out, _ = run("consume", "orders", "-e")
    assert (code, out) == (0, "one\ntwo\n\nlast without an end\n")
    assert run("consume", "orders", "-n", "1", "--from", "1")[1] == "two\n"
    assert run("consume", "orders", "-e", "--from", "latest")[1] == ""


def test_keys_headers_and_bytes_that_are_no_text(
    run: Run, cluster: FakeCluster, tmp_path: Path
) -> None:
    cluster.add_topic("orders", 1)
    (tmp_path / "lines").write_bytes(b"k1\tv1\nno separator\nk\xff\t\xfe\n")
    code, out, _ = run(
        "produce", "orders", "-f", "lines", "-K", "\\t", "-H", "a=b", "--json", "-z", "gzip"
    )
    assert code == 0
    assert json.loads(out) == {
        "topic": "orders",
        "records": 3,
        "partitions": [{"partition": 0, "records": 3, "first_offset": 0, "last_offset": 2}],
    }
    lines = run("consume", "orders", "-e", "--json")[1].splitlines()
    records = [json.loads(line) for line in lines]
    assert [one["offset"] for one in records] == [0, 1, 2]
    assert (records[0]["key"], records[0]["value"]) == ("k1", "v1")
    assert (records[1]["key"], records[1]["value"]) == (None, "no separator")
    assert (records[2]["key_base64"], records[2]["value_base64"]) == ("a/8=", "/g==")
    assert records[0]["headers"] == [{"key": "a", "value": "b"}]
    assert run("consume", "orders", "-n", "1", "--keys")[1] == "k1\tv1\n"


def test_a_topic_that_is_not_there_takes_no_records(
    run: Run, cluster: FakeCluster, stdin: Callable[[bytes], None]
) -> None:
    stdin(b"x\n")
    code, _, err = run("produce", "orders")
    assert code == 1 and "topic orders does not exist" in err


def test_a_batch_that_is_too_large_is_one_line(
    run: Run, cluster: FakeCluster, stdin: Callable[[bytes], None]
) -> None:
    cluster.add_topic("orders", 1)
    cluster.faults["Produce"] = [int(Error.MESSAGE_TOO_LARGE)]
    stdin(b"x\n")
    code, _, err = run("produce", "orders")
    assert code == 1 and err.endswith("(MESSAGE_TOO_LARGE)\n") and err.count("\n") == 1


def test_a_place_to_begin_that_makes_no_sense_is_refused(run: Run, cluster: FakeCluster) -> None:
    cluster.add_topic("orders", 1)
    code, _, err = run("consume", "orders", "--from", "yesterday")
    assert code == 1 and "expected earliest, latest, an offset" in err


# ---- configuration, version, help ----------------------------------------------------------------


def test_config_check_tells_every_mistake(run: Run, tmp_path: Path) -> None:
    (tmp_path / "broker.toml").write_text(CONFIG)
    assert run("config", "check", "broker.toml")[:2] == (
        0,
        "broker.toml: broker 1: no mistakes\n",
    )
    (tmp_path / "broker.toml").write_text(CONFIG + '[log]\nlevle = "x"\nlevel = "x"\n')
    code, out, err = run("config", "check", "broker.toml")
    assert (code, out) == (1, "")
    assert err.splitlines() == [
        "error: broker.toml: [log] levle: unknown key (did you mean level?)",
        "error: broker.toml: [log] level: must be debug, info, warning or error, not 'x'",
    ]
    code, out, _ = run("config", "check", "broker.toml", "--json")
    assert code == 1
    assert json.loads(out)["mistakes"][0] == {
        "source": "broker.toml",
        "key": "[log] levle",
        "reason": "unknown key (did you mean level?)",
    }


def test_config_check_tells_who_gives_each_label(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broker.toml").write_text(CONFIG + '[broker.labels]\nregion = "east"\n')
    monkeypatch.setenv("STRANDLINE_BROKER__LABELS__OTHER", "disk=ssd")
    assert run("config", "check", "broker.toml")[1].splitlines()[1:] == [
        "label region=east, by [broker.labels] region",
        "label disk=ssd, by environment STRANDLINE_BROKER__LABELS__OTHER",
    ]
    told = json.loads(run("config", "check", "broker.toml", "--json")[1])
    assert told["labels"] == {"region": "east", "disk": "ssd"}
    assert told["origin"]["region"] == "[broker.labels] region"
    monkeypatch.setenv("STRANDLINE_BROKER__LABELS__OTHER", "disk")
    code, _, err = run("config", "check", "broker.toml")
    assert code == 1
    assert err.startswith("error: environment STRANDLINE_BROKER__LABELS__OTHER, line 1: 'disk' is")


def test_the_reference_is_written_where_it_is_wanted(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("config", "reference", "--write", "pages", "--json")
    assert code == 0
    assert sorted(Path(one).name for one in json.loads(out)["written"]) == [
        "broker-config.md",
        "cli.md",
        "metrics.md",
        "topic-config.md",
    ]


def test_the_version_is_printed(run: Run) -> None:
    assert run("version")[1].startswith("strandline 0.")
    assert set(json.loads(run("version", "--json")[1])) == {"strandline", "python", "platform"}


def test_help_imports_nothing_slow() -> None:
    code = (
        "import sys, contextlib, io\n"
        "from strandline.cli.main import main\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        "    main(['--help'])\n"
        "slow = {'asyncio', 'rich', 'msgspec', 'uvloop', 'cramjam', 'tomllib', 'pyspark'}\n"
        "print(sorted(slow & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_local_cluster_is_found_without_saying_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from strandline.cli.dev.cluster_file import ClusterDirectory
    from strandline.cli.dev.plan import Plan, PlannedBroker

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STRANDLINE_DEV_DIR", raising=False)
    assert find_bootstrap() == "127.0.0.1:9092"
    broker = PlannedBroker(id=1, region="east", kafka_port=21_000, rpc_port=21_100)
    for name in ("strandline-dev", "other"):
        ClusterDirectory(tmp_path / name).write(Plan(cluster_id="c", brokers=(broker,)))
    assert find_bootstrap() == "127.0.0.1:21000"
    monkeypatch.setenv("STRANDLINE_DEV_DIR", str(tmp_path / "nothing"))
    assert find_bootstrap() == "127.0.0.1:9092"


def test_output_to_a_reader_that_is_gone_is_no_traceback(tmp_path: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m strandline.cli.main config reference --write {tmp_path} | true",
        shell=True,
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in done.stderr


def test_a_command_to_type_next_begins_with_what_runs_this_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    installed = tmp_path / "a b" / "strandline"
    installed.parent.mkdir()
    installed.write_text("#!/bin/sh\n")
    installed.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(installed)])
    monkeypatch.setenv("PATH", str(installed.parent))
    assert program() == "strandline"
    monkeypatch.setenv("PATH", "/nowhere")
    assert program() == f"'{installed}'"
    monkeypatch.setattr(sys, "argv", ["/somewhere/strandline/cli/main.py"])
    assert program() == f"{sys.executable} -m strandline.cli.main"
