"""What a command would do is shown before it is done: `partition move`, `broker ok-to-stop`."""

import json

import pytest
from tests.cli.command_line import Run, run
from tests.cli.explain_world import DEFAULT, FROM_TOPIC, World, world
from tests.cli.test_move_commands import alter_moves
from tests.cli.test_topic_commands import alter_configs

from strandline.cli.commands import cluster_alter
from strandline.cli.text import live_cluster

__all__ = ["run", "world"]  # The fixtures.


def moved(world: World) -> list[object]:
    """[(partition, brokers as text)], of the moves that were asked for."""
    return [one for one in world.fake.asked if str(one[1]).startswith("[")]


EAST_ONLY = ("partition", "move", "t", "0", "--to", "1,2,3")


def test_a_move_that_breaks_the_policy_is_refused_with_what_survives(
    world: World, run: Run
) -> None:
    world.fake.extra["AlterPartitionReassignments"] = alter_moves
    code, out, err = run(*EAST_ONLY)
    first, *others = err.splitlines()
    assert (code, out, moved(world)) == (1, "", [])
    assert first.startswith("error: t-0: replicas there would break placement.policy: ")
    assert first.endswith("to move them all the same, add --force")
    assert others[0].startswith("  survive 1 region does not hold: it can take the voters 1, 2")
    assert others[-2:] == [
        "  afterwards, writes continue after the loss of 1 broker",
        "  afterwards, no acknowledged write is lost with the loss of 1 broker",
    ]
    code, out, _ = run(*EAST_ONLY, "--force")
    assert (code, moved(world)) == (0, [(0, "[1, 2, 3]")])
    assert "the balancer moves it to satisfy the policy again, unless it is paused" in out
    # What keeps the policy, or survives as much without one, moves at once.
    world.policy, world.voters = ("", DEFAULT), [[1, 2, 4]]
    code, out, _ = run(*EAST_ONLY, "--json")
    assert code == 0 and json.loads(out)["faults"] == []
    assert len(moved(world)) == 2


def test_without_a_policy_a_move_that_survives_less_is_refused(world: World, run: Run) -> None:
    world.fake.extra["AlterPartitionReassignments"] = alter_moves
    world.policy, world.voters = ("", DEFAULT), [[1, 3, 5]]
    code, out, err = run(*EAST_ONLY)
    assert (code, out, moved(world)) == (1, "", [])
    assert err.splitlines() == [
        (
            "error: t-0: replicas there would survive less than now; to move them all the same, "
            "add --force"
        ),
        "  now, writes continue after the loss of 1 region",
        "  now, no acknowledged write is lost with the loss of 1 region",
        "  afterwards, writes continue after the loss of 1 broker",
        "  afterwards, no acknowledged write is lost with the loss of 1 broker",
    ]
    code, out, _ = run(*EAST_ONLY, "--dry-run")
    assert (code, moved(world)) == (0, [])
    assert "  survives less than now: refused without --force" in out.splitlines()
    assert json.loads(run(*EAST_ONLY, "--dry-run", "--json")[1])["survives_less"]
    # Fewer replicas survive less, too; more of them do not.
    assert run("partition", "move", "t", "0", "--to", "1,3")[0] == 1
    assert run("partition", "move", "t", "0", "--to", "1,2,3,4,5")[0] == 0
    code, out, _ = run(*EAST_ONLY, "--force")
    assert (code, moved(world)) == (0, [(0, "[1, 2, 3, 4, 5]"), (0, "[1, 2, 3]")])
    assert out.splitlines()[2:4] == [
        "  survives less than before",
        "  before, writes continue after the loss of 1 region",
    ]


