"""Scenarios that people write: what they say holds, what they cannot mean is one line."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.simulation.mutants import show_what_is_only_appended
from tests.simulation.scenario_checks import kept, run_by_no_other_test
from typer.testing import CliRunner

from strandline.base.errors import OperatorError
from strandline.simulation import __main__ as command
from strandline.simulation.scenarios.scenario import PlannedChange, PlannedFault, Scenario
from strandline.simulation.scenarios.scenario_file import load_scenario, with_faults
from strandline.simulation.swarm.shrink import shrink
from strandline.simulation.swarm.swarm import command as command_of
from strandline.simulation.swarm.variations import draw, with_marks

PLACED = (
    "has_brokers = true\nlost_after_ms = 9\nregions = ['east', 'west', 'west']\n"
    "zones = ['a', 'a', 'b']\n"
)


def written(directory: Path, text: str) -> Path:
    path = directory / "scenario.toml"
    path.write_text(text)
    return path


def test_a_seed_alone_is_that_seed(tmp_path: Path) -> None:
    assert load_scenario(written(tmp_path, "seed = 12")) == with_marks(Scenario.draw(12))


def test_what_a_seed_varies_stays_where_a_file_leaves_it_possible(tmp_path: Path) -> None:
    varied = draw(95)
    assert varied.tombstone_ratio
    assert load_scenario(written(tmp_path, "seed = 95\nfaults = []")) == replace(varied, faults=())
    assert not load_scenario(written(tmp_path, "seed = 95\nkey_count = 0")).tombstone_ratio
    assert not load_scenario(written(tmp_path, "seed = 95\ntombstone_ratio = 0.0")).tombstone_ratio


@pytest.mark.simulation
@pytest.mark.parametrize("name", run_by_no_other_test())
def test_the_scenarios_here_keep_every_promise(name: str) -> None:
    kept(name)


def test_who_is_named_by_a_test_of_its_own_is_left_to_it() -> None:
    others = run_by_no_other_test()
    assert "region-lost" in others and "flapping-broker" not in others


def test_what_only_a_seed_could_draw_can_be_said(tmp_path: Path) -> None:
    text = "has_brokers = true\ngroup_consumer_count = 0\nkey_count = 7\nmove_interval_ms = 90\n"
    text += "faults = []\n[log]\nsegment_bytes = 4096\nflush_ms = 5\n"
    scenario = load_scenario(written(tmp_path, text))
    assert (scenario.key_count, scenario.log.compacted, scenario.log.delete) == (7, True, False)
    assert (scenario.log.segment_bytes, scenario.log.flush_ms) == (4_096, 5)
    assert scenario.move_interval_ms == 90
    drawn = next(seed for seed in range(1, 50) if Scenario.draw(seed).key_count)
    scenario = load_scenario(written(tmp_path, f"seed = {drawn}\nkey_count = 0\n"))
    assert (scenario.key_count, scenario.log.compacted) == (0, False)


def test_zones_and_what_a_person_says_of_them_can_be_said(tmp_path: Path) -> None:
    changes = "[[changes]]\nat_ms = 5\nwhere = 'west/b'\nruling = 'hold'\nfor_ms = 70\n"
    changes += "[[changes]]\nat_ms = 6\nwhere = 'west'\nruling = 'release'\n"
    scenario = load_scenario(written(tmp_path, PLACED + changes))
    assert scenario.zones == ("a", "a", "b")
    assert scenario.changes == (
        PlannedChange(5, domain=("west", "b"), ruling="hold", for_ms=70),
        PlannedChange(6, domain=("west",), ruling="release", for_ms=-1),
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("sede = 1", "unknown field `sede`"),
        ("seed = 'one'", "Expected `int`"),
        ("seed = ", "Invalid value"),
        ('[[faults]]\nat_ms = 1\nkind = "fire"', "no kind 'fire'; there are kill"),
        ("[[groups]]\nvoters = [1, 2, 9]", "of the brokers"),
        ("[[groups]]\nvoters = [1, 2]\nobservers = [2]", "each of them once"),
        ("[[producers]]\ngroup = 9", "group 9"),
        ("[one_way_ms]\neast-mars = 3", "'east-mars'"),
        ("[replication]\nheart_ms = 3", "heart_ms"),
        ("[replication]\nheartbeat_interval_ms = 900", "election_timeout_ms must be at least"),
        ("has_brokers = false\ngroup_consumer_count = 2", "only where has_brokers is true"),
        ("[log]\nsegment_size = 9", "[log] no key 'segment_size'"),
        ("[log]\ncompacted = true", "[log] no key 'compacted'"),
        ("[log]\nwrite_caching = 1", "[log] write_caching: 1 is no bool"),
        ("has_brokers = true\n[log]\nsegment_ms = 9", "segment_ms: only where has_brokers is"),
        ("has_brokers = false\nmove_interval_ms = 50", "move_interval_ms: only where"),
        ("tombstone_ratio = 0.1", "tombstone_ratio: only with a key_count"),
        (
            "key_count = 5\ntombstone_ratio = 0.1\nfaults = []\n[log]\ndelete_retention_ms = 9",
            "delete_retention_ms has to be 1000 at least",
        ),
        (
            "key_count = 5\ntombstone_ratio = 0.1\n[[faults]]\nat_ms = 1\nkind = 'wall-clock-jump'",
            "without wall-clock-jump",
        ),
        (
            "has_brokers = true\nkey_count = 5\ndelete_interval_ms = 50",
            "without a consumer group or compaction",
        ),
        (
            "has_brokers = true\nmove_interval_ms = 50\n[[faults]]\nat_ms = 1\nkind = 'bit-rot'",
            "move_interval_ms: not with bit-rot",
        ),
        (
            "has_brokers = true\ngroup_consumer_count = 2\n[log]\nwrite_caching = true\n"
            "[[faults]]\nat_ms = 1\nkind = 'power-failure'",
            "write_caching: not with a consumer group",
        ),
        ("has_brokers = false\ndelete_interval_ms = 50", "delete_interval_ms: only where"),
        ("[[changes]]\nat_ms = 1\ngroup = 1\npolicy = '{}'", "only with lost_after_ms"),
        ("has_brokers = false\nlost_after_ms = 9", "where has_brokers is true"),
        ("has_brokers = true\ndisk_bytes = 9", "disk_bytes: only with lost_after_ms"),
        ("lost_after_ms = 9\n[[changes]]\nat_ms = 1\ngroup = 9", "one of them, that there is"),
        (
            "lost_after_ms = 9\n[[changes]]\nat_ms = 1\nbroker = 1",
            "a region or decommission",
        ),
        ("has_brokers = true\nzones = ['a', 'a', 'b']", "zones, near_racks, disk_bytes: only with"),
        ("lost_after_ms = 9\nhas_brokers = true\nzones = ['a']", "one for each of 4 brokers"),
        (
            f"{PLACED}[[changes]]\nat_ms = 1\nwhere = 'east/b'\nruling = 'hold'",
            "hold of 'east/b'; hold, release or lost, and nothing else, of one of east, east/a, ",
        ),
        (f"{PLACED}[[changes]]\nat_ms = 1\nwhere = 'east'", "no ruling of 'east'"),
        ("has_brokers = true\n[cluster]\n'balancer.enable' = 'no'", "cluster, zones, near_racks"),
        (f"{PLACED}[cluster]\n'balancer.enable' = 'maybe'", "cluster: balancer.enable = maybe: "),
        (f"{PLACED}[cluster]\n'balancer.enabel' = 'true'", "cluster: balancer.enabel = true: "),
        (
            f"{PLACED}[[changes]]\nat_ms = 1\nwhere = 'east'\nruling = 'hold'\nbroker = 1",
            "and nothing else",
        ),
    ],
)
def test_what_cannot_be_meant_is_one_line_with_the_file(
    text: str, reason: str, tmp_path: Path
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(OperatorError) as refusal:
        load_scenario(path)
    line = str(refusal.value)
    assert line.startswith(f"{path}: ")
    assert reason in line
    assert "\n" not in line


def test_faults_are_replaced_in_a_file_and_the_rest_stays(tmp_path: Path) -> None:
    text = "seed = 5\nactive_ms = 700\n\n[[faults]]\nat_ms = 1\nkind = 'kill'\n\n[one_way_ms]\n"
    fault = PlannedFault(9, "pause", 50, 77)
    once = with_faults(text + "east-west = 3\n", [fault])
    scenario = load_scenario(written(tmp_path, once))
    assert scenario.faults == (fault,)
    assert scenario.active_ms == 700
    assert scenario.one_way_us["west", "east"] == 3_000
    assert with_faults(once, [fault]) == once
    assert load_scenario(written(tmp_path, with_faults(once, []))).faults == ()


def test_only_the_faults_that_matter_are_left() -> None:
    scenario = Scenario.draw(1)
    faults = tuple(PlannedFault(at, "kill", 10, at) for at in range(40))
    runs = 0

    def run(candidate: Scenario) -> str | None:
        nonlocal runs
        runs += 1
        left = {fault.at_ms for fault in candidate.plan_faults()}
        if {7, 31} <= left:
            return "Promise: broken"
        return "OtherPromise: broken" if 7 in left else None

    reduced = shrink(replace(scenario, faults=faults), "Promise: broken, first", run)
    assert [fault.at_ms for fault in reduced.plan_faults()] == [7, 31]
    assert runs < 100


def test_a_failing_run_is_reduced_to_a_file_that_fails_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    show_what_is_only_appended(monkeypatch)
    path = tmp_path / "reduced.toml"
    runner = CliRunner()
    app = command.typer.Typer()
    app.command()(command.main)
    first = runner.invoke(app, ["--seed", "1", "--runs", "30", "--shrink", str(path)])
    assert first.exit_code == 1, first.output
    assert f"replay: {command_of(path)}" in first.output.splitlines()
    again = runner.invoke(app, ["--scenario", str(path), "--no-trace"])
    assert again.exit_code == 1, again.output
    assert len(load_scenario(path).plan_faults()) <= 3


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    runner = CliRunner()
    app = command.typer.Typer()
    app.command()(command.main)
    told = runner.invoke(app, ["--scenario", str(tmp_path / "none.toml")])
    assert told.exit_code == 2
    assert "No such file or directory" in told.output
