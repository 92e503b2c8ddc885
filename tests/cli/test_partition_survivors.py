"""`strandline partition survivors`: what is printed, on a cluster in memory (decision 0026)."""

import json
from dataclasses import dataclass, field

import pytest
from tests.cli.command_line import Run, run
from tests.client.fake_cluster import FakeCluster, FakeTransport

from strandline.cli.commands import partition_survivors
from strandline.client.cluster import Client
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from strandline.protocol.messages.describe_observers import (
    DescribeObserversResponse,
    ObservedPartition,
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


@dataclass
class World:
    """Brokers 1 to 3 hold the topic "t"; `ends`: {broker that answers: (committed, end)}."""

    fake: FakeCluster = field(default_factory=FakeCluster)
    ends: dict[int, tuple[int, int]] = field(default_factory=dict)
    voters: list[int] = field(default_factory=lambda: [1, 2, 3])
    led: set[int] = field(default_factory=set)
    alive: set[int] = field(default_factory=set)
    broken: set[int] = field(default_factory=set)
    empty: set[int] = field(default_factory=set)
    shrinks: str = "false"
    needs_all: bool = False
    seeds: str = ""
    observers: list[int] = field(default_factory=list)
    coming: list[int] = field(default_factory=list)
    """Observers that a move adds."""
    hides_observers: bool = False

    def __post_init__(self) -> None:
        self.fake.add_topic("t", 1)
        self.fake.extra = {
            "DescribeConfigs": self._configs,
            "DescribeObservers": self._observers,
            "DescribeReplicaLogs": self._logs,
            "DescribeTopology": self._topology,
        }

    def lose(self, *brokers: int) -> None:
        """These do not answer any more."""
        self.fake.down.update(brokers)

    def open_client(self, bootstrap: str, timeout_s: float) -> Client:
        transport = FakeTransport(self.fake)
        return Client(self.fake.bootstrap, timeout_ms=int(timeout_s * 1000), transport=transport)

    def _logs(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        assert isinstance(request, DescribeReplicaLogsRequest)
        if (request.topic, request.partition) != ("t", 0):
            return DescribeReplicaLogsResponse(error_code=Error.UNKNOWN_TOPIC_OR_PARTITION)
        answer = DescribeReplicaLogsResponse(
            possible=[PossibleVoters(self.voters)], needs_all=self.needs_all
        )
        if broker in self.broken:
            answer.error_code = Error.KAFKA_STORAGE_ERROR
        elif broker in self.ends:
            committed, end = self.ends[broker]
            answer.is_led = broker in self.led
            answer.has_lost = broker in self.empty
            answer.epoch = answer.last_epoch = 4
            answer.last_index = end - 1
            answer.log_start_offset = 0
            answer.committed_offset = committed
            answer.log_end_offset = end
        else:
            answer.error_code = Error.NOT_LEADER_OR_FOLLOWER
        return answer

    def _observers(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        if self.hides_observers:
            return DescribeObserversResponse(error_code=Error.CLUSTER_AUTHORIZATION_FAILED)
        placed = ObservedPartition(topic="t", partition=0, observers=self.observers)
        placed.is_moving, placed.target_observers = bool(self.coming), self.coming
        return DescribeObserversResponse(partitions=[placed])

    def _topology(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        brokers = [TopologyBroker(broker_id=one, is_alive=one in self.alive) for one in (1, 2, 3)]
        return DescribeTopologyResponse(broker_id=broker, brokers=brokers)

    def _configs(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        assert isinstance(request, DescribeConfigsRequest)
        name = request.resources[0].resource_name
        row = DescribeConfigsResourceResult(name="voters.shrink.enable", value=self.shrinks)
        if name != "t":
            row = DescribeConfigsResourceResult(name="cluster.seeds", value=self.seeds)
        return DescribeConfigsResponse(
            results=[DescribeConfigsResult(resource_name=name, configs=[row])]
        )


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A cluster in memory that the command finds."""
    made = World()
    monkeypatch.setattr(partition_survivors, "open_client", made.open_client)
    return made


def told(run: Run) -> list[str]:
    """The lines that are printed."""
    code, out, err = run("partition", "survivors", "t", "0")
    assert (code, err) == (0, "")
    return out.splitlines()


def test_the_offsets_at_risk_are_told_exactly(world: World, run: Run) -> None:
    world.ends = {3: (12, 15)}
    world.lose(1, 2)
    lines = told(run)
    assert lines[0] == "t-0:"
    rows = [line.split() for line in lines[2:5]]
    assert rows[0][:3] == ["1", "voter", "silent"]
    assert rows[2] == ["3", "voter", "answers", "0", "12", "15", "4", "4"]
    assert lines[5:] == [
        "below offset 12: on broker 3, and committed",
        (
            "offsets 12 to 14: AT RISK: on broker 3; the lost replicas may have acknowledged "
            "these records, or others at these offsets"
        ),
        (
            "offset 15 and above: AT RISK: on no replica that answers; whether and how much was "
            "acknowledged there is unknown"
        ),
        "nothing is at risk once 1 of brokers 1,2 returns with its disks intact",
    ]
    _, out, _ = run("partition", "survivors", "t", "0", "--json")
    found = json.loads(out)
    assert (found["standing"], found["best"], found["missing"]) == ("short", 3, [1, 2])
    assert (found["at_risk_from"], found["on_nobody_from"]) == (12, 15)
    assert found["text"] == lines[5:]


def test_who_lives_and_does_not_answer_is_waited_for(world: World, run: Run) -> None:
    world.ends = {3: (12, 12)}
    world.lose(1)
    world.broken, world.alive = {2}, {2, 3}
    lines = told(run)
    assert "its log cannot be used" in lines[3]
    assert "broker 2 is reachable from other brokers: ask again when its log is open" in lines
    assert not any("offsets 12 to" in line for line in lines)


def test_nothing_is_at_risk_where_somebody_leads_or_could(world: World, run: Run) -> None:
    world.ends = {2: (12, 12), 3: (10, 12)}
    world.lose(1)
    assert told(run)[-2].startswith("a majority of the voters answers")
    world.led = {2}
    assert told(run)[-1].startswith("the replicas that answer report a leader")
    _, out, _ = run("partition", "survivors", "t", "0", "--json")
    assert (json.loads(out)["at_risk_from"], json.loads(out)["standing"]) == (None, "led")


def test_voters_that_answer_and_do_not_hear_each_other_are_helped_by_a_mended_link_or_a_command(
    world: World, run: Run
) -> None:
    world.ends = {1: (12, 12), 2: (12, 12), 3: (10, 12)}
    assert "zone status` names the link: repair it, or let one side" in told(run)[-1]
    assert told(run)[-1].endswith("topic alter t -c voters.shrink.enable=true")
    world.shrinks = "true"
    assert told(run)[-1].endswith(
        "the controller appoints a leader on one side, if that side holds every record"
    )


def test_half_of_the_voters_go_on_by_a_command_that_is_told(world: World, run: Run) -> None:
    world.ends, world.voters = {3: (12, 12)}, [2, 3]
    world.lose(2)
    assert told(run)[-1].endswith("topic alter t -c voters.shrink.enable=true")
    world.shrinks = "true"
    assert told(run)[-1].endswith("the controller appoints one of them")
    # Where there is one.
    world.seeds = "1@fake:1,2@fake:2,3@fake:3"
    world.lose(1)
    appoints, missing = told(run)[-2:]
    assert appoints.endswith("the controller appoints one of them")
    assert missing == (
        "no controller: 1 of 3 of its voters answers, 2 are needed: start 1 of broker 1, 2; "
        "until then the partition gets no leader, and no loss can be declared"
    )


def test_after_a_declaration_a_majority_elects_nobody_and_it_is_said_what_to_do(
    world: World, run: Run
) -> None:
    world.ends, world.needs_all = {1: (12, 12), 2: (12, 12), 3: (12, 15)}, True
    assert told(run)[-1].endswith(" partition declare-lost t 0")
    world.lose(1)
    assert told(run)[-1].startswith(
        "a loss was declared, but no leader can be appointed without broker 1:"
    )
    assert not any("elects a leader" in line or "nothing is" in line for line in told(run))


def test_what_nobody_has_is_told_by_who_knows_the_voters(world: World, run: Run) -> None:
    world.voters = [1, 2]
    world.lose(1, 2)
    lines = told(run)
    assert any(line.startswith("no replica that answers has a usable log") for line in lines)
    assert lines[-1].startswith("nothing is at risk once 1 of brokers 1,2 returns")


def test_an_observer_with_the_best_log_is_told_of(world: World, run: Run) -> None:
    world.voters, world.ends = [1, 2], {3: (12, 15)}
    world.observers = [3]
    world.lose(1, 2)
    lines = told(run)
    assert lines[4].split()[:3] == ["3", "observer", "answers"]
    assert lines[5:7] == [
        "the best log left is on broker 3, an observer",
        "below offset 12: on broker 3, and committed",
    ]
    assert lines[-1].startswith("nothing is at risk once 1 of brokers 1,2 returns")
    _, out, _ = run("partition", "survivors", "t", "0", "--json")
    found = json.loads(out)
    assert (found["standing"], found["best"], found["at_risk_from"]) == ("short", 3, 12)


def test_who_votes_other_than_it_was_placed_is_told(world: World, run: Run) -> None:
    world.voters, world.ends, world.observers = [1, 3], {3: (12, 15)}, [3]
    world.lose(1, 2)
    rows = [line.split("  ") for line in told(run)[2:5]]
    roles = [[cell.strip() for cell in row if cell.strip()][:2] for row in rows]
    assert roles == [
        ["1", "voter"],
        ["2", "voter, does not vote now"],
        ["3", "observer, votes now"],
    ]
    _, out, _ = run("partition", "survivors", "t", "0", "--json")
    found = [(one["role"], one["votes"]) for one in json.loads(out)["replicas"]]
    assert found == [("voter", True), ("voter", False), ("observer", True)]


def test_an_observer_that_a_move_adds_is_one(world: World, run: Run) -> None:
    world.voters, world.ends, world.coming = [1, 2], {3: (12, 15)}, [2, 3]
    world.lose(1, 2)
    lines = told(run)
    assert [line.split()[1] for line in lines[2:5]] == ["voter", "voter", "observer"]
    assert lines[5] == "the best log left is on broker 3, an observer"


def test_the_logs_are_told_where_nobody_says_who_is_an_observer(world: World, run: Run) -> None:
    world.voters, world.ends, world.hides_observers = [1, 2], {3: (12, 15)}, True
    world.lose(1, 2)
    lines = told(run)
    assert lines[4].split("  ")[1:2] != ["observer"] and "does not vote now" in lines[4]
    assert lines[5] == "below offset 12: on broker 3, and committed"


def test_a_partition_that_there_is_not_is_one_line(world: World, run: Run) -> None:
    code, out, err = run("partition", "survivors", "t", "7")
    assert (code, out) == (1, "")
    assert err == "error: topic t has no partition 7: its partitions are 0 to 0\n"
