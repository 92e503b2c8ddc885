"""`strandline partition declare-lost`: what is shown and asked, on a cluster in memory (decision
0027)."""

import io
import json

import pytest
from tests.cli.command_line import Run, run
from tests.cli.test_partition_survivors import World

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
from strandline.protocol.table import Message

__all__ = ["run"]


class Declaring(World):
    """Broker 3 is left; the controller is asked."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.asked: list[DeclareLostRequest] = []
        self.refusal, self.refused_with = "", Error.POLICY_VIOLATION
        self.ends = {3: (12, 15)}
        self.fake.extra["DeclareLost"] = self._declare
        self.fake.controller = 3
        self.lose(1, 2)

    def _declare(self, fake: object, broker: int, request: Message) -> Message:
        assert isinstance(request, DeclareLostRequest)
        self.asked.append(request)
        if self.refusal:
            return DeclareLostResponse(error_code=self.refused_with, error_message=self.refusal)
        return DeclareLostResponse(
            grant=request.grant + 1 if request.validate_only else 1,
            leader_id=3,
            committed_offset=12,
            log_end_offset=15,
            logs=[ShownReplicaLog(3, 4, 14, 12, 15)],
        )


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Declaring:
    """A cluster in memory that the command finds."""
    made = Declaring()

    def open_client(bootstrap: str, timeout_s: float) -> Client:
        return made.open_client(bootstrap, timeout_s)

    monkeypatch.setattr(partition_declare_lost, "open_client", open_client)
    return made


def typed(patch: pytest.MonkeyPatch, text: str) -> None:
    patch.setattr("sys.stdin", io.StringIO(text))


def test_what_is_at_risk_is_shown_and_the_name_is_asked_for(
    world: Declaring, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, "t\n")
    code, out, err = run("partition", "declare-lost", "t", "0")
    assert code == 0
    assert err.splitlines()[-1] == "Type t to continue: "
    lines = out.splitlines()
    assert lines[0] == "t-0:" and lines[2].split()[:3] == ["1", "voter", "silent"]
    assert lines[5:] == [
        "given up: brokers 1,2",
        "continues: the log of broker 3",
        "below offset 12: kept, and committed",
        (
            "offsets 12 to 14: AT RISK: kept as on broker 3; if other records were acknowledged "
            "at these offsets, those are lost"
        ),
        (
            "offset 15 and above: AT RISK: records acknowledged there are lost, and new records "
            "get these offsets"
        ),
        "nothing would be at risk once 1 of 1,2 returns with its disks intact",
        "t-0 continues from offset 15 on broker 3",
    ]
    foretold, done = world.asked
    assert foretold.validate_only and not done.validate_only
    assert (done.grant, done.broker_ids, done.logs) == (
        0,
        [1, 2],
        [ShownReplicaLog(3, 4, 14, 12, 15)],
    )
    assert "@" in done.by


@pytest.mark.parametrize(
    ("end", "line"),
    [
        (11, "bucket east: has the records below offset 11, none of those at risk"),
        (14, "bucket east: has offsets 12 to 13, as they were committed"),
        (
            20,
            "bucket east: has offsets 12 to 19, as they were committed, 5 more than the log that "
            "continues",
        ),
        (0, "bucket east: has no records of the partition"),
        (-1, "bucket east: does not say what it has: no answer in time"),
    ],
)
def test_it_is_told_what_a_bucket_has_of_the_records_at_risk(
    world: Declaring, run: Run, end: int, line: str
) -> None:
    told = ExportedPartition(topic="t", partition=0, bucket="east", failure="no answer in time")
    if end >= 0:
        told = ExportedPartition(
            topic="t", partition=0, bucket="east", export="7", start_offset=0, end_offset=end
        )
    world.fake.extra["DescribeExports"] = lambda *_: DescribeExportsResponse(partitions=[told])
    code, out, _ = run("partition", "declare-lost", "t", "0", "--dry-run")
    assert code == 0
    assert line in out.splitlines()
    _, out, _ = run("partition", "declare-lost", "t", "0", "--dry-run", "--json")
    assert json.loads(out)["buckets"][0]["end"] == (end if end >= 0 else None)


def test_it_is_declared_again_without_a_word_of_who_was_given_up_before(
    world: Declaring, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.voters, world.needs_all = [3], True
    typed(monkeypatch, "t\n")
    code, out, _ = run("partition", "declare-lost", "t", "0")
    assert code == 0 and "nothing would be at risk" not in out


def test_another_name_does_nothing(
    world: Declaring, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, "yes\n")
    code, _, err = run("partition", "declare-lost", "t", "0")
    assert code != 0 and "nothing done" in err
    assert [one.validate_only for one in world.asked] == [True]


def test_scripts_are_not_asked(world: Declaring, run: Run) -> None:
    code, out, err = run("partition", "declare-lost", "t", "0", "--yes", "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert (told["lost"], told["leader"], told["grant"]) == ([1, 2], 3, 1)
    assert (told["at_risk_from"], told["on_nobody_from"]) == (12, 15)


def test_programs_that_are_asked_get_one_object(
    world: Declaring, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who types the name reads on standard error what it is about."""
    typed(monkeypatch, "t\n")
    code, out, err = run("partition", "declare-lost", "t", "0", "--json")
    assert code == 0 and json.loads(out)["leader"] == 3
    assert err.splitlines()[0] == "t-0:" and "given up: brokers 1,2" in err
    assert err.splitlines()[-1] == "Type t to continue: "


