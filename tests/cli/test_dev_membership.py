"""A local cluster gains and loses brokers for good: the plan, the file, the processes.

Source: docs/operating/brokers.md, "Rehearse it on a laptop"."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.test_lifecycle import FakeBrokers, open_cluster, start, states
from tests.client.fake_cluster import FakeCluster

from strandline.base.errors import OperatorError
from strandline.cli.dev.cluster_file import ClusterDirectory
from strandline.cli.dev.lifecycle import LocalCluster, StartOptions
from strandline.cli.dev.plan import Plan, plan_brokers, plan_next_broker
from strandline.config.load import load_broker_config
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_balance import BalanceBroker, DescribeBalanceResponse
from strandline.protocol.messages.describe_status import DescribeStatusResponse
from strandline.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from strandline.protocol.table import Message


class World(FakeBrokers):
    """The processes, and a controller that knows these brokers. `seen`: for so many requests it
    still hears a broker that has stopped."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[BalanceBroker] = []
        self.seen = 0
        self.unregistered: list[int] = []
        self.voters = [1, 2, 3]
        self.cluster.extra = {
            "DescribeBalance": self._balance,
            "DescribeStatus": lambda *_: DescribeStatusResponse(controller_voters=self.voters),
            "UnregisterBroker": self._forget,
        }

    def _balance(self, _: FakeCluster, __: int, ___: Message) -> Message:
        return DescribeBalanceResponse(is_enabled=True, brokers=self.rows)

    def _forget(self, _: FakeCluster, __: int, request: Message) -> Message:
        assert isinstance(request, UnregisterBrokerRequest)
        if request.broker_id not in [one.broker_id for one in self.rows]:
            return UnregisterBrokerResponse(error_code=Error.BROKER_ID_NOT_REGISTERED)
        if self.seen:
            self.seen -= 1
            return UnregisterBrokerResponse(error_code=Error.POLICY_VIOLATION)
        self.unregistered.append(request.broker_id)
        return UnregisterBrokerResponse()


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.reap()


@pytest.fixture
def running(tmp_path: Path, world: World) -> LocalCluster:
    """Three brokers, of which the third is the only one in the west; all three vote."""
    opened = open_cluster(tmp_path, world)
    start(opened, StartOptions(port_base=20_000, rtt="east-west=30"))
    return opened


def config_of(cluster: LocalCluster, number: int) -> Path:
    return cluster.directory.path / f"broker-{number}" / "config.toml"


def test_the_next_broker_has_an_id_and_ports_that_no_broker_has() -> None:
    brokers = plan_brokers({"a": 2}, port_base=20_000, is_free=lambda port: True)
    plan = Plan(cluster_id="c", brokers=brokers)
    taken = {20_002, 20_102}
    added = plan_next_broker(plan, "b", used_ids=[1, 2], is_free=lambda port: port not in taken)
    assert (added.id, added.region, added.kafka_port, added.rpc_port) == (3, "b", 20_003, 20_103)
    wider = plan.with_broker(added)
    assert wider.regions == {"a": 2, "b": 1}
    # An id with a directory is not used again, for its data is of another broker.
    later = plan_next_broker(wider, "b", used_ids=[1, 2, 3, 7], is_free=lambda port: True)
    assert (later.id, later.kafka_port, later.rpc_port) == (8, 20_004, 20_104)


@pytest.mark.parametrize(("region", "says"), [("", "must have a name"), ("a/b", "must be 1 to 63")])
def test_a_region_without_a_right_name_is_refused(region: str, says: str) -> None:
    brokers = plan_brokers({"a": 1}, port_base=20_000, is_free=lambda port: True)
    with pytest.raises(OperatorError, match=f"--region: a region {says}"):
        plan_next_broker(
            Plan(cluster_id="c", brokers=brokers), region, used_ids=(), is_free=lambda port: True
        )


@pytest.mark.parametrize("regions", [{"a": 2}, {"a": 4}, {"a": 1, "b": 1}, {"a": 5}])
def test_the_voters_stay_whatever_comes_and_goes(tmp_path: Path, regions: dict[str, int]) -> None:
    brokers = plan_brokers(regions, port_base=20_000, is_free=lambda port: True)
    plan = Plan(cluster_id="c", brokers=brokers)
    voters = [one.id for one in plan.voters]
    wider = plan
    for _ in range(3):
        added = plan_next_broker(wider, "c", used_ids=(), is_free=lambda port: True)
        wider = wider.with_broker(added)
        assert [one.id for one in wider.voters] == voters
    directory = ClusterDirectory(tmp_path)
    directory.write(wider)
    assert directory.read() == wider
    gone, *kept = wider.voters
    narrower = wider.without_broker(gone, voter_ids=(*(one.id for one in kept), added.id))
    assert narrower.voters == (*kept, added)
    directory.write(narrower)
    assert directory.read() == narrower and gone not in narrower.brokers


