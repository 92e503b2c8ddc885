"""`strandline policy test --topic`: what is printed, on a cluster in memory."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.cli.command_line import Run, run
from tests.cli.explain_world import REGIONS, Lines, World, cells, told
from tests.client.fake_cluster import FakeCluster

from strandline.cli.commands import policy
from strandline.cli.text.moves import MOVES, RECOVERY, RECOVERY_FAR
from strandline.config.broker_life import SENT_RATE, TAKEN_RATE
from strandline.config.keys import LONG_MAX
from strandline.protocol.messages.describe_balance import (
    BalanceBroker,
    BalanceMove,
    CopyRate,
    DescribeBalanceResponse,
)
from strandline.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from strandline.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from strandline.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from strandline.protocol.table import Message

__all__ = ["run", "told"]

BROKER = 4
WEST = "rules: [{count: 2, where: [{label: region, op: in, values: [west]}]}]"


@dataclass
class Previewed(World):
    """A world with a balancer, in which partition n has a log of (n + 1) MB."""

    voters: list[list[int]] = field(default_factory=lambda: [[1, 3, 5], [3, 1, 5]])
    conditions: dict[int, str] = field(default_factory=lambda: dict.fromkeys(REGIONS, "up"))
    leaving: set[int] = field(default_factory=set)
    is_enabled: bool = True
    refusal: str = ""
    asked: list[IncrementalAlterConfigsRequest] = field(default_factory=list)
    own_moves: list[BalanceMove] = field(default_factory=list)
    rates: list[CopyRate] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.fake.extra |= {
            "DescribeBalance": self._balance,
            "IncrementalAlterConfigs": self._alter,
        }

    def _alter(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        assert isinstance(request, IncrementalAlterConfigsRequest)
        self.asked.append(request)
        code = 44 if self.refusal else 0
        row = AlterConfigsResourceResponse(code, self.refusal or None, 2, "t")
        return IncrementalAlterConfigsResponse(responses=[row])

    def _balance(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        return DescribeBalanceResponse(
            is_enabled=self.is_enabled,
            moves_max=10,
            lost_after_ms=900_000,
            has_looked=True,
            brokers=[
                BalanceBroker(
                    broker_id=one,
                    condition=condition,
                    down_ms=60_000 if condition in ("down", "lost") else 0,
                    is_leaving=one in self.leaving,
                )
                for one, condition in self.conditions.items()
            ],
            moves=self.own_moves,
            rates=self.rates,
        )

    def _configs(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        assert isinstance(request, DescribeConfigsRequest)
        (asked,) = request.resources
        if asked.resource_type != BROKER or not asked.resource_name:
            return super()._configs(fake, broker, request)
        assert asked.resource_name == str(broker)
        if asked.configuration_keys == ["cluster.seeds"]:
            return super()._configs(fake, broker, request)
        rows = {RECOVERY: "1000000", RECOVERY_FAR: "100000", SENT_RATE: str(LONG_MAX)}
        configs = [DescribeConfigsResourceResult(name=name, value=rows[name]) for name in rows]
        result = DescribeConfigsResult(
            resource_type=BROKER, resource_name=str(broker), configs=configs
        )
        return DescribeConfigsResponse(results=[result])

    def _log_dirs(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        assert isinstance(request, DescribeLogDirsRequest) and request.topics is not None
        (asked,) = request.topics
        logs = [DescribeLogDirsPartition(one, (one + 1) * 10**6) for one in asked.partitions]
        result = DescribeLogDirsResult(topics=[DescribeLogDirsTopic("t", logs)])
        return DescribeLogDirsResponse(results=[result])


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Previewed:
    """A cluster in memory that the command finds."""
    made = Previewed()
    monkeypatch.setattr(policy, "open_client", made.open_client)
    return made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(WEST)
    return path


def test_it_tells_what_moves_how_much_and_how_long(
    world: Previewed, told: Lines, file: Path
) -> None:
    lines = told("policy", "test", str(file), "--topic", "t")
    assert lines[0].startswith('topic t with placement.policy {"rules":[{"count":2,')
    assert lines[1:6] == [
        "2 partitions would change replicas; 2 copies, 3.0 MB, 1.0 MB of it to other regions",
        "at least 10 s at the current throttle: broker 1 sends 1.0 MB to other regions at "
        f"100.0 kB/s ({RECOVERY_FAR})",
        "1 leader would change: 1 -> 4: 0",
        "then, some writes stop with the loss of one replica",
        "then, no acknowledged write is lost with the loss of 1 broker",
    ]
    assert cells(lines, "PARTITIONS") == [
        ["0", "1,3,5", "4,3", "1 to 4", "1.0 MB", "policy-broken"],
        ["1", "3,1,5", "3,4", "3 to 4", "2.0 MB", "policy-broken"],
    ]


def test_what_is_set_for_all_moves_or_for_a_broker_counts_too(
    world: Previewed, told: Lines, file: Path
) -> None:
    world.rates = [CopyRate("all", 100_000), CopyRate("cross-region", 90_000)]
    lines = told("policy", "test", str(file), "--topic", "t")
    assert lines[2].startswith("at least 30 s at the current throttle: all brokers send 3.0 MB at")
    assert lines[2].endswith(f"({MOVES})")
    world.rates.append(CopyRate("to broker 4", 50_000))
    lines = told("policy", "test", str(file), "--topic", "t")
    assert lines[2].startswith("at least 60 s at the current throttle: broker 4 takes 3.0 MB at")
    assert lines[2].endswith(f"({TAKEN_RATE})")
    world.rates[0] = CopyRate("all", 0)
    lines = told("policy", "test", str(file), "--topic", "t")
    assert lines[2] == f"no copies while {MOVES} is 0"


def test_nothing_is_changed_and_what_the_controller_refuses_is_said(
    world: Previewed, run: Run, file: Path
) -> None:
    world.refusal = "cannot place 2 voters"
    code, out, err = run("policy", "test", str(file), "--topic", "t")
    assert (code, out) == (1, "") and "cannot place 2 voters" in err
    (asked,) = world.asked
    assert asked.validate_only and asked.resources[0].configs[0].name == "placement.policy"


def test_a_policy_that_holds_already_moves_nothing(
    world: Previewed, told: Lines, file: Path
) -> None:
    file.write_text("survive: region")
    world.voters[1] = [2, 4, 5]
    lines = told("policy", "test", str(file), "--topic", "t")
    assert lines[1:3] == ["no replica moves", "no leader changes"]
    assert len(lines) == 5 and lines[3].startswith(
        "then, writes continue after the loss of 1 region"
    )


def test_pauses_and_waits_are_said(world: Previewed, told: Lines, file: Path) -> None:
    world.is_enabled = False
    world.conditions[4] = "down"
    world.fake.down.add(4)
    lines = told("policy", "test", str(file), "--topic", "t")
    assert lines[1:3] == [
        "paused: nothing starts until you resume the balancer",
        "no replica moves",
    ]
    assert "assumption: broker 4 will remain down or lost" in lines
    (waits,) = [line for line in lines if line.startswith("cannot-be-met: ")]
    assert "broker 4 is down" in waits and waits.endswith("2 partitions wait (t-0, t-1)")


def test_who_leaves_or_settles_counts_as_the_balancer_counts_them(
    world: Previewed, told: Lines, file: Path
) -> None:
    file.write_text("survive: region")
    world.conditions[4] = "settling"
    world.leaving.add(3)
    world.voters[1] = [2, 4, 5]
    lines = told("policy", "test", str(file), "--topic", "t")
    ((*_, after, _, _, why),) = cells(lines, "PARTITIONS")
    assert (after, why) == ("1,5,4", "decommission")


def test_what_moves_already_arrives_first(world: Previewed, told: Lines, file: Path) -> None:
    world.voters = [[3, 1]]
    world.moving = {0: ([4], [1])}
    lines = told("policy", "test", str(file), "--topic", "t")
    assert lines[1] == "no replica moves"
    told_of = "assumption: moves in progress (1 partition) finish first"
    assert told_of in lines


def test_programs_get_the_same(world: Previewed, told: Lines, file: Path) -> None:
    answer = json.loads("\n".join(told("policy", "test", str(file), "--topic", "t", "--json")))
    assert answer["replicas"] == [[4, 3], [3, 4]]
    assert answer["leaders"] == [{"partition": 0, "before": 1, "after": 4}]
    assert answer["cost"]["bytes"] == 3_000_000 and answer["cost"]["slowest"]["seconds"] == 10
    assert [one["copies"][0]["crosses"] for one in answer["moves"]] == [True, False]
    assert answer["provisos"] == []


def test_a_topic_takes_no_description_of_another(world: Previewed, run: Run, file: Path) -> None:
    code, _, err = run("policy", "test", str(file), "--topic", "t", "-p", "3")
    assert code == 1 and "--topic" in err


FAR = (
    "rules: [{count: 2, where: [{label: region, op: in, values: [east, west]}]},"
    "{role: observer, count: 1, where: [{label: region, op: in, values: [south]}]}]"
)


def test_who_becomes_an_observer_is_told_and_costs_no_copy(
    world: Previewed, told: Lines, file: Path
) -> None:
    world.voters = [[1, 3, 5]]
    file.write_text(FAR)
    lines = told("policy", "test", str(file), "--topic", "t")
    assert lines[1].startswith("1 partition would change replicas; 0 copies, ")
    assert cells(lines, "PARTITIONS")[0][:4] == ["0", "1,3,5", "1,3 +5", "-"]
    answer = json.loads("\n".join(told("policy", "test", str(file), "--topic", "t", "--json")))
    assert (answer["replicas"], answer["observers"]) == ([[1, 3, 5]], [[5]])
    (move,) = answer["moves"]
    assert (move["observers_before"], move["observers_after"]) == ([], [5])
    world.voters, world.observers = [[1, 3]], {0: [5]}
    assert told("policy", "test", str(file), "--topic", "t")[1] == "no replica moves"


def test_an_observer_is_copied_to_whom_the_policy_wants_it_from(
    world: Previewed, told: Lines, file: Path
) -> None:
    world.voters, world.observers = [[1, 3]], {0: [2]}
    file.write_text(FAR)
    lines = told("policy", "test", str(file), "--topic", "t")
    assert cells(lines, "PARTITIONS")[0][1:4] == ["1,3 +2", "1,3 +5", "1 to 5"]
    assert lines[1].startswith("1 partition would change replicas; 1 copy, 1.0 MB, 1.0 MB of it")