def test_it_is_told_that_an_observer_goes_on(world: Declaring, run: Run) -> None:
    world.voters, world.observers = [1, 2], [3]
    code, out, err = run("partition", "declare-lost", "t", "0", "--yes", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["text"][:3] == [
        "given up: brokers 1,2",
        (
            "continues: the log of broker 3, an observer; it leads and votes until voters of "
            "the partition vote again"
        ),
        "below offset 12: kept, and committed",
    ]


def test_it_is_told_that_one_goes_on_that_does_not_vote(world: Declaring, run: Run) -> None:
    world.voters = [1, 2]
    _, out, _ = run("partition", "declare-lost", "t", "0", "--yes", "--json")
    told = json.loads(out)["text"][1]
    assert told == "continues: the log of broker 3, which does not vote now"


def test_what_stands_against_it_is_told(world: Declaring, run: Run) -> None:
    world.refusal = "t-0: broker 2 reaches broker 9: a cut is not a loss"
    code, _, err = run("partition", "declare-lost", "t", "0", "--yes")
    assert code != 0
    assert f"no loss was declared: {world.refusal} (POLICY_VIOLATION)" in err


def test_who_is_heard_is_not_given_up(world: Declaring, run: Run) -> None:
    world.alive = {1, 2, 3}
    code, _, err = run("partition", "declare-lost", "t", "0", "--yes")
    assert code != 0 and "nothing to give up" in err
    assert world.asked == []


def test_where_all_answer_and_elect_nobody_the_controller_names_who_does_not_hear_whom(
    world: Declaring, run: Run
) -> None:
    world.fake.down.clear()
    world.ends = {1: (12, 12), 2: (12, 12), 3: (10, 12)}
    world.refusal = "t-0: brokers 1 and 2 do not reach each other: repair the link"
    code, _, err = run("partition", "declare-lost", "t", "0", "--yes")
    assert code != 0 and world.refusal in err
    assert [(one.broker_ids, one.validate_only) for one in world.asked] == [([], True)]
    world.led = {2}
    _, _, err = run("partition", "declare-lost", "t", "0", "--yes")
    assert err.rstrip().endswith("nothing to give up") and len(world.asked) == 1


def test_where_the_controller_cannot_name_them_it_is_told_what_helps(
    world: Declaring, run: Run
) -> None:
    """One of a release before asks for brokers to be named."""
    world.fake.down.clear()
    world.ends = {1: (12, 12), 2: (12, 12), 3: (10, 12)}
    world.refusal, world.refused_with = "name those that are gone for good", Error.INVALID_REQUEST
    for controller in (3, -1):
        world.fake.controller = controller
        _, _, err = run("partition", "declare-lost", "t", "0", "--yes", "--timeout", "1")
        assert "nothing to give up; a majority of the voters answers" in err
        assert "the voters do not reach each other: " in err and "names the link: repair it" in err
        assert err.rstrip().endswith("topic alter t -c voters.shrink.enable=true")
    world.shrinks = "true"
    _, _, err = run("partition", "declare-lost", "t", "0", "--yes", "--timeout", "1")
    assert err.rstrip().endswith(
        "the controller appoints a leader on one side, if that side holds every record"
    )


def test_who_is_not_asked_is_shown_the_same(world: Declaring, run: Run) -> None:
    code, out, err = run("partition", "declare-lost", "t", "0", "--yes")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "t-0:" and "offsets 12 to 14: AT RISK" in out
    assert out.splitlines()[-1] == "t-0 continues from offset 15 on broker 3"


def test_who_is_back_with_an_empty_disk_is_told_of_and_not_named(
    world: Declaring, run: Run
) -> None:
    world.fake.down.clear()
    world.alive = world.empty = {1, 2}
    world.ends.update({1: (0, 0), 2: (0, 0)})
    code, out, err = run("partition", "declare-lost", "t", "0", "--yes", "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert told["lost"] == [] and [one.broker_ids for one in world.asked] == [[], []]
    assert told["text"][:2] == [
        "given up: the lost logs of brokers 1,2",
        "continues: the log of broker 3",
    ]


def test_a_dry_run_without_a_controller_tells_what_the_logs_left_say(
    world: Declaring, run: Run
) -> None:
    world.fake.controller, world.seeds = -1, "1@fake:1,2@fake:2,3@fake:3"
    code, out, err = run("partition", "declare-lost", "t", "0", "--dry-run", "--timeout", "5")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[5:8] == [
        "given up: brokers 1,2",
        "continues: the log of broker 3",
        "below offset 12: kept, and committed",
    ]
    assert lines[-3:] == [
        (
            "by the logs that answer here, not by the controller: no controller: 1 of 3 of its "
            "voters answers, 2 are needed: start 1 of broker 1, 2. It decides by the logs that it "
            "finds then"
        ),
        "nothing would be at risk once 1 of 1,2 returns with its disks intact",
        "nothing done; a loss can be declared once there is a controller",
    ]
    assert world.asked == []
    command = ("partition", "declare-lost", "t", "0", "--yes", "--timeout", "5")
    code, out, err = run(*command)
    assert code != 0 and out == ""
    assert "start 1 of broker 1, 2; until then no loss can be declared; --dry-run shows" in err


def test_a_dry_run_without_a_controller_forecasts_nothing_where_a_log_is_not_known(
    world: Declaring, run: Run
) -> None:
    """Broker 2 is heard by others: the controller will read its log, which may be the best."""
    world.fake.controller, world.alive = -1, {2}
    code, _, err = run("partition", "declare-lost", "t", "0", "--dry-run", "--timeout", "5")
    assert code != 0 and "no loss to declare" in err
    assert "broker 2 is reachable from other brokers" in err
