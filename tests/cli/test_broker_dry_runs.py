"""`broker decommission --dry-run` and `maintain --dry-run`: what is shown; nothing changes."""

import json

import pytest
from tests.cli.command_line import Run, run
from tests.cli.explain_world import DEFAULT, cells
from tests.cli.test_policy_topic import Previewed

from strandline.cli.commands import broker, broker_removal

__all__ = ["run"]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Previewed:
    """A cluster in memory that these commands find."""
    made = Previewed(seeds=(1, 2, 3))
    for one in (broker, broker_removal):
        monkeypatch.setattr(one, "open_client", made.open_client)
    return made


def test_what_a_decommission_would_move_is_shown_with_what_survives(
    world: Previewed, run: Run
) -> None:
    world.policy, world.voters = ("", DEFAULT), [[1, 3, 5], [3, 1, 5], [2, 3, 4]]
    code, out, err = run("broker", "decommission", "5", "--dry-run")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0] == ("broker 5 would be emptied: 2 replicas would move, 2 copies, 3.0 MB")
    assert cells(lines, "TOPIC") == [["t", "2", "1 broker", "the same"], ["nothing changed"]]
    assert [one.validate_only for one in world.asked] == [True]
    told = json.loads(run("broker", "decommission", "5", "--dry-run", "--json")[1])
    assert (told["changed"], told["replicas"], told["left"]) == (False, 2, 0)
    (topic,) = told["topics"]
    assert (topic["topic"], topic["partitions"]) == ("t", 2)


def test_what_a_machine_would_move_is_one_plan_in_which_none_goes_to_its_own_brokers(
    world: Previewed, run: Run
) -> None:
    world.labels[1] = {**world.labels[1], "host": "node-1"}
    world.labels[2] = {**world.labels[1]}
    world.policy, world.voters = ("", DEFAULT), [[1, 3, 5], [3, 2, 5], [3, 4, 5]]
    code, out, err = run("broker", "decommission", "--host", "node-1", "--dry-run")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0] == "brokers 1,2 would be emptied: 2 replicas would move, 2 copies, 3.0 MB"
    assert lines[-1] == "nothing changed"
    told = json.loads(run("broker", "decommission", "--host", "node-1", "--dry-run", "--json")[1])
    assert (told["host"], told["brokers"]) == ("node-1", [1, 2])
    assert (told["replicas"], told["left"], told["changed"]) == (2, 0, False)


def test_a_voter_is_said_to_wait_until_its_vote_has_moved(world: Previewed, run: Run) -> None:
    world.policy, world.voters, world.seeds = ("", DEFAULT), [[1, 3, 5]], (1, 3, 5)
    *_, last, nothing = run("broker", "decommission", "5", "--dry-run")[1].splitlines()
    assert last.startswith("broker 5 votes in the controller until another broker has taken")
    assert nothing == "nothing changed"
    world.seeds = (1, 2, 3)
    assert "votes" not in run("broker", "decommission", "5", "--dry-run")[1]


def test_what_is_worse_afterwards_is_seen(world: Previewed, run: Run) -> None:
    """Broker 5 is the only one in its region."""
    world.policy, world.voters = ("", DEFAULT), [[1, 3, 5]]
    out = run("broker", "decommission", "5", "--dry-run")[1]
    assert cells(out.splitlines(), "TOPIC")[0] == ["t", "1", "1 region", "1 broker"]


def test_a_decommission_that_would_be_refused_is_refused_in_a_dry_run(
    world: Previewed, run: Run
) -> None:
    world.refusal = "topic t has 3 replicas\nand no room"
    code, out, err = run("broker", "decommission", "5", "--dry-run")
    assert (code, out) == (1, "")
    assert err.endswith("topic t has 3 replicas (POLICY_VIOLATION)\n  and no room\n")


def test_what_a_maintenance_would_do_is_shown(world: Previewed, run: Run) -> None:
    world.policy, world.voters = ("", DEFAULT), [[1, 3, 5], [3, 1, 5]]
    code, out, _ = run("broker", "maintain", "1", "--dry-run")
    assert (code, out.splitlines()) == (0, [
        "broker 1 would enter maintenance; replicas stay",
        "  others would lead 1 partition",
        "  yes: broker 1 may stop now",
        "nothing changed",
    ])  # fmt: skip
    assert [one.validate_only for one in world.asked] == [True]
    world.behind.add(5)
    told = json.loads(run("broker", "maintain", "1", "--dry-run", "--json")[1])
    assert (told["changed"], told["led"], told["stop"]["ok"]) == (False, 1, False)
