"""`strandline partition declare-lost --from-bucket`: one table, one question, one result.

Source: decision 0067, on a cluster in memory."""

import io
import json
from collections.abc import Callable

import pytest
from tests.cli.command_line import Run, run
from tests.cli.test_partition_declare_many import World
from tests.client.fake_cluster import FakeCluster

from strandline.cli.commands import partition_declare_lost
from strandline.cli.text.declared_losses import declared_json, declared_text
from strandline.protocol.errors import Error
from strandline.protocol.messages.declare_lost import ShownReplicaLog
from strandline.protocol.messages.describe_losses import DeclaredLoss
from strandline.protocol.messages.recover_partition import (
    BucketHistory,
    RecoverPartitionRequest,
    RecoverPartitionResponse,
    WantedBucket,
)
from strandline.protocol.table import Message

__all__ = ["run"]

COMMAND = ("partition", "declare-lost")
HEADS = "PARTITION   BUCKETS    OBJECTS  BYTES  BEGINS AT  LOST FROM  LOGS LEFT"


class Recovering(World):
    """The buckets of every partition: east has offsets 5 to 99, west fewer; south is away."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.requests: list[RecoverPartitionRequest] = []
        self.refuses: Callable[[RecoverPartitionRequest], str] = lambda _: ""
        self.fake.extra["RecoverPartition"] = self._recover

    @property
    def begun(self) -> list[tuple[str, int]]:
        return [(one.topic, one.partition) for one in self.requests if not one.validate_only]

    def _recover(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        assert isinstance(request, RecoverPartitionRequest) and broker == fake.controller
        self.requests.append(request)
        why = self.refuses(request)
        if why:
            return RecoverPartitionResponse(error_code=Error.POLICY_VIOLATION, error_message=why)
        names = {one.bucket for one in request.buckets}
        east = BucketHistory("east", start_offset=5, end_offset=100, object_count=9, size_bytes=900)
        west = BucketHistory("west", start_offset=0, end_offset=60, object_count=6, size_bytes=600)
        east.high_watermark, west.missing, west.missing_count = 120, ["w-1"], 1
        east.added_count = 2
        east.is_wanted = bool(names & {"east", "*"})
        west.is_wanted = bool(names & {"west", "*"})
        return RecoverPartitionResponse(
            grant=5,
            leader_id=3,
            log_end_offset=100,
            logs=[ShownReplicaLog(3, 4, 10, 7, 10)],
            buckets=[east, west, BucketHistory("south", failure="no answer")],
        )


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Recovering:
    """A cluster in memory that the command finds."""
    made = Recovering()
    monkeypatch.setattr(partition_declare_lost, "open_client", made.open_client)
    return made


def test_one_partition_asks_for_the_name_and_sends_what_was_shown(
    world: Recovering, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("orders\n"))
    code, out, err = run(*COMMAND, "orders", "1", "--from-bucket", "east")
    assert code == 0, err
    lines = out.splitlines()
    assert lines[0].startswith("all logs of these partitions are given up")
    assert lines[2].split() == ["orders-1", "east", "9", "900", "5", "100", "broker", "3:", "10"]
    assert "orders-1: at least 20 records were acknowledged from offset 100 on, and are lost" in out
    assert "bucket west has offsets 0 to 59, and is not named" in out
    assert "bucket south does not say what it has: no answer" in out
    assert "bucket east: the last 2 objects line up, and no export names them yet" in out
    assert lines[-1].startswith("orders-1 begins anew with offset 100")
    asked, done = world.requests
    assert asked.validate_only and asked.buckets == [WantedBucket("east")]
    assert (asked.broker_ids, asked.grant) == ([1, 2], 4)
    assert done.buckets == [WantedBucket("east", 5, 100)]
    assert (done.logs, done.grant) == ([ShownReplicaLog(3, 4, 10, 7, 10)], 4)


def test_all_partitions_without_a_leader_are_one_table(
    world: Recovering, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("4\n"))
    options = ("--from-bucket", "all", "--accept-missing")
    code, out, err = run(*COMMAND, "--all", *options)
    assert code == 0, err
    assert out.splitlines()[1] == HEADS
    assert out.count("east,west") == 4
    assert "orders-0: bucket west lacks 1 object, w-1 among them" in out
    assert world.begun == [("orders", 0), ("orders", 1), ("payments", 0), ("payments", 1)]
    assert all(one.accepts_missing for one in world.requests)


def test_what_is_refused_is_said_and_the_rest_goes_on(world: Recovering, run: Run) -> None:
    world.refuses = lambda one: "bucket east lacks 3 objects" if one.partition == 1 else ""
    code, out, err = run(*COMMAND, "orders", "--from-bucket", "east", "--yes")
    assert code == 1
    assert "left out: no loss was declared: bucket east lacks 3 objects" in out
    assert err.splitlines()[-1].endswith("1 partition did not begin anew")
    assert world.begun == [("orders", 0)]


def test_a_dry_run_and_another_name_do_nothing(
    world: Recovering, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = run(*COMMAND, "orders", "0", "--from-bucket", "all", "--dry-run", "--json")
    told = json.loads(out)
    assert code == 0 and not told["declared"]
    assert told["partitions"][0]["lost_from"] == 100
    assert [one["used"] for one in told["partitions"][0]["buckets"]] == [True, True, False]
    monkeypatch.setattr("sys.stdin", io.StringIO("payments\n"))
    code, _, err = run(*COMMAND, "orders", "0", "--from-bucket", "all")
    assert code == 1 and "nothing done" in err
    assert world.begun == []


def test_options_that_do_not_fit_are_refused(world: Recovering, run: Run) -> None:
    code, _, err = run(*COMMAND, "orders", "--accept-missing")
    assert code == 1 and "--accept-missing goes with --from-bucket" in err
    assert world.requests == []


def test_a_topics_description_says_that_it_began_anew() -> None:
    loss = DeclaredLoss(
        topic="orders", grant=1, committed_offset=100, log_end_offset=100, by="me", buckets=["east"]
    )
    assert declared_text(loss) == (
        "partition 0: all logs given up on 1970-01-01 00:00 UTC by me; it began anew with what "
        "east had; offsets from 100 were at risk"
    )
    (told,) = declared_json("orders", [loss])
    assert isinstance(told, dict) and told["buckets"] == ["east"]
