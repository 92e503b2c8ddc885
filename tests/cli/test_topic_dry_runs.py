"""`topic create --dry-run` and `alter --dry-run`: what is shown; nothing changes."""

import json
from pathlib import Path

import pytest
from tests.cli.command_line import Run, run
from tests.cli.explain_world import DEFAULT, cells
from tests.cli.test_policy_topic import Previewed

from strandline.cli.commands import topic

__all__ = ["run"]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Previewed:
    """A cluster in memory that these commands find."""
    made = Previewed()
    monkeypatch.setattr(topic, "open_client", made.open_client)
    return made


def test_a_topic_that_would_be_created_is_shown_with_what_it_survives(
    world: Previewed, run: Run
) -> None:
    code, out, err = run("topic", "create", "other", "-p", "3", "-r", "3", "--dry-run")
    lines = out.splitlines()
    assert (code, err, world.created) == (0, "", {})
    assert lines[0].startswith("topic other would be created: 3 partitions, for example the first ")
    assert lines[1:3] == [
        "  writes continue after the loss of 1 region",
        "  no acknowledged write is lost with the loss of 1 region",
    ]
    assert cells(lines, "LOST ")[0][:3] == ["1 region", "by itself", "kept"]
    assert lines[-1] == "nothing changed"


def test_a_policy_places_the_example(world: Previewed, run: Run, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("survive: [region, 2 brokers]")
    asked = ("topic", "create", "other", "-p", "2", "--policy", str(policy), "--dry-run", "--json")
    code, out, _ = run(*asked)
    told = json.loads(out)
    assert (code, told["created"], world.created) == (0, False, {})
    (other,) = told["topics"]
    assert [sorted(one) for one in other["replicas"]] == [[1, 2, 3, 4, 5]] * 2
    assert other["writes"] == [{"region": 1}, {"broker": 2}]
    policy.write_text("survive: 2 regions")
    code, out, err = run(*asked)
    assert (code, out) == (1, "") and "cannot place 5 voters" in err.splitlines()[0]


def test_more_in_sync_than_replicas_is_warned_of_before(world: Previewed, run: Run) -> None:
    create = ("topic", "create", "other", "-p", "1", "-r", "2", "--dry-run")
    out = run(*create, "-c", "min.insync.replicas=3")[1]
    assert "note: topic other: min.insync.replicas=3 is more than the 2 replicas" in out
    assert "  some writes stop with the loss of one replica" in out.splitlines()


def test_other_keys_are_shown_with_what_would_be_survived(world: Previewed, run: Run) -> None:
    world.policy, world.voters = ("", DEFAULT), [[1, 2, 3, 4]]
    alter = ("topic", "alter", "t", "--dry-run")
    out = run(*alter, "-c", "voters.shrink.enable=true")[1]
    assert out.splitlines()[:2] == [
        "topic t would change; as placed now:",
        "  writes continue after the loss of 1 region",
    ]
    assert [one.validate_only for one in world.asked] == [True]
    told = json.loads(run(*alter, "-c", "min.insync.replicas=4", "--json")[1])
    assert (told["altered"], told["topics"][0]["writes"]) == ([], [])
    world.refusal = "no such value"
    assert run(*alter, "-c", "min.insync.replicas=4")[0] == 1


def test_another_policy_is_shown_with_its_moves(world: Previewed, run: Run, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("rules: [{count: 2, where: [{label: region, op: in, values: [west]}]}]")
    code, out, _ = run("topic", "alter", "t", "--policy", str(policy), "--dry-run")
    assert code == 0 and "2 partitions would change replicas" in out
    assert all(one.validate_only for one in world.asked)
