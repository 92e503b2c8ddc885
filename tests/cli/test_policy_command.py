"""`strandline policy test`: what a policy would do, on the cluster that the page describes."""

import json
import re
from pathlib import Path

import pytest
from tests.cli.command_line import Run, run

__all__ = ["run"]

PAGE = (Path(__file__).parents[2] / "docs/operating/placement.md").read_text()
CLUSTER = re.findall(r"```yaml cluster\n(.*?)```\n", PAGE, re.DOTALL)[0]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Paths by name; the policy is written by each test."""
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "prices.yaml").write_text("{currency: EUR, cross_region_per_gb: 0.02}")
    names = ("policy", "cluster", "prices")
    return {name: str(tmp_path / f"{name}.yaml") for name in names}


def write(files: dict[str, str], text: str, name: str = "policy") -> None:
    Path(files[name]).write_text(text)


def test_it_tells_where_replicas_go_and_what_that_means(run: Run, files: dict[str, str]) -> None:
    write(files, "survive: [region, 2 brokers]")
    code, out, err = run(
        "policy", "test", files["policy"], "--cluster", files["cluster"],
        "--prices", files["prices"],
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert "12 partitions of 5 replicas; an acknowledged write is on 3 of 5" in out
    assert "writes continue after the loss of 1 region, or 2 brokers" in out
    waits = re.findall(r"^ +(\d+)  (\d+) ms +(\d) +0  (0\.\d+) EUR$", out, re.MULTILINE)
    assert {(ms, copies, money) for _, ms, copies, money in waits} == {
        ("30", "2", "0.04"),
        ("80", "2", "0.04"),
    }


def test_programs_get_the_same(run: Run, files: dict[str, str]) -> None:
    write(files, "survive: region")
    code, out, _ = run(
        "policy", "test", files["policy"], "--cluster", files["cluster"], "-p", "3", "--json"
    )
    assert code == 0
    told = json.loads(out)
    assert len(told["partitions"]) == 3
    assert all(len(one["voters"]) == 3 for one in told["partitions"])
    assert told["first"]["policy"] == '{"survive":[{"region":1}]}'
    assert {one["broker"] for one in told["first"]["replicas"]} == set(
        told["partitions"][0]["voters"]
    )


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("policy", "survive: [regoin]", "regoin"),
        ("cluster", "brokers: []", "write brokers:"),
        ("cluster", "brokers: [{id: 1}, {id: 1}]", "a broker's id is there once"),
        ("cluster", "brokers: [{region: a, colour: red}]", "unknown field `colour`"),
        ("cluster", "brokers: [{count: 900}, {count: 900}]", "at most 1000 brokers"),
        ("prices", "{currency: EUR, cross_region_per_gb: -1}", "is not a price"),
        (
            "cluster",
            "{brokers: [{region: a}, {region: b}], round_trips_ms: [{between: [a, c], ms: 9}]}",
            "round_trips_ms: there is no region 'c': brokers are in a, b",
        ),
        (
            "cluster",
            "{brokers: [{}, {}], round_trips_ms: [{between: [a, b], ms: 9}]}",
            "there is no region 'a': no broker says its region",
        ),
        (
            "prices",
            "{currency: EUR, links: [{from: east, to: wset, per_gb: 1}]}",
            "links: there is no region 'wset': brokers are in east, south, west",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    run: Run, files: dict[str, str], name: str, text: str, says: str
) -> None:
    write(files, "survive: region")
    write(files, text, name)
    code, out, err = run(
        "policy", "test", files["policy"], "--cluster", files["cluster"],
        "--prices", files["prices"],
    )  # fmt: skip
    assert (code, out, len(err.splitlines())) == (1, "", 1)
    assert says in err and files[name] in err


def test_a_policy_that_cannot_be_met_is_refused_line_by_line(
    run: Run, files: dict[str, str]
) -> None:
    write(files, "survive: 2 regions")
    code, out, err = run("policy", "test", files["policy"], "--cluster", files["cluster"])
    (shown,) = re.findall(r"```text refused\n(.*?)```\n", PAGE, re.DOTALL)
    assert (code, out, err.replace(files["policy"], "policy.yaml")) == (1, "", shown)
    reasons = err.splitlines()
    # What is printed can be pasted.
    write(files, reasons[-1].partition(": ")[2])
    assert run("policy", "test", files["policy"], "--cluster", files["cluster"])[0] == 0


def test_programs_get_why_a_policy_cannot_be_met(run: Run, files: dict[str, str]) -> None:
    write(files, "survive: 2 regions")
    code, out, err = run("policy", "test", files["policy"], "--cluster", files["cluster"], "--json")
    assert (code, err) == (1, f"error: {files['policy']}: cannot place 5 voters\n")
    told = json.loads(out)
    assert told["told"][0] == "cannot place 5 voters"
    refusal = told["refusal"]
    assert refusal["nearest"]["policy"] == '{"survive":[{"region":1}]}'
    assert refusal["refused"][0]["reason"]["code"] in ("taken", "goal")
    assert refusal["newcomers"] == "2 more brokers, each in another region"


def test_a_thousand_brokers_can_be_described(run: Run, files: dict[str, str]) -> None:
    write(files, "survive: region")
    brokers = [
        {"id": number, "region": "abc"[number % 3], "labels": {"disk": "ssd", "country": "de"}}
        for number in range(1, 1_001)
    ]
    write(files, json.dumps({"brokers": brokers}), "cluster")
    policy_test = ("policy", "test", files["policy"], "--cluster", files["cluster"], "-p", "1")
    code, out, err = run(*policy_test)
    assert (code, err) == (0, "") and "1 partition of 3 replicas" in out
    write(files, " " * 1_000_001, "cluster")
    assert "1000001 characters: write at most 1000000" in run(*policy_test)[2]


def test_brokers_without_an_id_get_the_next_free_one(run: Run, files: dict[str, str]) -> None:
    write(files, "rules: [{count: 1, where: [{label: broker, op: in, values: ['3']}]}]")
    write(files, "brokers: [{region: a, id: 1}, {region: b}, {region: c}]", "cluster")
    code, out, err = run("policy", "test", files["policy"], "--cluster", files["cluster"])
    assert (code, err) == (0, "")
    assert re.search(r"^ +3  c +12 +12$", out, re.MULTILINE)


def test_confluents_json_is_tried_as_it_is(run: Run, files: dict[str, str]) -> None:
    replicas = '{"count":2,"constraints":{"rack":"east"}},{"count":1,"constraints":{"rack":"west"}}'
    write(files, f'{{"version":2,"replicas":[{replicas}]}}')
    code, out, err = run("policy", "test", files["policy"], "--cluster", files["cluster"])
    assert (code, err) == (0, "")
    assert "12 partitions of 3 replicas" in out
    write(files, f'{{"version":3,"replicas":[{replicas}]}}')
    code, _, err = run("policy", "test", files["policy"], "--cluster", files["cluster"])
    assert code == 1 and "Invalid enum value 3" in err


@pytest.mark.parametrize("rule", ["{role: voter, count: 3}, ", ""])
def test_observers_are_told_apart_and_survive_for_nobody(
    run: Run, files: dict[str, str], rule: str
) -> None:
    """`--replicas` counts them, as a topic's replication factor does."""
    write(files, f"rules: [{rule}{{role: observer, count: 1}}]")
    replicas = () if rule else ("--replicas", "4")
    code, out, err = run(
        "policy", "test", files["policy"], "--cluster", files["cluster"], *replicas, "--json"
    )
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert all(len(one["voters"]) == 3 for one in told["partitions"])
    assert all(len(one["observers"]) == 1 for one in told["partitions"])
    roles = [one["role"] for one in told["first"]["replicas"]]
    assert roles == ["voter"] * 3 + ["observer"]
    assert told["first"]["survival"]["voters"] == 3


def test_an_observer_stands_in_for_a_region_of_the_described_cluster(
    run: Run, files: dict[str, str]
) -> None:
    """As in a running cluster: a region with enough brokers is taken for down."""
    write(files, "brokers: [{region: a, count: 3}, {region: b, count: 3}, {region: c}]", "cluster")
    rules = (
        f"{{role: {role}, count: {count}, where: [{{label: region, op: in, values: [{region}]}}]}}"
        for role, count, region in (("voter", 2, "a"), ("voter", 2, "b"), ("observer", 1, "c"))
    )
    write(files, f"promotion: region-lost\nrules: [{', '.join(rules)}]")
    code, out, err = run(
        "policy", "test", files["policy"], "--cluster", files["cluster"],
        "--min-insync", "3",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert "writes continue after the loss of 1 region" in out
