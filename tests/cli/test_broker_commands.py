"""What `strandline broker` asks of a cluster, and what it says.

Source: docs/decisions/0011-the-life-of-a-broker.md."""

import json
import time

import pytest
from tests.cli.command_line import Run, cluster, run
from tests.client.fake_cluster import FakeCluster

from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_balance import (
    BalanceBroker,
    BalanceWait,
    DescribeBalanceResponse,
    LeavingCount,
)
from strandline.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from strandline.protocol.messages.describe_topology import (
    DescribeTopologyResponse,
    TopologyBroker,
    TopologyLabel,
)
from strandline.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from strandline.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from strandline.protocol.table import Message

__all__ = ["cluster", "run"]  # The fixtures.

DECOMMISSION = "broker.decommission"
MAINTENANCE = "broker.maintenance.until.ms"
BROKER_RESOURCE = 4


class Brokers:
    """The cluster's answers. `changed`: {broker: {key: value}}, what was set of those that are not
    `refused`; brokers 2 and 3 are in one upgrade domain, and on one machine."""

    def __init__(self, fake: FakeCluster) -> None:
        self.regions = {1: "east", 2: "east", 3: "east"}
        self.changed: dict[str, dict[str, str | None]] = {}
        self.refused: set[str] = set()
        self.unregistered: list[int] = []
        self.looks = 0
        self.brokers = [BalanceBroker(one, "up") for one in (1, 2, 3)]
        self.waits: list[BalanceWait] = []
        self.seeds = "9@host-9:1"
        fake.extra = {
            "IncrementalAlterConfigs": self._alter,
            "DescribeTopology": self._topology,
            "DescribeBalance": self._balance,
            "DescribeConfigs": self._configs,
            "UnregisterBroker": self._unregister,
        }

    def _alter(self, _: FakeCluster, __: int, request: Message) -> Message:
        assert isinstance(request, IncrementalAlterConfigsRequest)
        answers = []
        for one in request.resources:
            assert one.resource_type == BROKER_RESOURCE
            is_refused = one.resource_name in self.refused
            answers.append(
                AlterConfigsResourceResponse(
                    error_code=Error.POLICY_VIOLATION if is_refused else Error.NONE,
                    error_message="t-0 could not be written" if is_refused else None,
                    resource_type=one.resource_type,
                    resource_name=one.resource_name,
                )
            )
            if not is_refused and not request.validate_only:
                rows = {row.name: row.value for row in one.configs}
                self.changed.setdefault(one.resource_name, {}).update(rows)
        return IncrementalAlterConfigsResponse(responses=answers)

    def _topology(self, fake: FakeCluster, asked: int, _: Message) -> Message:
        domains = {1: "a", 2: "b", 3: "b"}
        return DescribeTopologyResponse(
            broker_id=asked,
            brokers=[
                TopologyBroker(
                    one,
                    True,
                    -1,
                    [
                        TopologyLabel("upgrade_domain", domain),
                        TopologyLabel("region", self.regions[one]),
                        TopologyLabel("host", f"node-{domain}"),
                    ],
                )
                for one, domain in domains.items()
            ],
        )

    def _configs(self, _: FakeCluster, asked: int, __: Message) -> Message:
        row = DescribeConfigsResourceResult(name="cluster.seeds", value=self.seeds)
        told = DescribeConfigsResult(resource_name=str(asked), configs=[row])
        return DescribeConfigsResponse(results=[told])

    def _unregister(self, _: FakeCluster, __: int, request: Message) -> Message:
        assert isinstance(request, UnregisterBrokerRequest)
        self.unregistered.append(request.broker_id)
        return UnregisterBrokerResponse(error_message=None)

    def _balance(self, _: FakeCluster, __: int, ___: Message) -> Message:
        self.looks += 1
        return DescribeBalanceResponse(is_enabled=True, brokers=self.brokers, waits=self.waits)


@pytest.fixture
def brokers(cluster: FakeCluster) -> Brokers:
    """Three brokers that take what is asked of them."""
    return Brokers(cluster)


def test_a_broker_is_to_leave_or_to_stay(run: Run, brokers: Brokers) -> None:
    assert run("broker", "decommission", "2") == (
        0, "broker 2: its replicas move away; see `strandline broker status`\n", "",
    )  # fmt: skip
    assert brokers.changed == {"2": {DECOMMISSION: "true"}}
    told = json.loads(run("broker", "cancel", "2", "--json")[1])
    assert told == {"broker": 2, "decommission": False}
    assert brokers.changed == {"2": {DECOMMISSION: None}}
    assert run("broker", "cancel", "2")[1].startswith("broker 2 stays, and what moved away")


