"""`strandline pipeline plan`: a table, JSON and a report; bad files refused before any work."""

import json
from pathlib import Path

import pytest

from strandline.pipeline.commands import plan as command
from strandline.pipeline.commands.app import main

CLUSTER = """
brokers:
  - {count: 2, region: east, zone: a}
  - {count: 2, region: west, zone: a}
  - {count: 2, region: south, zone: a}
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "assumptions.toml").write_text("[losses.region]\nper_year = 2.0\nhours = 5\n")
    return tmp_path


def run(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.argv", ["strandline pipeline", "plan", *words])
    monkeypatch.chdir(files)
    with pytest.raises(SystemExit) as ended:
        main()
        raise SystemExit(0)
    told = capsys.readouterr()
    return int(ended.value.code or 0), told.out, told.err


USUAL = (
    "cluster.yaml", "--policy", "1+1+1", "--policy", "two=2+1", "--events", "1", "-p", "4",
    "--processes", "1", "--assumptions", "assumptions.toml",
)  # fmt: skip


def test_people_get_a_table_and_programs_the_same_as_json(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(files, monkeypatch, capsys, *USUAL)
    assert code == 0
    assert "losses in 20 years of 6 brokers" in out and "1+1+1" in out and "two" in out
    assert "1+1+1 loses fewest hours of writes" in out
    code, out, _ = run(files, monkeypatch, capsys, *USUAL, "--json")
    told = json.loads(out)
    assert code == 0 and told["trials"] == 20 and told["brokers"] == 6
    three, two = told["outlooks"]
    assert three["writable"]["value"] > two["writable"]["value"]
    assert two["fewer_stopped_h"]["low"] > 0
    assert two["name"] == "two" and two["voters"] == 3
    assert {one["loss"] for one in three["single_losses"]} >= {"1 region", "1 broker"}


def test_the_report_is_one_page_and_the_plots_are_files(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--report", "r.html", "--plots", ".", "--policy", "<b>=1+1+1,min-insync=2")
    code, out, _ = run(files, monkeypatch, capsys, *USUAL, *words)
    assert [one for one in out.splitlines() if one.startswith("wrote ")] == [
        "wrote r.html", "wrote availability.png", "wrote cost-against-survival.png",
        "wrote losses.png",
    ]  # fmt: skip
    page = (files / "r.html").read_text()
    assert code == 0 and page.count("data:image/png;base64,") == 3
    assert "&lt;b&gt;" in page and "<b>" not in page
    for name in ("availability", "cost-against-survival", "losses"):
        assert (files / f"{name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "no cluster: name a CLUSTER_FILE, or --bootstrap"),
        (("missing.yaml", "--policy", "rf3"), "missing.yaml: cannot read"),
        (("bad.yaml", "--policy", "rf3"), "bad.yaml"),
        (("cluster.yaml",), "give --policy at least once"),
        (("cluster.yaml", "--policy", "7+1"), "--policy 7+1: cannot place 8 voters"),
        (("cluster.yaml", "--policy", "rf3", "--assumptions", "bad.toml"), "bad.toml: not TOML"),
        (("cluster.yaml", "--policy", "rf3", "--assumptions", "north.toml"), "no region 'north'"),
        (("cluster.yaml", "--policy", "rf3", "--assumptions", "ctl.toml"), "no broker 99"),
        (("cluster.yaml", "--policy", "rf3", "--report", "no/r.html"), "cannot write the report"),
        (("plain.yaml", "--policy", "rf1"), "no broker of the cluster says its region"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_and_nothing_is_left(
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    says: str,
) -> None:
    (files / "bad.yaml").write_text("brokers: [{regoin: a}]")
    (files / "plain.yaml").write_text("brokers: [{count: 2}]")
    (files / "bad.toml").write_text("losses = ")
    (files / "north.toml").write_text("[traffic]\nproducers = {north = 1}")
    (files / "ctl.toml").write_text("controllers = [99]")
    before = {one.name for one in files.iterdir()}
    monkeypatch.delenv("STRANDLINE_BOOTSTRAP", raising=False)
    monkeypatch.setattr(command, "_here", None)  # Refused before any trial.
    code, out, err = run(files, monkeypatch, capsys, *words)
    assert (code, out) == (1, "") and says in err
    first, *more = err.splitlines()
    assert first.startswith("error: ") and says in first
    assert not more or "cannot place" in says, "only a policy has reasons, a line each"
    assert {one.name for one in files.iterdir()} == before
