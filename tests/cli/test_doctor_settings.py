"""`strandline doctor settings` on a cluster in memory, and of files.

Source: docs/operating/brokers.md, "Settings that must agree"."""

import json
from pathlib import Path

import pytest
from tests.cli.command_line import CONFIG, Run, cluster, run
from tests.client.fake_cluster import FakeCluster

from strandline.cli.exit_codes import ERROR
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from strandline.protocol.messages.describe_status import DescribeStatusResponse, StatusBroker
from strandline.protocol.table import Message

__all__ = ["cluster", "run"]  # The fixtures.

TIMEOUT = "replication.election_timeout_ms"
Files = dict[int, dict[str, str]]


@pytest.fixture
def files(cluster: FakeCluster) -> Files:
    """{broker: the keys of its file}."""
    found: Files = {id: {"cluster.id": "c", TIMEOUT: "800"} for id in cluster.brokers}

    def describe(fake: FakeCluster, broker: int, request: Message) -> Message:
        assert isinstance(request, DescribeConfigsRequest)
        (asked,) = request.resources
        assert asked.resource_name == str(broker)
        rows = [
            DescribeConfigsResourceResult(name=name, value=value, config_source=4)
            for name, value in found[broker].items()
        ]
        result = DescribeConfigsResult(
            error_code=fake.fault_code, resource_name=asked.resource_name, configs=rows
        )
        return DescribeConfigsResponse(results=[result])

    def status(fake: FakeCluster, broker: int, request: Message) -> Message:
        return DescribeStatusResponse(
            brokers=[
                StatusBroker(broker_id=id, is_heard=id not in fake.down) for id in fake.brokers
            ]
        )

    cluster.extra |= {"DescribeConfigs": describe, "DescribeStatus": status}
    return found


def test_brokers_that_agree_exit_0(run: Run, files: Files) -> None:
    assert run("doctor", "settings") == (0, "0 settings differ; compared: brokers 1,2,3\n", "")


def test_the_odd_broker_is_named_with_its_value_and_what_to_do(run: Run, files: Files) -> None:
    files[2][TIMEOUT] = "8000"
    code, out, err = run("doctor", "settings")
    assert (code, err) == (ERROR, "")
    head, row, last = out.splitlines()
    assert head.split() == ["LEVEL", "WHAT", "FINDING"]
    assert row.startswith("wrong  [replication] election_timeout_ms  ")
    assert "800 on brokers 1,3; 8000 on broker 2: " in row
    assert row.endswith(
        ": write the value of brokers 1,3 in the file of broker 2, and restart that broker"
    )
    assert last == "1 setting differs; compared: brokers 1,2,3"
    told = json.loads(run("doctor", "settings", "--json")[1])
    assert told["compared"] == ["1", "2", "3"] and told["not_compared"] == {}
    (finding,) = told["findings"]
    assert finding["values"] == {"800": ["1", "3"], "8000": ["2"]}
    assert (finding["level"], finding["key"]) == ("wrong", "[replication] election_timeout_ms")


def test_a_step_of_a_change_is_a_note_and_exits_0(run: Run, files: Files) -> None:
    files[2][TIMEOUT] = "880"
    code, out, _ = run("doctor", "settings")
    assert code == 0
    assert out.splitlines()[1].startswith("note")
    assert out.splitlines()[1].endswith(
        ": write one value in the files of all brokers, and restart one broker after the other"
    )


def test_brokers_that_are_not_compared_are_named(
    run: Run, files: Files, cluster: FakeCluster
) -> None:
    cluster.down.add(3)
    files[2][TIMEOUT] = "8000"
    code, out, _ = run("doctor", "settings")
    assert code == ERROR
    assert "800 on broker 1; 8000 on broker 2" in out
    assert [one for one in out.splitlines() if one.startswith("note")] == [
        "note   broker 3                           is silent, and not compared: compare the files "
        "with --config"
    ]
    assert out.endswith("compared: brokers 1,2\n")
    told = json.loads(run("doctor", "settings", "--json")[1])
    assert list(told["not_compared"]) == ["3"]


def test_a_broker_that_does_not_answer_is_named_with_the_reason(
    run: Run, files: Files, cluster: FakeCluster
) -> None:
    cluster.faults["DescribeConfigs"] = [Error.UNKNOWN_SERVER_ERROR]
    code, out, _ = run("doctor", "settings")
    assert code == 0
    assert "broker 1  is not compared: " in out
    assert out.endswith("compared: brokers 2,3\n")


def test_a_user_without_the_right_learns_its_name(
    run: Run, files: Files, cluster: FakeCluster
) -> None:
    cluster.faults["DescribeConfigs"] = [Error.CLUSTER_AUTHORIZATION_FAILED] * 3
    code, out, err = run("doctor", "settings")
    assert (code, out) == (ERROR, "")
    assert "may not describe-configs the cluster" in err


def test_files_are_compared_before_brokers_start(run: Run, tmp_path: Path) -> None:
    for name, more in (("a", ""), ("b", ""), ("c", "[replication]\nelection_timeout_ms = 900\n")):
        (tmp_path / f"{name}.toml").write_text(CONFIG + more)
    both = ("--config", "a.toml", "--config", "b.toml")
    assert run("doctor", "settings", *both) == (
        0, "0 settings differ; compared: a.toml, b.toml\n", ""
    )  # fmt: skip
    code, out, _ = run("doctor", "settings", *both, "--config", "c.toml")
    assert code == 0  # Leases hold.
    assert "800 in a.toml, b.toml; 900 in c.toml: " in out
    (tmp_path / "c.toml").write_text(CONFIG + "[replication]\nelection_timeout_ms = 8000\n")
    code, out, _ = run("doctor", "settings", *both, "--config", "c.toml")
    assert code == ERROR
    assert "write the value of a.toml, b.toml in c.toml, and restart its broker" in out
    code, out, err = run("doctor", "settings", "--config", "a.toml")
    assert (code, out) == (ERROR, "")
    assert err == "error: nothing to compare: give --config once for each broker's file\n"