def test_a_file_whose_voter_is_missing_is_damaged(tmp_path: Path) -> None:
    brokers = plan_brokers({"a": 3}, port_base=20_000, is_free=lambda port: True)
    directory = ClusterDirectory(tmp_path)
    directory.write(Plan(cluster_id="c", brokers=brokers, voter_ids=(1, 2, 9)))
    with pytest.raises(OperatorError, match="is damaged"):
        directory.read()


def test_a_broker_is_added_to_the_running_cluster_and_kept(
    running: LocalCluster, world: World
) -> None:
    seeds = load_broker_config(config_of(running, 1).read_text(), file="f").seeds
    added = running.add_broker("west")
    assert (added.id, world.spawned) == (4, [1, 2, 3, 4])
    assert states(running)[4] == "serving"
    config = load_broker_config(config_of(running, 4).read_text(), file="f")
    assert (config.broker_id, config.labels.region, config.seeds) == (4, "west", seeds)
    assert config.peer_rtt_ms == {1: 30, 2: 30}
    # The others have the link from their next start on; their seeds stay.
    first = load_broker_config(config_of(running, 1).read_text(), file="f")
    assert first.peer_rtt_ms == {3: 30, 4: 30} and first.seeds == seeds
    running.stop(remove=False)
    start(running)
    assert set(states(running).values()) == {"serving"} and len(states(running)) == 4


def test_edited_files_stay_when_a_broker_comes(running: LocalCluster) -> None:
    file = config_of(running, 1)
    edited = "# mine\n" + file.read_text()
    file.write_text(edited)
    running.add_broker("east")
    assert file.read_text() == edited
    plan, _ = running.status()
    assert [one.id for one in running.directory.edited(plan)] == [1]


def test_no_broker_is_added_to_a_cluster_that_is_stopped(running: LocalCluster) -> None:
    running.stop(remove=False)
    with pytest.raises(OperatorError, match=r"the cluster is stopped, .*: strandline dev start"):
        running.add_broker("west")
    assert len(running.status()[0].brokers) == 3


def test_a_new_broker_that_ends_while_starting_stays_in_the_file(
    running: LocalCluster, world: World
) -> None:
    world.fails[4] = "no room"
    with pytest.raises(OperatorError, match="broker 4 exited while starting: error: no room"):
        running.add_broker("west")
    assert states(running) == {1: "serving", 2: "serving", 3: "serving", 4: "down"}
    world.fails.clear()
    assert running.start_brokers(lambda plan: (plan.broker(4),)) == [4]


@pytest.mark.parametrize("removes", [False, True])
def test_an_empty_broker_is_stopped_unregistered_and_taken_out(
    running: LocalCluster, world: World, removes: bool
) -> None:
    running.add_broker("west")
    world.rows = [BalanceBroker(4, "up", is_leaving=True)]
    world.seen = 2
    assert running.remove_broker(4, remove_data=removes).id == 4
    assert world.unregistered == [4]
    assert list(states(running)) == [1, 2, 3]
    assert world.processes[-1].wait() is not None
    assert config_of(running, 4).exists() is not removes
    assert "4=" not in config_of(running, 1).read_text()
    assert running.add_broker("west").id == (4 if removes else 5)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (BalanceBroker(4, "up"), "broker 4 is not decommissioned: strandline broker decommission"),
        (
            BalanceBroker(4, "up", is_leaving=True, replica_count=2),
            "broker 4 still holds 2 replicas: wait until `strandline broker status`",
        ),
    ],
)
def test_a_broker_that_may_not_go_stays_up(
    running: LocalCluster, world: World, row: BalanceBroker, says: str
) -> None:
    running.add_broker("west")
    world.rows = [row]
    with pytest.raises(OperatorError, match=says):
        running.remove_broker(4, remove_data=True)
    assert states(running)[4] == "serving" and world.unregistered == []


def test_a_voter_is_not_removed_before_its_vote_has_moved(
    running: LocalCluster, world: World
) -> None:
    added = running.add_broker("west")
    world.rows = [BalanceBroker(3, "up", is_leaving=True)]
    with pytest.raises(OperatorError, match="broker 3 votes in the controller until another"):
        running.remove_broker(3, remove_data=True)
    assert states(running)[3] == "serving"
    # The seeds in the files are the voters from then on.
    world.voters = [1, 2, added.id]
    running.remove_broker(3, remove_data=True)
    config = load_broker_config(config_of(running, 1).read_text(), file="f")
    assert [one.id for one in config.seeds] == world.voters
    assert list(states(running)) == [1, 2, 4]


def test_the_only_broker_stays(tmp_path: Path, world: World) -> None:
    alone = open_cluster(tmp_path, world)
    start(alone, StartOptions(port_base=20_000, regions="east=1"))
    with pytest.raises(OperatorError, match="broker 1 is the only one: strandline dev stop"):
        alone.remove_broker(1, remove_data=True)


def test_a_broker_that_never_joined_is_taken_out(running: LocalCluster, world: World) -> None:
    world.fails[4] = "no room"
    with pytest.raises(OperatorError):
        running.add_broker("west")
    running.remove_broker(4, remove_data=True)
    body = json.loads(running.directory.file.read_text())
    assert [one["id"] for one in body["brokers"]] == body["voters"] == [1, 2, 3]
