"""What `policy test` tells of a cluster that runs is what its controller does, and `explain` knows
who is to leave: on a cluster in memory, whose topics the real controller creates."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.command_line import Run, run
from tests.cli.explain_world import Lines, World, cells, told, world

__all__ = ["run", "told", "world"]

Change = Callable[[World], object]


def as_it_is(world: World) -> None:
    """Nothing is wanted of any broker."""


def one_leaves(world: World) -> None:
    world.leaving = {4}


def one_leaves_and_is_down(world: World) -> None:
    world.leaving = {4}
    world.fake.down = {4}


def one_is_spared(world: World) -> None:
    world.maintained = {3}


def one_is_full(world: World) -> None:
    world.used_percent = {4: 99, 1: 40}


def one_is_rather_full(world: World) -> None:
    world.used_percent = {3: 90}


def all_count_as_full(world: World) -> None:
    world.used_percent = dict.fromkeys(world.labels, 40)
    world.disk_full_percent = 10


def one_is_down(world: World) -> None:
    world.fake.down = {4}


def in_west(count: int, *brokers: int) -> str:
    pin = f", {{label: broker, op: in, values: {[str(one) for one in brokers]}}}" if brokers else ""
    where = "{label: region, op: in, values: [west]}"
    return f"rules: [{{count: {count}, where: [{where}{pin}]}}]"


@pytest.mark.parametrize(
    ("change", "policy", "arguments", "on"),
    [
        (as_it_is, in_west(2), (), {3, 4}),
        (one_leaves, in_west(2), (), None),
        (one_leaves, in_west(1), (), {3}),
        (one_leaves, "{}", ("-r", "5"), None),
        (one_leaves, "survive: [region, 2 brokers]", (), None),
        (one_leaves_and_is_down, in_west(1), (), {3}),
        (one_is_spared, in_west(1), (), {4}),
        (one_is_spared, in_west(2), (), {3, 4}),
        (one_is_full, in_west(2), (), None),
        (one_is_full, in_west(1), (), {3}),
        (one_is_rather_full, in_west(1), (), {4}),
        (one_is_rather_full, in_west(2), (), {3, 4}),
        (all_count_as_full, "{}", (), None),
        (one_is_down, in_west(1), (), {3}),
        (one_is_down, in_west(1, 4), (), None),
        (one_is_down, "survive: [region, 2 brokers]", (), {1, 2, 3, 4, 5}),
        (as_it_is, "{}", ("-p", "2000"), {1, 2, 3, 4, 5}),
        (as_it_is, "{}", ("-p", "2001"), None),
        (as_it_is, "survive: region", ("-r", "2"), None),
        (as_it_is, "leaders: {follow: writers}", (), None),
    ],
)
def test_what_it_accepts_is_created_there_and_what_it_refuses_is_not(
    world: World,
    run: Run,
    tmp_path: Path,
    change: Change,
    policy: str,
    arguments: tuple[str, ...],
    on: set[int] | None,
) -> None:
    """`on`: the brokers that get replicas; None where it is refused."""
    change(world)
    file = tmp_path / "policy.yaml"
    file.write_text(policy)
    count = arguments if "-p" in arguments else (*arguments, "-p", "12")
    tried, out, why = run("policy", "test", str(file), *count, "--json")
    made, _, refusal = run("topic", "create", "new", "--policy", str(file), *count)
    assert (tried, made) == ((0, 0) if on is not None else (1, 1)), (why, refusal)
    if on is None:
        assert why == refusal.replace("topic new: ", f"{file}: ")
        assert why.startswith("error: ") and max(map(len, why.splitlines())) < 300
        return
    placed = {broker for one in json.loads(out)["partitions"] for broker in one["voters"]}
    assert placed == on == {broker for one in world.created["new"] for broker in one}


def test_it_says_who_is_given_nothing(world: World, told: Lines, tmp_path: Path) -> None:
    world.leaving, world.maintained = {4}, {3}
    world.fake.down = {4}
    file = tmp_path / "policy.yaml"
    file.write_text("survive: region")
    lines = told("policy", "test", str(file))
    assert "down brokers: 4" in lines
    assert "brokers being decommissioned: 4" in lines
    assert "brokers in maintenance: 3" in lines


def test_who_leaves_is_as_good_for_nothing(world: World, told: Lines) -> None:
    world.voters = [[1, 3, 5]]
    world.policy = ('{"survive":[{"region":1}]}', 1)
    assert cells(told("topic", "explain", "t"), "BROKER")[1][3] == "4"
    world.leaving = {4}
    row = cells(told("topic", "explain", "t"), "BROKER")[1]
    assert row[3] == "-" and "4: is being decommissioned" in row[-1]


def test_a_replica_of_one_that_leaves_breaks_no_policy(world: World, told: Lines) -> None:
    world.leaving = {4}
    lines = told("topic", "explain", "t")
    assert cells(lines, "PARTITIONS") == [["0-1", "1,2,3,4,5", "3 of 5", "-", "yes"]]
    assert ["4", "voter, being decommissioned", "west"] in [
        row[:3] for row in cells(lines, "BROKER")
    ]
    assert not any("this would be as the policy wants" in line for line in lines)
    world.fake.down = {4}
    lines = told("topic", "explain", "t")
    assert "broker 4 is down:" in lines
    assert ["4", "voter, being decommissioned, down", "west"] in [
        row[:3] for row in cells(lines, "BROKER")
    ]


def test_the_whole_cluster_says_what_is_wanted_of_brokers(world: World, told: Lines) -> None:
    world.leaving, world.maintained = {4, 5}, {1, 3}
    world.fake.down = {5, 3}
    states = [row[3] for row in cells(told("cluster", "explain"), "BROKER")]
    assert states == [
        "in maintenance", "active", "down", "being decommissioned", "being decommissioned, down",
    ]  # fmt: skip
    brokers = json.loads("".join(told("cluster", "explain", "--json")))["brokers"]
    assert [one["up"] for one in brokers] == [True, True, False, True, False]


def test_without_a_controller_a_cluster_is_explained_by_what_brokers_know(
    world: World, told: Lines
) -> None:
    world.leaving = {4}
    world.fake.controller = -1
    states = [row[3] for row in cells(told("cluster", "explain"), "BROKER")]
    assert states == ["active"] * 5