def test_a_dry_run_of_a_move_changes_nothing(world: World, run: Run) -> None:
    world.fake.extra["AlterPartitionReassignments"] = alter_moves
    world.policy, world.voters = ("", DEFAULT), [[1, 3, 4]]
    code, out, _ = run("partition", "move", "t", "0", "--to", "1,3,5", "--dry-run")
    assert (code, moved(world)) == (0, [])
    assert out.splitlines() == [
        "t-0 would move to brokers 1,3,5",
        "  brokers that get a copy: 5",
        "  afterwards, writes continue after the loss of 1 region",
        "  afterwards, no acknowledged write is lost with the loss of 1 region",
        "nothing changed",
    ]
    code, out, _ = run("partition", "move", "t", "0", "--to", "4,3,1", "--dry-run", "--json")
    told = json.loads(out)
    assert (told["moves"], told["coming"], told["writes"]) == (False, [], [{"broker": 1}])
    assert "as before the move" in run("partition", "move", "t", "0", "--to", "4,3,1")[1]
    assert "nothing changed" not in run("partition", "move", "t", "0", "--to", "4,3,1")[1]
    for to, says in (("1,3,9", "name as many brokers of this cluster"), ("1,1,3", "each once")):
        code, _, err = run("partition", "move", "t", "0", "--to", to, "--dry-run")
        assert code == 1 and says in err
    code, _, err = run("partition", "move", "t", "7", "--to", "1", "--dry-run")
    assert (code, err) == (1, "error: topic t has no partition 7: its partitions are 0 to 0\n")


def test_brokers_may_stop_while_every_partition_goes_on(world: World, run: Run) -> None:
    world.policy, world.voters = ("", DEFAULT), [[1, 3, 5], [2, 3, 4]]
    code, out, _ = run("broker", "ok-to-stop", "1", "2")
    assert (code, out) == (0, "yes: brokers 1,2 may stop together now\n")
    code, out, _ = run("broker", "ok-to-stop", "3,4")
    assert (code, out.splitlines()) == (10, [
        "no: brokers 3,4 must not stop together now",
        "  without a leader: 1 partition: t 1",
        "  one at a time they may: 3,4",
    ])  # fmt: skip
    told = json.loads(run("broker", "ok-to-stop", "1,3", "--json")[1])
    assert (told["ok"], told["stops_controller"]) == (False, True)
    assert told["lacking"] == {"a leader": ["t-0"]}
    world.min_insync = 3
    code, out, _ = run("broker", "ok-to-stop", "4")
    assert (code, out.splitlines()[1:]) == (10, ["  without acks=all: 1 partition: t 1"])
    assert run("broker", "ok-to-stop", "9")[::2] == (1, "error: no broker 9 in this cluster\n")
    assert run("broker", "ok-to-stop", "one")[0] == 1


def test_many_partitions_that_a_stop_would_cost_are_ranges_by_topic(world: World, run: Run) -> None:
    world.policy, world.voters = ("", DEFAULT), [[2, 3, 4]] * 4 + [[1, 3, 5], [2, 3, 4]]
    _, out, _ = run("broker", "ok-to-stop", "3", "4")
    assert "  without a leader: 5 partitions: t 0-3,5" in out.splitlines()


def test_what_is_down_or_behind_counts_before_a_stop(world: World, run: Run) -> None:
    world.policy, world.voters = ("", DEFAULT), [[1, 3, 5]]
    assert run("broker", "ok-to-stop", "1")[0] == 0
    world.behind.add(5)
    code, out, _ = run("broker", "ok-to-stop", "1")
    assert code == 10 and "  without a leader: 1 partition: t 0" in out.splitlines()
    assert run("broker", "ok-to-stop", "2", "4")[0] == 0
    world.fake.down.add(3)
    code, out, _ = run("broker", "ok-to-stop", "1")
    assert "  the controller would have no majority: no topic or move could be decided" in (
        out.splitlines()
    )


