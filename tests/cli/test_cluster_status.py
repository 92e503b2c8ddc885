"""`strandline cluster status`: one page from what the brokers tell, on a cluster in memory.

Source: docs/operating/outages.md; docs/decisions/0046-cluster-status.md."""

import json
import threading
from dataclasses import dataclass, field

import pytest
from tests.cli.command_line import Run, cluster, run
from tests.client.fake_cluster import FakeCluster

from strandline.cli.exit_codes import CANNOT_CONNECT, ERROR, UNHEALTHY
from strandline.cli.output import program
from strandline.client.operations import cluster_status
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_status import (
    DescribeStatusResponse,
    StatusBroker,
    StatusLostLogs,
    StatusPartitions,
)
from strandline.protocol.messages.describe_zones import DescribeZonesResponse, ZoneHappening
from strandline.protocol.table import Message

__all__ = ["cluster", "run"]  # The fixtures.

WALL_MS = 1_700_000_000_000
DOWN_MS = 720_000
REGIONS = {1: "east", 2: "west", 3: "west"}
HELD = "region west is down since 22:01 UTC, 2 of 2 brokers silent: held until it returns"


@dataclass
class World:
    """Three brokers; those in `fake.down` are not heard by the others."""

    fake: FakeCluster
    is_settled: bool = True
    voters: list[int] = field(default_factory=lambda: [1, 2, 3])
    leaderless: list[StatusPartitions] = field(default_factory=list)
    refusing: dict[int, list[StatusPartitions]] = field(default_factory=dict)
    thin: list[StatusPartitions] = field(default_factory=list)
    lost_logs: dict[int, list[StatusLostLogs]] = field(default_factory=dict)
    fates: dict[int, tuple[str, str, int]] = field(default_factory=dict)
    happenings: list[ZoneHappening] = field(default_factory=list)
    recorded: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.fake.extra |= {"DescribeStatus": self._tell, "DescribeZones": self._zones}

    def lose(self, *brokers: int) -> None:
        self.fake.down.update(brokers)

    def _tell(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        leads = broker == fake.controller
        answer = DescribeStatusResponse(
            cluster_id="fake",
            broker_id=broker,
            controller_id=-1 if fake.controller in fake.down else fake.controller,
            is_controller=leads,
            is_settled=leads and self.is_settled,
            controller_voters=self.voters,
            partition_count=20,
            offsets_partition_count=50,
            leaderless=self.leaderless,
            refusing=self.refusing.get(broker, []),
            thin=self.thin,
            lost_logs=self.lost_logs.get(broker, []),
        )
        for one, address in fake.brokers.items():
            heard = one not in fake.down
            fate, text, due_ms = self.fates.get(one, ("", "", -1)) if leads else ("", "", -1)
            answer.brokers.append(
                StatusBroker(
                    broker_id=one,
                    host=address.host,
                    port=address.port,
                    region=REGIONS[one],
                    is_heard=heard,
                    silent_ms=0 if heard else DOWN_MS,
                    silent_since_ms=self.recorded.get(one, -1),
                    fate=fate,
                    fate_text=text,
                    due_ms=due_ms,
                )
            )
        return answer

    def _zones(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        return DescribeZonesResponse(happenings=self.happenings)


@pytest.fixture
def world(cluster: FakeCluster) -> World:
    """Broker 1 is the controller."""
    return World(cluster)


def sections(out: str) -> dict[str, list[str]]:
    """{title: its lines}, of what was printed."""
    found: dict[str, list[str]] = {}
    title = ""
    for line in out.splitlines()[1:]:
        if line.startswith("  "):
            found[title].append(line.strip())
        elif line and not line.endswith("."):
            title = line
            found[title] = []
    return found


def test_a_healthy_cluster_is_called_so_and_exits_0(run: Run, world: World) -> None:
    code, out, err = run("cluster", "status")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "cluster fake: 3 brokers, 3 answer; controller: broker 1",
        "Nothing is down, stopped or at risk.",
    ]
    told = json.loads(run("cluster", "status", "--json")[1])
    assert told["healthy"] and told["controller"] == 1 and told["controller_settled"]
    assert [one["down"] for one in told["brokers"]] == [False] * 3


def test_a_setting_that_differs_is_a_risk_with_the_command_that_says_more(
    run: Run, world: World
) -> None:
    text = "setting [replication] election_timeout_ms: 800 on broker 1; 8000 on brokers 2, 3: ..."
    world.happenings = [ZoneHappening("settings-differ", "setting x", text, 1_000)]
    code, out, _ = run("cluster", "status")
    assert code == UNHEALTHY
    assert sections(out) == {
        "AT RISK": [text],
        "TO TYPE": [f"{program()} doctor settings    # which brokers differ, and what to do"],
    }


def test_a_region_that_is_down_is_one_line_with_its_beginning(run: Run, world: World) -> None:
    world.lose(2, 3)
    world.recorded = {2: WALL_MS - DOWN_MS, 3: WALL_MS - DOWN_MS + 5_000}
    world.fates = dict.fromkeys((2, 3), ("held", HELD, -1))
    world.happenings = [ZoneHappening("region", "region west", "...", DOWN_MS)]
    world.leaderless = [
        StatusPartitions("orders", [0, 1, 2, 7], "may-lack", 3, 1, 1, [2, 3]),
        StatusPartitions("payments", [0], "let-voters-leave", 4, 2, 1, [2, 3]),
        StatusPartitions("__consumer_offsets", [3, 4], "may-lack", 3, 1, 1, [2, 3]),
    ]
    code, out, _ = run("cluster", "status")
    found = sections(out)
    assert code == UNHEALTHY and "NOT KNOWN" not in found
    assert found["DOWN"] == [
        "region west (brokers 2,3): silent since 2023-11-14 22:01 UTC (12 min)"
    ]
    assert found["STOPPED"] == [
        "no leader: 5 partitions: orders 0-2,7; payments 0",
        (
            "consumer groups: 2 of 50 partitions of __consumer_offsets have no leader; their "
            "groups have no coordinator"
        ),
    ]
    assert found["AT RISK"] == [
        (
            "the brokers that are left may lack acknowledged records: 6 partitions: "
            "__consumer_offsets 3-4; orders 0-2,7"
        )
    ]
    assert f"replacement of brokers 2,3: held: {HELD}" in found["BY ITSELF"]
    assert any(
        one.endswith("go on when 1 of brokers 2,3 returns with disks intact")
        for one in found["BY ITSELF"]
    )
    typed = "\n".join(found["TO TYPE"])
    assert "topic alter payments -c voters.shrink.enable=true" in typed
    assert "partition declare-lost --all --dry-run" in typed
    assert "zone status" in typed
    told = json.loads(run("cluster", "status", "--json")[1])
    assert [one["silent_since_ms"] for one in told["brokers"]] == [
        None,
        WALL_MS - DOWN_MS,
        WALL_MS - DOWN_MS + 5_000,
    ]
    assert told["without_leader"][0]["course"] == "may-lack"


def test_a_broker_that_is_to_be_replaced_is_told_with_the_time(run: Run, world: World) -> None:
    world.lose(3)
    world.fates = {3: ("due", "", 180_000)}
    world.thin = [StatusPartitions("orders", [1], "election", 3, 2, 0, [3])]
    _, out, _ = run("cluster", "status")
    found = sections(out)
    assert found["DOWN"] == ["broker 3 in region west: silent since 2023-11-14 22:01 UTC (12 min)"]
    assert found["AT RISK"] == [
        "one more silent voter stops writes with acks=all: 1 partition: orders 1"
    ]
    (line,) = found["BY ITSELF"]
    assert line.startswith("replacement of broker 3: in 3 min (2023-11-14 22:16 UTC), unless it ")


def test_brokers_that_are_to_be_replaced_at_the_same_time_are_one_line(
    run: Run, world: World
) -> None:
    world.lose(2, 3)
    world.fates = dict.fromkeys((2, 3), ("due", "", 180_000))
    (line,) = sections(run("cluster", "status")[1])["BY ITSELF"]
    assert line == (
        "replacement of brokers 2,3: in 3 min (2023-11-14 22:16 UTC), unless they return"
    )


def test_a_young_silence_is_not_said_to_end_in_a_replacement(run: Run, world: World) -> None:
    """Seconds later the region may count as down, and hold it."""
    world.lose(2, 3)
    world.recorded = dict.fromkeys((2, 3), WALL_MS - 3_000)
    world.fates = dict.fromkeys((2, 3), ("due", "", 897_000))
    (line,) = sections(run("cluster", "status")[1])["BY ITSELF"]
    assert line.startswith("replacement of brokers 2,3: not decided yet: held if a zone or region ")


def test_what_is_over_leaves_nothing_to_type(run: Run, world: World) -> None:
    """The controller's report about partitions ends half a minute after its cause."""
    world.happenings = [ZoneHappening("no-leader", "partitions", "...", 20_000)]
    code, out, _ = run("cluster", "status")
    assert code == 0 and sections(out) == {}


def test_without_a_controller_it_says_why_and_what_is_seen(run: Run, world: World) -> None:
    world.lose(1, 2)
    world.leaderless = [StatusPartitions("orders", [0], "may-lack", 3, 1, 1, [1, 2])]
    code, out, _ = run("cluster", "status")
    found = sections(out)
    assert code == UNHEALTHY and out.startswith("cluster fake: 3 brokers, 1 answer; controller: n")
    assert found["NOT KNOWN"] == [
        (
            "no controller: 1 of 3 of its voters answers, 2 are needed: start 1 of broker 1, 2; "
            "the rest is what the brokers that answer see"
        )
    ]
    assert len(found["DOWN"]) == 2 and "without a controller" in found["STOPPED"][-1]
    assert not any("declare-lost" in one for one in found["TO TYPE"])
    assert json.loads(run("cluster", "status", "--json")[1])["controller"] is None


def test_a_partition_that_elects_no_leader_is_one_to_look_at(run: Run, world: World) -> None:
    world.leaderless = [StatusPartitions("orders", [4], "election", 1, 1, 0, [])]
    found = sections(run("cluster", "status")[1])
    assert found["BY ITSELF"] == ["1 partition: orders 4: elect a leader within seconds"]
    (typed,) = found["TO TYPE"]
    assert "partition survivors orders 4    # if it has no leader after a minute" in typed


def test_lost_logs_are_named_with_what_helps_instead_of_an_election(run: Run, world: World) -> None:
    """The brokers are back, with empty disks: 0 has no log, 1 one of three, 2 two of three."""
    world.leaderless = [StatusPartitions("orders", [0, 1, 2], "election", 3, 3, 0, [])]
    world.lost_logs = {
        1: [StatusLostLogs("orders", [0, 1, 2], has_buckets=True)],
        2: [StatusLostLogs("orders", [0, 1], has_buckets=True)],
        3: [StatusLostLogs("orders", [0], has_buckets=True)],
    }
    code, out, _ = run("cluster", "status")
    found = sections(out)
    assert code == UNHEALTHY
    assert found["BY ITSELF"] == ["1 partition: orders 2: elect a leader within seconds"]
    assert found["AT RISK"] == [
        (
            "1 partition: orders 0: all logs that are left are lost on brokers 1,2,3: no leader by "
            "itself"
        ),
        "1 partition: orders 1: too many logs are lost on brokers 1,2: no leader by itself",
    ]
    assert [one.removeprefix(program()) for one in found["TO TYPE"][:2]] == [
        " partition survivors orders 0    # which logs are left",
        (
            " partition declare-lost orders 0 --from-bucket all --dry-run    # what the buckets "
            "have: the partition can begin anew with it"
        ),
    ]
    told = json.loads(run("cluster", "status", "--json")[1])
    assert told["logs_lost"][1] == {
        "topic": "orders",
        "partitions": [1],
        "brokers": [1, 2],
        "all": False,
        "has_buckets": True,
    }


def test_without_buckets_it_names_the_logs_that_are_left(run: Run, world: World) -> None:
    world.leaderless = [StatusPartitions("orders", [0], "election", 3, 3, 0, [])]
    world.lost_logs = {one: [StatusLostLogs("orders", [0])] for one in (1, 2)}
    typed = sections(run("cluster", "status")[1])["TO TYPE"]
    assert "partition declare-lost orders 0 --dry-run    # the offsets at risk" in typed[1]
    world.lost_logs[3] = [StatusLostLogs("orders", [0])]
    (line,) = sections(run("cluster", "status")[1])["TO TYPE"]
    assert "no log and no bucket: bring a disk back, or delete the topic" in line


def test_a_young_controller_is_not_believed_yet(run: Run, world: World) -> None:
    world.is_settled = False
    code, out, _ = run("cluster", "status")
    assert code == UNHEALTHY and "Nothing is down" not in out
    assert sections(out)["NOT KNOWN"][0].startswith("the controller began to lead a moment ago")


def test_a_partition_that_rejects_acks_all_is_told_by_its_leader(run: Run, world: World) -> None:
    world.lose(3)
    world.refusing = {2: [StatusPartitions("orders", [4], "lower-min-insync", 3, 2, 1, [3])]}
    found = sections(run("cluster", "status")[1])
    assert found["STOPPED"] == ["acks=all is rejected: 1 partition: orders 4"]
    assert any("topic alter orders -c min.insync.replicas=2" in one for one in found["TO TYPE"])
    world.refusing = {2: [StatusPartitions("orders", [4], "stands-in", 3, 2, 0, [3])]}
    found = sections(run("cluster", "status")[1])
    text = "1 partition: orders 4: get an observer that stands in, and take acks=all again"
    assert text in found["BY ITSELF"]


def test_a_leader_that_does_not_answer_here_is_heard_by_the_controller(
    run: Run, world: World
) -> None:
    text = "acks=all writes are rejected: 1 partition, orders-4"
    world.happenings = [ZoneHappening("low-quorum", "partitions", text, 60_000)]
    code, out, _ = run("cluster", "status")
    assert code == UNHEALTHY and sections(out)["STOPPED"] == [text]


def test_a_bucket_that_lags_is_a_risk_and_one_that_stops_writes_stops_them(
    run: Run, world: World
) -> None:
    lag = "closed segments are missing from a bucket: t-0; full in 5 h"
    full = "writes are refused: t-0"
    world.happenings = [
        ZoneHappening("tiered-lag", "partitions", lag, 60_000),
        ZoneHappening("tiered-full", "partitions", full, 60_000),
    ]
    code, out, _ = run("cluster", "status")
    found = sections(out)
    assert code == UNHEALTHY
    assert (found["AT RISK"], found["STOPPED"]) == ([lag], [full])


def test_a_broker_that_only_others_reach_is_not_called_down(run: Run, world: World) -> None:
    world.fake.faults["DescribeStatus"] = ["die"] * 9
    world.fake.faults.pop("DescribeStatus")
    tell = world.fake.extra["DescribeStatus"]
    world.fake.extra["DescribeStatus"] = lambda fake, broker, request: (
        None if broker == 3 else tell(fake, broker, request)
    )
    found = sections(run("cluster", "status")[1])
    assert found["DOWN"] == [
        (
            "broker 3: no answer here, but brokers 1,2 hear it: cut off from here, or down since a "
            "moment ago: ask again in a few seconds"
        )
    ]


def test_a_dead_broker_costs_less_than_its_timeout(
    run: Run, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread hangs; the page is there all the same, and no thread is waited for."""
    ends = threading.Event()
    tell = world.fake.extra["DescribeStatus"]

    def hang(fake: FakeCluster, broker: int, request: Message) -> Message | None:
        if broker == 3:
            assert ends.wait(60)
            return None
        return tell(fake, broker, request)

    world.fake.extra["DescribeStatus"] = hang
    monkeypatch.setattr(cluster_status, "HEARD_PATIENCE_MS", 1_000)
    code, out, _ = run("cluster", "status")
    assert code == UNHEALTHY and out.startswith("cluster fake: 3 brokers, 2 answer")
    assert not ends.is_set()
    ends.set()


def test_a_cluster_that_does_not_answer_is_a_failure_to_connect(run: Run, world: World) -> None:
    world.lose(1, 2, 3)
    code, out, err = run("cluster", "status")
    assert (code, out) == (CANNOT_CONNECT, "") and "cannot reach the cluster" in err


def test_a_broker_whose_answer_is_an_error_has_not_answered(run: Run, world: World) -> None:
    tell = world.fake.extra["DescribeStatus"]
    world.fake.extra["DescribeStatus"] = lambda fake, broker, request: (
        DescribeStatusResponse(error_code=-1, error_message="see the log, cause id 3-1")
        if broker == 3
        else tell(fake, broker, request)
    )
    code, out, _ = run("cluster", "status")
    assert code == UNHEALTHY and out.startswith("cluster fake: 3 brokers, 2 answer; ")
    world.fake.extra["DescribeStatus"] = lambda *_: DescribeStatusResponse(error_code=-1)
    code, out, err = run("cluster", "status")
    assert (code, out) == (CANNOT_CONNECT, "") and "cannot reach the cluster: the status of " in err


def test_brokers_of_an_older_release_are_told_of(run: Run, world: World) -> None:
    world.fake.max_versions = {20_016: -1}
    code, _, err = run("cluster", "status")
    assert code == 1 and "does not offer DescribeStatus" in err


def test_a_client_without_the_right_learns_which_it_lacks(run: Run, world: World) -> None:
    world.fake.extra["DescribeStatus"] = lambda *_: DescribeStatusResponse(
        error_code=Error.CLUSTER_AUTHORIZATION_FAILED
    )
    code, out, err = run("cluster", "status")
    assert (code, out) == (ERROR, "")
    assert "User:ANONYMOUS may not describe the cluster; to allow it: strandline acl create" in err
    assert "cannot reach" not in err and err.count("may not") == 1
