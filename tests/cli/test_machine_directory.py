"""The data directory of a machine: no broker is left out that has the only copy of a record.

Source: docs/operating/cores.md; docs/decisions/0071-cores.md."""

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from stat import ST_DEV

import pytest

from strandline.base.errors import OperatorError
from strandline.cli.machine.directory import (
    MachineDirectory,
    refuse_machine,
    with_disk_sharers,
)
from strandline.config.cores import derive_brokers
from strandline.config.load import load_broker_config
from strandline.model.ids import BrokerId
from strandline.storage.identity import DataDirectory


def broker_in(path: Path, number: int, *, logs: Iterable[str] = ()) -> None:
    """A data directory that a broker has used."""
    DataDirectory.acquire(str(path), broker_id=BrokerId(number)).release()
    for name in ("@controller.0", *logs):
        (path / "logs" / name).mkdir(parents=True)


def acquire(path: Path, *brokers: int, seeds: Iterable[int] = ()) -> MachineDirectory:
    return MachineDirectory.acquire(str(path), brokers=brokers, seeds=[*seeds])


def test_only_its_user_may_look_into_a_directory_that_is_made_for_a_machine(
    tmp_path: Path,
) -> None:
    root = tmp_path / "deep" / "data"
    acquire(root, 1, 2).release()
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    assert stat.S_IMODE((root / "machine.lock").stat().st_mode) == 0o600


def test_a_machine_has_one_supervisor(tmp_path: Path) -> None:
    first = acquire(tmp_path, 1)
    with pytest.raises(OperatorError, match="is in use by another supervisor"):
        acquire(tmp_path, 1)
    first.release()
    acquire(tmp_path, 1).release()


def test_more_brokers_may_be_added_and_empty_ones_left_out(tmp_path: Path) -> None:
    broker_in(tmp_path / "broker-1", 1, logs=["t-0.7"])
    broker_in(tmp_path / "broker-2", 2)
    (tmp_path / "broker-x").mkdir()
    (tmp_path / "broker-9").mkdir()
    acquire(tmp_path, 1, 2, 3).release()
    fewer = acquire(tmp_path, 1)
    assert [(one.broker, one.replicas) for one in fewer.left_out] == [(2, 0)]
    fewer.release()


def test_brokers_with_replicas_are_not_left_out(tmp_path: Path) -> None:
    broker_in(tmp_path / "broker-1", 1)
    broker_in(tmp_path / "broker-2", 2, logs=["t-0.7", "t-1.8"])
    with pytest.raises(OperatorError) as refused:
        acquire(tmp_path, 1)
    told = str(refused.value)
    assert told.startswith(
        f"--cores 1 leaves out broker 2, and {tmp_path}/broker-2 has 2 replicas: "
    )
    assert "`strandline broker decommission 2`" in told
    acquire(tmp_path, 1, 2).release()  # The refusal holds no lock.


def test_a_changed_id_is_told_because_a_larger_number_cannot_help(tmp_path: Path) -> None:
    broker_in(tmp_path / "broker-400", 400, logs=["t-0.7"])
    broker_in(tmp_path / "broker-401", 401)
    for first, seeds in ((500, ()), (500, (400,)), (401, ()), (300, ())):
        with pytest.raises(OperatorError) as refused:
            acquire(tmp_path, first, first + 1, seeds=seeds)
        told = str(refused.value)
        assert told.startswith(
            f"[broker] id = {first}, but data_directory {tmp_path} has brokers 400,401: "
            "set id = 400 again"
        )
        assert "--cores" not in told


def test_an_id_below_the_directory_s_brokers_may_have_been_changed(tmp_path: Path) -> None:
    broker_in(tmp_path / "broker-400", 400)
    broker_in(tmp_path / "broker-401", 401, logs=["t-0.7"])
    with pytest.raises(
        OperatorError, match=r"leaves out broker 401.* if .* id was 400 before, not"
    ):
        acquire(tmp_path, 399, 400)
    acquire(tmp_path, 399, 400, 401).release()


def test_a_broker_that_the_seeds_name_is_not_left_out(tmp_path: Path) -> None:
    broker_in(tmp_path / "broker-2", 2)
    broker_in(tmp_path / "broker-1", 1)
    with pytest.raises(OperatorError, match=r"broker 2, which \[cluster\] seeds names"):
        acquire(tmp_path, 1, seeds=[2, 7])
    acquire(tmp_path, 1, seeds=[7]).release()


def test_a_single_broker_s_directory_becomes_a_machine_s_by_the_command_that_is_told(
    tmp_path: Path,
) -> None:
    root = tmp_path / "data"
    broker_in(root, 7, logs=["t-0.7"])
    with pytest.raises(OperatorError) as refused:
        acquire(root, 7, 8)
    told = str(refused.value)
    assert "keep id = 7" in told
    assert os.system(told.partition("(")[2].partition(")")[0].replace(";", " &&")) == 0
    acquire(root, 7, 8).release()
    assert (root / "broker-7/logs/t-0.7").is_dir()
    assert stat.S_IMODE(root.stat().st_mode) == 0o700


def test_a_broker_alone_does_not_begin_anew_in_a_machine_s_directory(tmp_path: Path) -> None:
    refuse_machine(str(tmp_path / "none"))
    refuse_machine(str(tmp_path))
    broker_in(tmp_path / "broker-1", 1)
    with pytest.raises(OperatorError, match="has the brokers of `serve --cores`"):
        refuse_machine(str(tmp_path))
    refuse_machine(str(tmp_path / "broker-1"))


def test_brokers_count_those_on_their_disk_unless_the_file_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"[broker]\nid = 1\ndata_directory = '{tmp_path}'\n[cluster]\nseeds = ['9@h:1']\n"
    machine = derive_brokers(load_broker_config(text, file="f"), 3)

    def counts() -> list[int]:
        return [with_disk_sharers(one, machine).storage.disk_sharers for one in machine]

    assert counts() == [3, 3, 3]
    (tmp_path / "broker-2").mkdir()
    stat = os.stat

    def mounted(path: str, **more: bool) -> os.stat_result:
        found = list(stat(path, **more))
        found[ST_DEV] += path == str(tmp_path / "broker-2")
        return os.stat_result(found)

    monkeypatch.setattr(os, "stat", mounted)
    assert counts() == [2, 1, 2]
    said = load_broker_config(text + "[storage]\ndisk_sharers = 8\n", file="f")
    machine = derive_brokers(said, 3)
    assert counts() == [8, 8, 8]
