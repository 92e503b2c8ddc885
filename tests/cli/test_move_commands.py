"""`strandline partition move` and `cluster balance`: what moves, what waits, and why."""

import json

from tests.cli.command_line import Run, cluster, run
from tests.cli.test_topic_commands import alter_configs
from tests.client.fake_cluster import (
    FakeCluster,
)

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
from strandline.protocol.messages.describe_leadership import (
    DescribeLeadershipResponse,
    LeaderWait,
)
from strandline.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from strandline.protocol.table import Message

__all__ = ["cluster", "run"]  # The fixtures.


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
        "broker 5: lost; 901 s of silence count towards broker.lost.after.ms",
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
