"""A job's turn of upkeep: its table and its dead letters, and never its end.

Source: decisions/0055."""

from pathlib import Path

from strandline.pipeline.lake.options import LakeOptions
from strandline.pipeline.lake.run import Told, Upkeep, keep_up


def turn(tmp_path: Path, *tables: str, fails: bool = False) -> tuple[list[str], list[str]]:
    """Runs a turn where these tables are there; (tables that were kept, notices)."""
    for name in tables:
        (tmp_path / name / "_delta_log").mkdir(parents=True)
        (tmp_path / name / "_delta_log" / f"{0:020d}.json").write_text("{}")
    kept: list[str] = []
    notices: list[str] = []

    def run(spark: object, table: str) -> str:
        kept.append(Path(table).name)
        if fails:
            raise OSError("No space left on device")
        return f"{kept[-1]}: done"

    options = LakeOptions(
        bootstrap="127.0.0.1:9092",
        topics=("fruit",),
        table=str(tmp_path / "lake"),
        dead_letters=str(tmp_path / "dead"),
    )
    told = Told(batch=lambda *_: None, notice=notices.append, status=lambda _: None)
    keep_up(None, options, Upkeep(1, run), told)
    return kept, notices


def test_dead_letters_have_their_turn_once_they_are_there(tmp_path: Path) -> None:
    assert turn(tmp_path / "one", "lake") == (["lake"], ["lake: done"])
    both = ["lake", "dead"]
    assert turn(tmp_path / "two", *both) == (both, ["lake: done", "dead: done"])


def test_a_round_that_fails_is_a_notice(tmp_path: Path) -> None:
    kept, notices = turn(tmp_path, "lake", "dead", fails=True)
    assert kept == ["lake", "dead"]
    assert [each.partition(": ")[2][:31] for each in notices] == [
        "upkeep failed: the disk is full"
    ] * 2
