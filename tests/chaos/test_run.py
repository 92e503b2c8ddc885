"""A short run from end to end, and one that is interrupted: nothing is left behind."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        os.geteuid() != 0, reason="only root may make network namespaces (2026-11-22)"
    ),
]

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 280


def start(tmp_path: Path, *options: str, seed: int, minutes: float) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "chaos.run"),
            *("--seed", str(seed), "--minutes", str(minutes), *options),
        ],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path), "KEEP": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def leftovers(process: int, tmp_path: Path) -> list[str]:
    """What is there still of a run that has ended."""
    namespaces = subprocess.run(["ip", "netns"], capture_output=True, text=True).stdout
    found = re.findall(rf"chaos-{process}-\S+", namespaces)
    found += re.findall(rf"{tmp_path}\S+", Path("/proc/mounts").read_text())
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes()
        except OSError:
            continue  # Gone meanwhile.
        if bytes(tmp_path) in line or b"chaos-%d-" % process in line:
            found.append(line.decode())
    return found + [path.name for path in tmp_path.iterdir()]


def test_a_short_run_keeps_every_promise_and_leaves_nothing(tmp_path: Path) -> None:
    run = start(tmp_path, seed=1, minutes=0.3)
    said, _ = run.communicate(timeout=TIMEOUT_S)
    assert run.returncode == 0, said
    assert "every promise held" in said
    assert "#1       6.8 s" in said
    assert re.search(r"began to lead a partition [1-9]\d* times", said)
    assert leftovers(run.pid, tmp_path) == []


def test_a_short_secure_run_lets_in_no_stranger(tmp_path: Path) -> None:
    run = start(tmp_path, "--secure", seed=3, minutes=0.4)
    said, _ = run.communicate(timeout=TIMEOUT_S)
    assert run.returncode == 0, said
    assert "every promise held" in said
    for what in ("eastern", "nameless", "peer", "plain", "stranger"):
        assert re.search(rf"probes refused: .*{what} [1-9]", said), said
    assert leftovers(run.pid, tmp_path) == []


def test_a_short_run_of_two_releases_keeps_every_promise(tmp_path: Path) -> None:
    earlier = tmp_path / "earlier"
    earlier.mkdir()
    shutil.copytree(ROOT / "src", earlier / "src")
    run = start(tmp_path, "--earlier", str(earlier), seed=3, minutes=0.3)
    said, _ = run.communicate(timeout=TIMEOUT_S)
    assert run.returncode == 0, said
    assert "every promise held" in said
    assert re.search(rf"brokers \d and \d run the release of {earlier}", said)
    shutil.rmtree(earlier)
    assert leftovers(run.pid, tmp_path) == []


def test_a_short_run_of_machines_keeps_every_promise_and_leaves_nothing(tmp_path: Path) -> None:
    run = start(tmp_path, "--cores", "2", seed=3, minutes=0.5)
    said, _ = run.communicate(timeout=TIMEOUT_S)
    assert run.returncode == 0, said
    assert "every promise held" in said
    for what in ("kill one", "power-off"):
        assert re.search(rf"│ {what} +│ +[1-9]", said), said
    assert leftovers(run.pid, tmp_path) == []


def test_an_interrupted_run_leaves_nothing(tmp_path: Path) -> None:
    run = start(tmp_path, seed=1, minutes=0.5)
    assert run.stdout is not None
    for line in run.stdout:
        if re.match(r"#2 ", line):
            break
    run.send_signal(signal.SIGINT)
    said, _ = run.communicate(timeout=TIMEOUT_S)
    assert run.returncode == 130, said
    assert leftovers(run.pid, tmp_path) == []
