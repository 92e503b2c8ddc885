"""What `strandline replica status` asks of whom, and what it says.

Source: reference observers 4.4 (fields and filters of kafka-replica-status)."""

import json

import pytest
from tests.cli.command_line import Run, cluster, run
from tests.client.fake_cluster import FakeCluster, FakeTransport

from strandline.cli.commands import replica
from strandline.client.cluster import Client
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_replica_status import (
    DescribeReplicaStatusRequest,
    DescribeReplicaStatusResponse,
    PartitionReplicaStatus,
    ReplicaStatus,
    TopicReplicaStatus,
)
from strandline.protocol.table import Message

__all__ = ["cluster", "run"]  # The fixtures.


def status(broker: int, *, lead: bool = False, observes: bool = False, end: int) -> ReplicaStatus:
    return ReplicaStatus(
        broker_id=broker,
        is_leader=lead,
        is_observer=observes,
        is_isr_eligible=not observes,
        is_in_isr=not observes,
        is_caught_up=end == 100,
        last_caught_up_lag_ms=0 if end == 100 else 1_500,
        last_fetch_lag_ms=7,
        log_start_offset=4 if lead else -1,
        log_end_offset=end,
    )


class Leaders:
    """Topics a (two partitions) and b (one), each led by the broker of its number."""

    def __init__(self, fake: FakeCluster) -> None:
        self.asked: list[tuple[int, list[tuple[str, list[int]]]]] = []
        self.has_moved = False
        fake.add_topic("a", 2)
        fake.add_topic("b", 1)
        fake.extra = {"DescribeReplicaStatus": self._answer}

    def _answer(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        assert isinstance(request, DescribeReplicaStatusRequest)
        self.asked.append((broker, [(one.name, one.partition_indexes) for one in request.topics]))
        refused = self.has_moved and len(self.asked) == 1
        code = Error.NOT_LEADER_OR_FOLLOWER if refused else 0
        replicas = [
            status(broker, lead=True, end=100),
            status(8, end=100),
            status(9, observes=True, end=60),
        ]
        return DescribeReplicaStatusResponse(
            topics=[
                TopicReplicaStatus(
                    one.name,
                    [
                        PartitionReplicaStatus(index, code, 5, 60_000, [] if code else replicas)
                        for index in one.partition_indexes
                    ],
                )
                for one in request.topics
            ]
        )


class Holders:
    """Topic a with four partitions, each on brokers 1 to 3: their logs begin at 10, 20 and 30."""

    def __init__(self, fake: FakeCluster) -> None:
        # Whom they were asked of, and which partitions, one request a row.
        self.asked: list[tuple[int, list[int]]] = []
        self.knows_starts = True
        fake.add_topic("a", 4)
        fake.extra = {"DescribeReplicaStatus": self._answer}

    def _answer(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        assert isinstance(request, DescribeReplicaStatusRequest)
        (topic,) = request.topics
        self.asked.append((broker, topic.partition_indexes))
        partitions = []
        for index in topic.partition_indexes:
            leads = fake.topics["a"][index].leader == broker
            replicas = [status(one, lead=one == broker, end=100) for one in (1, 2, 3)]
            partitions.append(
                PartitionReplicaStatus(
                    partition_index=index,
                    error_code=0 if leads else Error.NOT_LEADER_OR_FOLLOWER,
                    replicas=replicas if leads else [],
                    log_start_offset=10 * broker if self.knows_starts else -1,
                )
            )
        return DescribeReplicaStatusResponse(topics=[TopicReplicaStatus("a", partitions)])


@pytest.fixture
def holders(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> Holders:
    """See `Holders`."""
    _find(cluster, monkeypatch)
    return Holders(cluster)


@pytest.fixture
def leaders(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> Leaders:
    """See `Leaders`."""
    _find(cluster, monkeypatch)
    return Leaders(cluster)


def _find(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def open_client(bootstrap: str, timeout_s: float) -> Client:
        return Client(
            cluster.bootstrap, timeout_ms=int(timeout_s * 1000), transport=FakeTransport(cluster)
        )

    monkeypatch.setattr(replica, "open_client", open_client)


def test_each_leader_is_asked_once_for_all_that_it_leads(run: Run, leaders: Leaders) -> None:
    code, out, _ = run("replica", "status", "--json")
    assert code == 0
    assert sorted(leaders.asked) == [(1, [("a", [0]), ("b", [0])]), (2, [("a", [1])])]
    told = json.loads(out)["partitions"]
    assert [(one["topic"], one["partition"]) for one in told] == [("a", 0), ("a", 1), ("b", 0)]
    assert told[0]["metrics"] == {
        "ReplicasCount": 3,
        "ObserverReplicasCount": 1,
        "InSyncReplicasCount": 2,
        "CaughtUpReplicasCount": 2,
        "IsNotCaughtUp": 1,
        "ObserversInIsrCount": 0,
    }
    assert told[0]["replicas"][2] == {
        "replica": 9,
        "is_leader": False,
        "is_observer": True,
        "is_isr_eligible": False,
        "is_in_isr": False,
        "is_caught_up": False,
        "last_caught_up_lag_ms": 1_500,
        "last_fetch_lag_ms": 7,
        "log_start_offset": None,
        "log_end_offset": 60,
        "lag_records": 40,
    }


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (["--leaders", "only"], [1]),
        (["--leaders", "exclude"], [8, 9]),
        (["--observers", "only"], [9]),
        (["--observers", "exclude"], [1, 8]),
        (["--leaders", "only", "--observers", "only"], []),
        (["--leaders"], [1]),
        (["--observers"], [9]),
        (["--observers", "--leaders", "exclude"], [9]),
        (["--leaders", "--observers=exclude"], [1]),
    ],
)
def test_replicas_are_shown_by_their_kind(
    run: Run, leaders: Leaders, options: list[str], shown: list[int]
) -> None:
    code, out, _ = run("replica", "status", "--topics", "a", "--partitions", "0", *options)
    lines = [line.split() for line in out.splitlines() if line.startswith("a ")]
    assert (code, [int(line[2]) for line in lines]) == (0, shown)
    assert shown or out == "no such replica\n"
    code, out, _ = run(
        "replica", "status", "--topics", "a", "--partitions", "0-1", *options, "--json"
    )
    first, second = json.loads(out)["partitions"]
    assert [one["replica"] for one in first["replicas"]] == shown
    assert len(second["replicas"]) == len(shown)
    assert first["metrics"]["ReplicasCount"] == 3


def test_people_see_a_line_for_each_replica_and_the_counts_if_they_ask(
    run: Run, leaders: Leaders
) -> None:
    _, out, _ = run("replica", "status", "--topics", "b")
    head, *rows = out.splitlines()
    assert head.split()[:4] == ["TOPIC", "PARTITION", "REPLICA", "LEADER"]
    assert rows[0].split() == (
        ["b", "0", "1", "yes", "no", "yes", "yes", "yes", "0", "7", "4", "100", "0"]
    )
    assert rows[2].split() == (
        ["b", "0", "9", "no", "yes", "no", "no", "no", "1500", "7", "?", "60", "40"]
    )
    assert len(rows) == 3
    _, out, _ = run("replica", "status", "--topics", "b", "--verbose")
    assert out.splitlines()[-1].split() == ["b", "0", "3", "1", "2", "2", "1", "0"]


def test_without_options_all_replicas_are_shown(run: Run, leaders: Leaders) -> None:
    code, out, err = run("replica", "status")
    assert code == 0, err
    assert {line.split()[0] for line in out.splitlines()} >= {"TOPIC", "a", "b"}


def test_a_leader_that_has_moved_is_looked_for_once_more(run: Run, leaders: Leaders) -> None:
    leaders.has_moved = True
    code, out, _ = run("replica", "status", "--topics", "b", "--json")
    assert code == 0 and len(leaders.asked) == 2
    assert json.loads(out)["partitions"][0]["leader_answers"]


def test_who_does_not_answer_is_named(run: Run, leaders: Leaders, cluster: FakeCluster) -> None:
    cluster.silent = {2}
    code, out, _ = run("replica", "status", "--topics", "a")
    assert code == 0
    assert out.splitlines()[-1] == "a-1: its leader, broker 2, does not answer"
    _, out, _ = run("replica", "status", "--topics", "a", "--json")
    assert json.loads(out)["partitions"][1] == {
        "topic": "a",
        "partition": 1,
        "leader": 2,
        "leader_answers": False,
        "leader_epoch": None,
        "leading_ms": None,
        "metrics": {},
        "replicas": [],
    }


def test_what_helps_where_nobody_leads_is_named(
    run: Run, leaders: Leaders, cluster: FakeCluster
) -> None:
    cluster.topics["a"][1].leader = -1
    code, out, _ = run("replica", "status", "--topics", "a")
    line = out.splitlines()[-1]
    assert code == 0 and line.startswith("a-1: it has no leader; to see what helps: ")
    assert line.endswith(" partition survivors a 1")


def test_a_kind_that_there_is_not_is_refused(run: Run, leaders: Leaders) -> None:
    code, _, err = run("replica", "status", "--leaders", "both")
    assert code == 2 and "'both' is not one of 'only', 'exclude'" in err


@pytest.mark.parametrize("text", ["x", "1-", "-1", "3-1-2", "0-999999999", "5-2", "7"])
def test_numbers_that_are_none_are_refused(run: Run, leaders: Leaders, text: str) -> None:
    code, _, err = run("replica", "status", f"--partitions={text}")
    assert code == 1 and err.startswith("error: --partitions")


def test_a_topic_that_there_is_not_is_an_error(run: Run, leaders: Leaders) -> None:
    code, _, err = run("replica", "status", "--topics", "a,zzz")
    assert (code, err) == (
        1,
        "error: topic zzz does not exist; see `strandline topic list`\n",
    )


def starts(out: str) -> list[list[int | None]]:
    """Of each partition, by replica."""
    return [
        [one["log_start_offset"] for one in partition["replicas"]]
        for partition in json.loads(out)["partitions"]
    ]


def test_each_broker_tells_where_its_own_logs_begin(run: Run, holders: Holders) -> None:
    """Those of a broker all in one request."""
    code, out, _ = run("replica", "status", "--json")
    # The leader of a-1 is broker 2, that of a-2 is broker 3: `status` gives them 4, as leaders.
    assert (code, starts(out)) == (0, [[4, 20, 30], [10, 4, 30], [10, 20, 4], [4, 20, 30]])
    led = [(1, [0, 3]), (2, [1]), (3, [2])]
    assert sorted(holders.asked) == sorted([*led, (1, [1, 2]), (2, [0, 2, 3]), (3, [0, 1, 3])])
    _, out, _ = run("replica", "status", "--topics", "a", "--partitions", "0")
    assert [line.split()[10] for line in out.splitlines()] == ["LOG-START", "4", "20", "30"]


def test_a_request_names_so_many_partitions_and_no_more(
    run: Run, holders: Holders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strandline.client.operations.replica_status.PARTITIONS_MAX", 2)
    code, out, _ = run("replica", "status", "--json")
    assert (code, starts(out)) == (0, [[4, 20, 30], [10, 4, 30], [10, 20, 4], [4, 20, 30]])
    assert [asked for broker, asked in holders.asked if broker == 2] == [[1], [0, 2], [3]]


def test_a_broker_that_hangs_leaves_its_own_replicas_starts_empty(
    run: Run, holders: Holders, cluster: FakeCluster
) -> None:
    cluster.silent = {3}
    code, out, _ = run("replica", "status", "--partitions", "0-1", "--json")
    assert (code, starts(out)) == (0, [[4, 20, None], [10, 4, None]])
    _, out, _ = run("replica", "status", "--topics", "a", "--partitions", "0")
    assert [line.split()[10] for line in out.splitlines()] == ["LOG-START", "4", "20", "?"]


def test_a_broker_of_an_older_version_leaves_them_empty(run: Run, holders: Holders) -> None:
    holders.knows_starts = False
    _, out, _ = run("replica", "status", "--partitions", "0", "--json")
    assert starts(out) == [[4, None, None]]


def test_only_brokers_whose_replicas_are_shown_are_asked(run: Run, holders: Holders) -> None:
    code, _, _ = run("replica", "status", "--partitions", "0", "--leaders", "only")
    assert (code, holders.asked) == (0, [(1, [0])])
