"""The page of read replicas is typed line by line, on two clusters; and on two in network
namespaces without a link between them.

Source: docs/operating/read-replicas.md; decision 0061."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.conftest import COMMAND, COMMAND_TIMEOUT_S, run, wait_until
from tests.integration.pages import commands
from tests.integration.ports import port_base

pytestmark = pytest.mark.integration

PAGE, TRY = "read-replicas.md", "Try it"
LINES = [f"flight {number}" for number in range(1_000)]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Where the commands are typed; both clusters are stopped at the end."""
    (tmp_path / "flights.txt").write_text("\n".join(LINES) + "\n")
    yield tmp_path
    for name in ("owner", "reader"):
        if (tmp_path / name).exists():
            run("dev", "stop", "--dir", str(tmp_path / name), check=False)


def typed(
    line: str, place: Path, addresses: dict[str, str], before: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Type one line; `before`: what a shell in a network namespace needs."""
    return subprocess.run(
        [*before, "bash", "-euo", "pipefail", "-c", line.replace("strandline", COMMAND, 1)],
        cwd=place, env={**os.environ, **addresses}, capture_output=True, text=True,
        timeout=COMMAND_TIMEOUT_S,
    )  # fmt: skip


def walk(place: Path, within: dict[str, tuple[str, ...]]) -> str:
    """Type the page; what the last command prints. `within`: {cluster: how a shell is begun}."""
    addresses: dict[str, str] = {}
    out = ""
    for line in [*commands(PAGE, TRY, 0), *commands(PAGE, TRY, 1)]:
        name = "owner" if "owner --" in line or "$OWNER" in line else "reader"
        if "dev start" in line:
            line += f" --port-base {port_base()} --json"

        def done(line: str = line, name: str = name) -> bool:
            nonlocal out
            result = typed(line, place, addresses, within[name])
            out = result.stdout
            is_early = "has no topic flights" in result.stderr or "no tiered" in result.stderr
            assert result.returncode == 0 or is_early, f"{line}: {result.stderr}"
            return result.returncode == 0

        wait_until(done, what=line)
        if "dev start" in line:
            addresses[name.upper()] = json.loads(out)["bootstrap"]
    last = commands(PAGE, TRY, 1)[-1]

    def is_complete() -> bool:
        nonlocal out
        out = typed(last, place, addresses, within["reader"]).stdout
        return len(out.splitlines()) == len(LINES)

    wait_until(is_complete, what="all records in the copy")
    return out


def test_the_commands_of_the_page_serve_the_copy(place: Path) -> None:
    out = walk(place, {"owner": (), "reader": ()})
    assert sorted(out.splitlines()) == sorted(LINES)


@pytest.fixture
def namespaces() -> Iterator[tuple[str, str]]:
    """Two network namespaces, each with its loopback and nothing else."""
    names = tuple(f"strandline-{os.getpid()}-{one}" for one in ("owner", "reader"))
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("network namespaces need the command ip, and root (2026-11-29)")
    made = []
    try:
        for name in names:
            done = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
            if done.returncode != 0:
                pytest.skip("this machine lets nobody make a network namespace (2026-11-29)")
            made.append(name)
            subprocess.run(
                ["ip", "netns", "exec", name, "ip", "link", "set", "lo", "up"], check=True
            )
        yield names[0], names[1]
    finally:
        for name in made:
            subprocess.run(["ip", "netns", "delete", name], check=True)


def test_the_two_clusters_exchange_no_packet(place: Path, namespaces: tuple[str, str]) -> None:
    """There is no way between them: the copy is complete all the same."""
    owner, reader = (("ip", "netns", "exec", one) for one in namespaces)
    out = walk(place, {"owner": owner, "reader": reader})
    assert sorted(out.splitlines()) == sorted(LINES)
    links = subprocess.run(
        [*reader, "ip", "-json", "link"], check=True, capture_output=True, text=True
    )
    assert [one["ifname"] for one in json.loads(links.stdout)] == ["lo"]
    for name, within in (("owner", owner), ("reader", reader)):
        typed(f"strandline dev stop --dir {name}", place, {}, within)