def test_a_voter_is_not_empty_before_its_vote_has_moved_and_a_line_says_what_to_do(
    run: Run, brokers: Brokers
) -> None:
    brokers.seeds = "1@host-1:1,2@host-2:1"
    vote = (
        "broker 2 votes in the controller until another broker has taken its vote: if this "
        "lasts, add a broker, and name present voters in `cluster.seeds` of every broker's file"
    )
    _, out, _ = run("broker", "decommission", "2")
    assert out.splitlines()[1:] == [vote]
    assert json.loads(run("broker", "decommission", "2", "--json")[1])["votes"] is True
    assert run("broker", "decommission", "3")[1].count("\n") == 1
    brokers.brokers = [
        BalanceBroker(2, "down", is_leaving=True),
        BalanceBroker(3, "up", is_leaving=True),
    ]
    assert run("broker", "status")[1].splitlines() == [
        vote,
        "broker 3 is empty: you may stop it",
    ]
    brokers.brokers = [BalanceBroker(2, "up", is_leaving=True, replica_count=3, moving_count=1)]
    assert run("broker", "status")[1].splitlines() == [
        vote,
        "broker 2 (up) holds 3 replicas, 1 of them moving away",
    ]
    told = json.loads(run("broker", "status", "--json")[1])["leaving"]
    assert [(one["empty"], one["votes"]) for one in told] == [(False, True)]
    brokers.seeds = "2@host-2:1"
    only = "broker 2 is the controller's only voter and keeps its vote: to replace its machine, "
    assert run("broker", "status")[1].startswith(only)


def test_a_machine_is_to_leave_or_to_stay_by_one_command(run: Run, brokers: Brokers) -> None:
    assert run("broker", "decommission", "--host", "node-b")[:2] == (
        0, "brokers 2,3: their replicas move away; see `strandline broker status`\n",
    )  # fmt: skip
    assert brokers.changed == {"2": {DECOMMISSION: "true"}, "3": {DECOMMISSION: "true"}}
    told = json.loads(run("broker", "cancel", "--host", "node-b", "--json")[1])
    assert told == {"host": "node-b", "brokers": [2, 3], "decommission": False}
    assert brokers.changed == {"2": {DECOMMISSION: None}, "3": {DECOMMISSION: None}}
    assert run("broker", "cancel", "--host", "node-b")[1].startswith("brokers 2,3 stay, and what")
    brokers.changed.clear()
    brokers.refused = {"3"}
    code, _, error = run("broker", "decommission", "--host", "node-b")
    assert (code, error) == (1, "error: broker 3: t-0 could not be written (POLICY_VIOLATION)\n")
    assert brokers.changed == {}


def test_votes_of_a_machine_that_leaves_are_said_one_by_one(run: Run, brokers: Brokers) -> None:
    brokers.seeds = "1@host-1:1,2@host-2:1,3@host-3:1"
    lines = run("broker", "decommission", "--host", "node-b")[1].splitlines()
    assert [one.partition(" in the")[0] for one in lines[1:]] == [
        "broker 2 votes",
        "broker 3 votes",
    ]
    told = json.loads(run("broker", "decommission", "--host", "node-b", "--json")[1])
    assert (told["brokers"], told["votes"]) == ([2, 3], True)


def test_a_machine_is_unregistered_as_a_whole_or_not_at_all(run: Run, brokers: Brokers) -> None:
    command = ("broker", "unregister", "--host", "node-b")
    brokers.brokers = [
        BalanceBroker(2, "up", is_leaving=True),
        BalanceBroker(3, "down", is_leaving=True, replica_count=4),
    ]
    assert run(*command)[::2] == (
        1,
        "error: --host node-b: broker 3 still holds 4 replicas: `strandline broker decommission "
        "--host node-b`, and wait until `strandline broker status` says that each is empty\n",
    )
    brokers.brokers[1] = BalanceBroker(3, "down", is_leaving=True)
    assert run(*command)[::2] == (
        1, "error: --host node-b: broker 2 is up: stop the machine's supervisor first\n",
    )  # fmt: skip
    brokers.brokers[0] = BalanceBroker(2, "lost", is_leaving=True)
    brokers.seeds = "1@host-1:1,2@host-2:1"
    assert run(*command)[2].startswith("error: --host node-b: broker 2 votes in the controller")
    assert brokers.unregistered == []
    brokers.seeds = "1@host-1:1"
    assert run(*command)[:2] == (0, "brokers 2,3 are removed from the cluster\n")
    assert brokers.unregistered == [2, 3]
    assert run("broker", "unregister", "2")[1] == "broker 2 is removed from the cluster\n"


@pytest.mark.parametrize("command", ["decommission", "cancel", "unregister"])
def test_a_broker_or_a_machine_has_to_be_said(run: Run, brokers: Brokers, command: str) -> None:
    for arguments in ((), ("2", "--host", "node-b")):
        code, _, error = run("broker", command, *arguments)
        assert (code, error) == (1, "error: give one of a broker ID and --host\n")
    code, _, error = run("broker", command, "--host", "node-x")
    assert (code, error) == (1, "error: --host node-x: no broker has this label host\n")
    assert brokers.changed == {} and brokers.unregistered == []