def test_a_partition_whose_leader_does_not_answer_allows_no_stop(
    world: World, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of its voters are up; which of them are behind is not known."""
    world.policy, world.voters = ("", DEFAULT), [[1, 3, 5], [2, 3, 4]]
    monkeypatch.setattr(live_cluster, "in_sync_replicas", lambda *_: {1: (2, 3, 4)})
    code, out, _ = run("broker", "ok-to-stop", "3")
    assert (code, out.splitlines()[1:]) == (10, ["  without a leader: 1 partition: t 0"])
    assert run("broker", "ok-to-stop", "2")[0] == 0


def test_a_half_that_the_controller_appoints_may_stop_and_is_named(world: World, run: Run) -> None:
    world.policy, world.voters, world.shrinks = ("", FROM_TOPIC), [[1, 2, 3, 4]], "true"
    code, out, _ = run("broker", "ok-to-stop", "1", "2")
    assert (code, out.splitlines()[1:]) == (0, [
        "  after the controller appoints a leader or lets observers stand in: 1 partition: t 0",
    ])  # fmt: skip
    world.shrinks = "false"
    assert run("broker", "ok-to-stop", "1", "2")[0] == 10


def test_a_refusal_of_a_live_cluster_is_told_in_lines(world: World, run: Run) -> None:
    policy = 'placement.policy={"survive":[{"region":2}]}'
    code, out, err = run("topic", "create", "other", "-c", policy)
    first, *others = err.splitlines()
    assert (code, out) == (1, "")
    assert first == (
        "error: topic other: placement.policy: cannot place 5 voters (POLICY_VIOLATION)"
    )
    assert len(others) >= 3 and all(one.startswith("  ") and len(one) < 160 for one in others)
    assert others[-1] == '  as a policy: {"survive":[{"region":1}]}'


def test_more_in_sync_than_there_are_replicas_is_warned_of(world: World, run: Run) -> None:
    world.fake.extra["IncrementalAlterConfigs"] = alter_configs
    world.voters = [[1, 2, 3], [3, 4, 5]]
    asked = ("topic", "alter", "t", "-c", "min.insync.replicas=4")
    assert run(*asked)[1].splitlines() == ["topic t changed"]  # It is 1 in this cluster.
    world.min_insync = 4
    note = (
        "topic t: min.insync.replicas=4 is more than the 3 replicas: acks=all needs all of them, "
        "and is refused while one is down or behind"
    )
    assert run(*asked)[1].splitlines() == ["topic t changed", f"note: {note}"]
    assert json.loads(run(*asked, "--json")[1])["notes"] == [note]
    assert f"note: {note}" in run("topic", "create", "t", "-p", "2")[1].splitlines()


def test_a_default_of_more_in_sync_than_replicas_is_warned_of(
    world: World, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_alter, "open_client", world.open_client)
    world.fake.extra["IncrementalAlterConfigs"] = alter_configs
    world.min_insync = 4
    code, out, _ = run("cluster", "alter", "-c", "min.insync.replicas=4")
    assert (code, out.splitlines()) == (0, [
        "cluster changed",
        "note: topics that say nothing: min.insync.replicas=4 is more than the 3 replicas: "
        "acks=all needs all of them, and is refused while one is down or behind",
    ])  # fmt: skip


def test_preferred_leaders_that_pile_up_are_seen(world: World, run: Run) -> None:
    world.voters = [[3, 1, 5]] * 6
    world.policy = ("", DEFAULT)
    line = (
        "topic t: broker 3 is the preferred leader of 6 of 6 partitions, and without a policy "
        "their order stays; to even them out: strandline topic alter t -c placement.policy={}"
    )
    code, out, _ = run("cluster", "balance")
    assert code == 0 and line in out.splitlines()
    assert "every replica is where it should be" not in out
    assert json.loads(run("cluster", "balance", "--json")[1])["piles"] == [line]
    world.voters = [[3, 1, 5], [1, 3, 5], [5, 3, 1]] * 2
    assert json.loads(run("cluster", "balance", "--json")[1])["piles"] == []
    world.voters, world.policy = [[3, 1, 5]] * 6, ("{}", FROM_TOPIC)
    assert json.loads(run("cluster", "balance", "--json")[1])["piles"] == []
