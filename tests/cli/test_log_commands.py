"""`strandline log` on the real files of a stopped broker: what is shown, found, refused.

Source: docs/reference/cli.md."""

import json
import shutil
from pathlib import Path

import pytest
from tests.cli.command_line import Run, run
from tests.storage.storage_world import ManualClock

from strandline.model.ids import BrokerId, Epoch, GroupId
from strandline.raft.group.configuration import Configuration
from strandline.records.batch import read_header
from strandline.records.marker import build_epoch_marker
from strandline.records.record import Record, build_batch
from strandline.storage.config import LogConfig
from strandline.storage.disk.real_disk import RealDisk
from strandline.storage.identity import DataDirectory
from strandline.storage.log.log import Log
from strandline.storage.state_journal import GroupState, StateJournal

__all__ = ["run"]

LOG_NAME = "flights-0.7"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data directory of broker 1, which was stopped: one log in three segments."""
    path = tmp_path / "data"
    DataDirectory.acquire(str(path), broker_id=BrokerId(1)).release()
    disk = RealDisk(lambda callback: callback())
    journal = StateJournal.open(disk, f"{path}/state.journal", clock=ManualClock())
    voters = tuple(BrokerId(n) for n in (1, 2, 3))
    state = GroupState(Epoch(1), BrokerId(2), Configuration(voters, min_insync=2))
    journal.put(GroupId(7), state, lambda error: None)
    log = Log.open(
        disk,
        f"{path}/logs/{LOG_NAME}",
        config=LogConfig(segment_bytes=500, preallocate=False),
        clock=ManualClock(),
    )
    for at in range(10):
        records = [Record(n, 1_000_000 + 10 * at + n, b"k", b"v" * 40) for n in range(2)]
        batch = build_batch(records, base_offset=log.end_offset, epoch=1, codec=at % 2)
        if at == 0:
            batch = bytearray(build_epoch_marker(log.end_offset, Epoch(1), 1_000_000))
        header = read_header(batch)
        assert header is not None
        log.append([batch], [header])
    log.close()
    disk.close()
    journal.close()
    return path


def tree(root: Path) -> dict[str, tuple[int, bytes]]:
    """{path: (when it was changed, its bytes)} of all files."""
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes())
        for path in root.rglob("*")
        if path.is_file()
    }


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def segments(data: Path) -> list[Path]:
    return sorted((data / "logs" / LOG_NAME).glob("*.log"))


def test_inspect_shows_segments_epochs_and_the_state(run: Run, data: Path) -> None:
    before = tree(data)
    code, out, err = run("log", "inspect", str(data), "--json")
    assert (code, err) == (0, "")
    (log,) = json.loads(out)["logs"]
    assert (log["log"], log["group"]) == ("flights-0", 7)
    assert (log["start_offset"], log["end_offset"], log["last_index"]) == (0, 18, 18)
    assert log["epochs"] == [{"epoch": 1, "offset": 0}]
    assert (log["flushed_index"], log["producers"]) == (18, 0)
    assert (log["state"]["epoch"], log["state"]["vote"]) == (1, 2)
    assert log["state"]["base"]["voters"] == [1, 2, 3]
    assert len(log["segments"]) == len(segments(data)) > 2
    assert [row["base_offset"] for row in log["segments"]] == sorted(
        int(path.name.split("-")[0]) for path in segments(data)
    )
    assert log["segments"][0]["first_timestamp"] == 1_000_010
    assert log["segments"][-1]["last_timestamp"] == 1_000_091
    assert sum(row["bytes"] for row in log["segments"]) == sum(
        path.stat().st_size for path in segments(data)
    )
    assert tree(data) == before
    code, out, err = run("log", "inspect", str(data))
    assert (code, err) == (0, "")
    assert "voters 1,2,3 min.insync 2" in out
    assert out.count("1970-01-01T00:16:40") >= 3


def test_inspect_lists_batches_and_whose_checksum_is_wrong(run: Run, data: Path) -> None:
    flip(segments(data)[1], 100)
    code, out, _ = run("log", "inspect", str(data), "--batches", "--json")
    assert code == 0
    (log,) = json.loads(out)["logs"]
    batches = [batch for row in log["segments"] for batch in row["batches"]]
    assert [batch["offset"] for batch in batches] == [0, *range(0, 18, 2)]
    assert [batch["marker"] for batch in batches] == ["epoch"] + [""] * 9
    assert {batch["codec"] for batch in batches} == {"none", "gzip"}
    wrong = [batch["offset"] for batch in batches if not batch["crc_ok"]]
    assert wrong == [log["segments"][1]["base_offset"]]
    _, out, _ = run("log", "inspect", str(data), "--batches")
    assert out.count("WRONG") == 1


def test_verify_ends_with_0_for_a_sound_directory_and_1_for_a_damaged_one(
    run: Run, data: Path
) -> None:
    code, out, err = run("log", "verify", str(data))
    assert (code, err) == (0, "")
    assert out.startswith("1 logs, 10 batches, ")
    flip(segments(data)[1], 100)
    before = tree(data)
    code, out, err = run("log", "verify", str(data), "--json")
    assert code == 1
    assert err.startswith("error: ") and err.count("\n") == 1
    value = json.loads(out)
    (found,) = value["findings"]
    assert not value["ok"]
    assert (found["kind"], found["file"]) == ("damage", str(segments(data)[1]))
    assert (found["position"], found["offset"]) == (0, int(segments(data)[1].name.split("-")[0]))
    code, out, _ = run("log", "verify", str(data))
    assert code == 1
    assert out.startswith(f"damage: {segments(data)[1]} at byte 0, offsets ")
    assert tree(data) == before


def test_one_logs_directory_will_do_and_a_copy_of_it_too(
    run: Run, data: Path, tmp_path: Path
) -> None:
    log = data / "logs" / LOG_NAME
    code, out, _ = run("log", "inspect", str(log), "--json")
    assert code == 0
    assert json.loads(out)["logs"][0]["state"]["epoch"] == 1
    copy = tmp_path / "copy" / "of" / "it"
    copy.parent.mkdir(parents=True)
    shutil.copytree(log, copy)
    code, out, _ = run("log", "inspect", str(copy), "--json")
    assert code == 0
    (found,) = json.loads(out)["logs"]
    assert (found["end_offset"], found["state"], found["group"]) == (18, None, -1)
    assert run("log", "verify", str(copy))[0] == 0


def test_a_journal_that_forgot_is_damage(run: Run, data: Path) -> None:
    (data / "state.journal").write_bytes(bytes(4_096))
    code, out, _ = run("log", "verify", str(data))
    assert code == 1
    assert "state.journal at byte 0: nothing of group 7" in out


def test_a_running_brokers_directory_is_refused_in_one_line(run: Run, data: Path) -> None:
    held = DataDirectory.acquire(str(data), broker_id=BrokerId(1))
    for command in ("inspect", "verify"):
        for target in (data, data / "logs" / LOG_NAME):
            code, out, err = run("log", command, str(target))
            assert (code, out) == (1, "")
            assert "in use by another process; stop that one first" in err
            assert err.count("\n") == 1
    held.release()
    assert run("log", "verify", str(data))[0] == 0


@pytest.mark.parametrize("name", ["absent", "empty"])
def test_a_directory_that_is_none_is_refused_in_one_line(
    run: Run, tmp_path: Path, name: str
) -> None:
    (tmp_path / "empty").mkdir()
    for command in ("inspect", "verify"):
        code, _, err = run("log", command, str(tmp_path / name))
        assert code == 1
        assert err.startswith("error: ") and err.count("\n") == 1
