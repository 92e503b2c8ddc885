"""`strandline partition declare-lost` for many partitions: one table, one question, one result.

Source: decision 0027, on a cluster in memory."""

import io
import json
from collections import Counter
from dataclasses import dataclass, field

import pytest
from tests.cli.command_line import Run, run
from tests.client.fake_cluster import FakeCluster, FakeTransport

from strandline.cli.commands import partition_declare_lost
from strandline.client.cluster import Client
from strandline.protocol.errors import Error
from strandline.protocol.messages.declare_lost import (
    DeclareLostRequest,
    DeclareLostResponse,
    ShownReplicaLog,
)
from strandline.protocol.messages.describe_exports import (
    DescribeExportsResponse,
    ExportedPartition,
)
from strandline.protocol.messages.describe_replica_logs import (
    DescribeReplicaLogsRequest,
    DescribeReplicaLogsResponse,
    PossibleVoters,
)
from strandline.protocol.messages.describe_topology import (
    DescribeTopologyResponse,
    TopologyBroker,
)
from strandline.protocol.table import Message

__all__ = ["run"]

COMMAND = ("partition", "declare-lost")


@dataclass
class World:
    """Brokers 1 and 2 of 3 are lost. Of "orders" and "payments" partitions 0 and 1 have no leader,
    and partition 2 has one."""

    fake: FakeCluster = field(default_factory=FakeCluster)
    asked: list[DeclareLostRequest] = field(default_factory=list)
    refused: dict[tuple[str, int, bool], str] = field(default_factory=dict)
    """{(topic, partition, whether it is a forecast): why}"""
    ends: dict[str, int] = field(default_factory=dict)
    """{topic: where its logs end}; others end at different offsets."""
    alive: set[int] = field(default_factory=lambda: {3})

    def __post_init__(self) -> None:
        for name in ("orders", "payments"):
            self.fake.add_topic(name, 3)
        self.fake.down = {1, 2}
        self.fake.controller = 3
        self.fake.extra = {
            "DescribeReplicaLogs": self._logs,
            "DescribeTopology": self._topology,
            "DeclareLost": self._declare,
        }

    def open_client(self, bootstrap: str, timeout_s: float) -> Client:
        transport = FakeTransport(self.fake)
        return Client(self.fake.bootstrap, timeout_ms=int(timeout_s * 1000), transport=transport)

    @property
    def declared(self) -> list[tuple[str, int]]:
        return [(one.topic, one.partition) for one in self.asked if not one.validate_only]

    def _logs(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        assert isinstance(request, DescribeReplicaLogsRequest)
        end = 10 * (request.partition + 1)
        return DescribeReplicaLogsResponse(
            possible=[PossibleVoters([1, 2, 3])],
            grant=4,
            last_epoch=4,
            last_index=end,
            log_start_offset=0,
            committed_offset=end - 3,
            log_end_offset=end,
        )

    def _topology(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        brokers = [TopologyBroker(broker_id=one, is_alive=one in self.alive) for one in (1, 2, 3)]
        return DescribeTopologyResponse(broker_id=broker, brokers=brokers)

    def _declare(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        assert isinstance(request, DeclareLostRequest) and broker == fake.controller
        self.asked.append(request)
        why = self.refused.get((request.topic, request.partition, request.validate_only))
        if why:
            return DeclareLostResponse(error_code=Error.POLICY_VIOLATION, error_message=why)
        end = self.ends.get(request.topic, 10 * (request.partition + 1))
        return DeclareLostResponse(
            grant=5,
            leader_id=3,
            committed_offset=end - 3,
            log_end_offset=end,
            logs=[ShownReplicaLog(3, 4, end, end - 3, end)],
        )


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A cluster in memory that the command finds."""
    made = World()
    monkeypatch.setattr(partition_declare_lost, "open_client", made.open_client)
    return made


def typed(patch: pytest.MonkeyPatch, text: str) -> None:
    patch.setattr("sys.stdin", io.StringIO(text))


def test_all_partitions_are_one_table_one_question_and_one_result(
    world: World, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, "4\n")
    code, out, err = run(*COMMAND, "--all")
    assert code == 0, err
    lines = out.splitlines()
    assert lines[:6] == [
        "offsets at risk:",
        "PARTITION   GIVEN UP  CONTINUES ON  KEPT BELOW  IN DOUBT  LOST FROM",
        "orders-0    1,2       broker 3               7  7-9              10",
        "orders-1    1,2       broker 3              17  17-19            20",
        "payments-0  1,2       broker 3               7  7-9              10",
        "payments-1  1,2       broker 3              17  17-19            20",
    ]
    assert err.splitlines()[-1] == "Type 4 to continue: "
    assert lines[-5:] == [
        "orders-0 continues from offset 10 on broker 3",
        "orders-1 continues from offset 20 on broker 3",
        "payments-0 continues from offset 10 on broker 3",
        "payments-1 continues from offset 20 on broker 3",
        "4 of 4 partitions declared lost",
    ]
    places = [("orders", 0), ("orders", 1), ("payments", 0), ("payments", 1)]
    assert world.declared == places
    # Each is declared with the logs that were shown.
    done = [one for one in world.asked if not one.validate_only]
    assert [one.logs[0].log_end_offset for one in done] == [10, 20, 10, 20]
    assert {tuple(one.broker_ids) for one in done} == {(1, 2)}


def exports(world: World, *told: ExportedPartition) -> None:
    """What the buckets say to any broker."""
    world.fake.extra["DescribeExports"] = lambda *_: DescribeExportsResponse(partitions=[*told])


def test_the_table_says_what_buckets_have(world: World, run: Run) -> None:
    has = {"bucket": "east", "export": "7", "start_offset": 0}
    exports(
        world,
        ExportedPartition(topic="orders", partition=0, end_offset=14, **has),
        ExportedPartition(topic="orders", partition=0, bucket="west", failure="down"),
        ExportedPartition(topic="orders", partition=1, bucket="east"),
    )
    _, out, _ = run(*COMMAND, "orders", "--dry-run")
    lines = out.splitlines()
    assert lines[1:4] == [
        "PARTITION  GIVEN UP  CONTINUES ON  KEPT BELOW  IN DOUBT  LOST FROM  IN A BUCKET BELOW",
        "orders-0   1,2       broker 3               7  7-9              10                 14",
        "orders-1   1,2       broker 3              17  17-19            20                  -",
    ]
    assert (
        "IN A BUCKET BELOW: some bucket has the records below this offset, as they were committed"
    ) in lines
    _, out, _ = run(*COMMAND, "orders", "--dry-run", "--json")
    assert [one["end"] for one in json.loads(out)["partitions"][0]["buckets"]] == [14, None]


def test_partitions_that_differ_in_nothing_share_a_row(world: World, run: Run) -> None:
    """Of fifty empty partitions of a topic the operator reads one row."""
    world.ends["payments"] = 3
    _, out, _ = run(*COMMAND, "--all", "--dry-run")
    assert out.splitlines()[2:5] == [
        "orders-0      1,2       broker 3               7  7-9              10",
        "orders-1      1,2       broker 3              17  17-19            20",
        "payments 0-1  1,2       broker 3               0  0-2               3",
    ]


def test_a_topic_is_declared_by_its_name(
    world: World, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, "orders\n")
    code, out, err = run(*COMMAND, "orders")
    assert code == 0 and err.splitlines()[-1] == "Type orders to continue: "
    assert world.declared == [("orders", 0), ("orders", 1)]
    assert "payments" not in out


def test_several_topics_are_declared_together(world: World, run: Run) -> None:
    code, out, _ = run(*COMMAND, "payments", "orders", "--yes", "--json")
    told = json.loads(out)
    assert code == 0 and len(world.declared) == 4
    assert [one["topic"] for one in told["partitions"]] == ["orders"] * 2 + ["payments"] * 2
    assert told["partitions"][0] == {
        "topic": "orders",
        "partition": 0,
        "declared": True,
        "lost": [1, 2],
        "leader": 3,
        "grant": 5,
        "at_risk_from": 7,
        "on_nobody_from": 10,
        "buckets": [],
    }


@pytest.mark.parametrize("arguments", [("--all",), ("orders",), ("orders", "0")])
def test_a_dry_run_asks_and_declares_nothing(
    world: World, run: Run, arguments: tuple[str, ...]
) -> None:
    code, out, err = run(*COMMAND, *arguments, "--dry-run")
    assert (code, err, world.declared) == (0, "", [])
    assert out.splitlines()[-1].startswith("nothing done; without --dry-run")
    code, out, _ = run(*COMMAND, *arguments, "--dry-run", "--json")
    assert (code, world.declared) == (0, []) and isinstance(json.loads(out), dict)


def test_another_answer_does_nothing(
    world: World, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, "yes\n")
    code, _, err = run(*COMMAND, "--all")
    assert code == 1 and "nothing done" in err and world.declared == []


def test_partitions_that_need_no_declaration_are_left_out_with_the_reason(
    world: World, run: Run
) -> None:
    world.refused["orders", 1, True] = "orders-1: a majority of its voters answers"
    code, out, err = run(*COMMAND, "orders", "--yes")
    assert code == 1 and world.declared == [("orders", 0)]
    assert "left out: orders 1: no loss was declared: orders-1: a majority of its" in out
    assert out.splitlines()[-1] == "1 of 1 partition declared lost"
    assert err == "error: 1 partition without a leader was not declared lost\n"


def test_one_that_has_changed_since_the_table_fails_alone(world: World, run: Run) -> None:
    world.refused["orders", 0, False] = "orders-0: its logs have changed: declare again"
    code, out, _ = run(*COMMAND, "--all", "--yes")
    assert code == 1 and len(world.declared) == 4
    assert "failed: orders 0: no loss was declared: orders-0: its logs have changed" in out
    assert out.splitlines()[-1] == "3 of 4 partitions declared lost"


def test_without_a_controller_the_command_fails_once_and_not_for_each_partition(
    world: World, run: Run
) -> None:
    world.fake.controller = -1
    code, out, err = run(*COMMAND, "--all", "--yes", "--timeout", "5")
    assert code != 0 and out == "" and "the cluster's controller" in err
    assert err.rstrip().endswith(
        "until then no loss can be declared; --dry-run shows the offsets at risk by the logs that "
        "answer"
    )
    assert world.asked == [] and len(world.fake.asked) < 100


def test_a_dry_run_without_a_controller_tells_what_the_logs_left_say(
    world: World, run: Run
) -> None:
    world.fake.controller = -1
    code, out, err = run(*COMMAND, "--all", "--dry-run", "--timeout", "5")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert [line.split() for line in lines[2:6]] == [
        ["orders-0", "1,2", "broker", "3", "7", "7-9", "10"],
        ["orders-1", "1,2", "broker", "3", "17", "17-19", "20"],
        ["payments-0", "1,2", "broker", "3", "7", "7-9", "10"],
        ["payments-1", "1,2", "broker", "3", "17", "17-19", "20"],
    ]
    assert lines[-2].startswith("by the logs that answer here, not by the controller: ")
    assert lines[-1] == "nothing done; a loss can be declared once there is a controller"
    told = json.loads(run(*COMMAND, "orders", "--dry-run", "--timeout", "5", "--json")[1])
    assert told["estimated"]
    assert [one["on_nobody_from"] for one in told["partitions"]] == [10, 20]
    assert world.asked == [] and len(world.fake.asked) < 200


def test_where_every_broker_is_heard_nothing_is_given_up(world: World, run: Run) -> None:
    world.alive = {1, 2, 3}
    code, out, _ = run(*COMMAND, "orders", "--yes")
    assert code == 1 and world.asked == [] and "there is nothing to give up" in out


def test_a_cluster_whose_partitions_all_have_leaders_has_nothing_to_declare(
    world: World, run: Run
) -> None:
    world.fake.down = set()
    code, out, err = run(*COMMAND, "--all", "--yes")
    assert (code, out, err) == (0, "every partition has a leader: nothing to declare\n", "")


def test_each_broker_is_asked_over_one_connection(world: World, run: Run) -> None:
    """Dozens of partitions cost no dozens of time-outs."""
    run(*COMMAND, "--all", "--dry-run")
    asked = Counter(name for _, name in world.fake.asked)
    assert asked["DescribeReplicaLogs"] == 8  # Once for the voters, once for the logs.
    assert (asked["DescribeTopology"], asked["DescribeObservers"]) == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name topics, or a topic and a partition, or give --all"),
        (("orders", "--all"), "name topics, or a topic and a partition, or give --all"),
        (("nothing",), "topic nothing does not exist; see `strandline topic list`"),
        (("orders", "7"), "topic orders has no partition 7"),
    ],
)
def test_mistakes_are_told(world: World, run: Run, arguments: tuple[str, ...], said: str) -> None:
    code, out, err = run(*COMMAND, *arguments)
    assert (code, out) == (1, "") and said in err and world.asked == []