def test_a_domain_is_maintained_for_a_while_and_resumed(
    run: Run,
    brokers: Brokers,
) -> None:
    before_ms = int(time.time() * 1_000)
    code, out, _ = run("broker", "maintain", "--domain", "b", "--minutes", "2", "--json")
    told = json.loads(out)
    assert (code, told["brokers"]) == (0, [2, 3])
    assert told["until_ms"] >= before_ms + 120_000
    assert brokers.changed == {one: {MAINTENANCE: str(told["until_ms"])} for one in ("2", "3")}
    brokers.brokers = [BalanceBroker(one, "up", maintenance_until_ms=-1) for one in (2, 3)]
    assert run("broker", "resume", "--domain", "b")[:2] == (0, "maintenance ended: 2,3\n")
    assert brokers.changed == {one: {MAINTENANCE: None} for one in ("2", "3")}
    run("broker", "maintain", "1", "--minutes", "0")
    assert brokers.changed["1"] == {MAINTENANCE: "-1"}


def test_only_brokers_that_were_in_maintenance_are_said_to_end_it(
    run: Run, brokers: Brokers
) -> None:
    brokers.brokers = [BalanceBroker(2, "up", maintenance_until_ms=-1), BalanceBroker(3, "up")]
    assert run("broker", "resume", "--domain", "b")[:2] == (
        0, "maintenance ended: 2\nnot in maintenance: 3\n",
    )  # fmt: skip
    told = json.loads(run("broker", "resume", "--domain", "b", "--json")[1])
    assert told == {"brokers": [2, 3], "ended": [2]}


def test_a_machine_is_maintained_and_resumed_by_one_command(run: Run, brokers: Brokers) -> None:
    code, out, _ = run("broker", "maintain", "--host", "node-b", "--minutes", "0")
    assert (code, out.partition(";")[0]) == (0, "in maintenance: 2,3")
    assert brokers.changed == {"2": {MAINTENANCE: "-1"}, "3": {MAINTENANCE: "-1"}}
    assert run("broker", "resume", "--host", "node-b")[0] == 0
    assert brokers.changed == {"2": {MAINTENANCE: None}, "3": {MAINTENANCE: None}}


def test_a_host_that_is_none_or_two_machines_is_refused(run: Run, brokers: Brokers) -> None:
    code, _, error = run("broker", "maintain", "--host", "node-x")
    assert (code, error) == (1, "error: --host node-x: no broker has this label host\n")
    brokers.regions[3] = "west"
    code, _, error = run("broker", "maintain", "--host", "node-b")
    assert code == 1 and "brokers 2,3 have it in several regions" in error
    code, _, error = run("broker", "maintain", "2", "--host", "node-b")
    assert (code, error) == (1, "error: give one of a broker ID, --domain and --host\n")
    assert brokers.changed == {}


def test_what_is_refused_of_one_broker_of_a_domain_is_done_to_none(
    run: Run,
    brokers: Brokers,
) -> None:
    brokers.refused = {"3"}
    assert run("broker", "maintain", "--domain", "b") == (
        1, "", "error: broker 3: t-0 could not be written (POLICY_VIOLATION)\n",
    )  # fmt: skip
    assert brokers.changed == {}


@pytest.mark.parametrize("arguments", [(), ("1", "--domain", "b"), ("--domain", "c")])
def test_which_broker_has_to_be_said(
    run: Run,
    brokers: Brokers,
    arguments: tuple[str, ...],
) -> None:
    code, _, err = run("broker", "maintain", *arguments)
    assert code == 1 and "--domain" in err
    assert brokers.changed == {}


def test_the_status_is_that_of_one_moment(
    run: Run,
    brokers: Brokers,
    cluster: FakeCluster,
) -> None:
    assert run("broker", "status")[1] == "no broker is being decommissioned or in maintenance\n"
    cluster.add_topic("orders", 4)  # Broker 2 leads one of them.
    brokers.brokers = [
        BalanceBroker(1, "up", is_leaving=True, replica_count=3, moving_count=1),
        BalanceBroker(2, "up", maintenance_until_ms=-1),
        BalanceBroker(3, "down", is_leaving=True),
    ]
    brokers.waits = [BalanceWait("turn", "waits its turn", 9, ["a-0"], [LeavingCount(1, 2)])]
    brokers.looks = 0
    code, out, _ = run("broker", "status")
    assert code == 0
    assert out.splitlines() == [
        "broker 2 (up) is in maintenance and leads 1 partition",
        "broker 1 (up) holds 3 replicas, 1 of them moving away",
        "  turn: waits its turn; 2 partitions wait",
        "broker 3 is empty and stopped: you may unregister it",
    ]
    assert brokers.looks == 1
