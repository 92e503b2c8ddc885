"""Commands as they stand on the pages of the documentation, typed into a shell."""

import os
import subprocess
from pathlib import Path

from tests.integration.conftest import COMMAND, COMMAND_TIMEOUT_S, DevCluster

PAGES = Path(__file__).parents[2] / "docs/operating"


def commands(page: str, heading: str, block: int = 0) -> list[str]:
    """The commands of a block of a section of a page."""
    lines = section(page, heading).split("```")[2 * block + 1].strip().splitlines()
    assert lines and all(line.startswith("strandline ") for line in lines)
    return lines


def shown(page: str, heading: str) -> list[str]:
    """What the first block of a section, which is no command, says that a command prints."""
    return section(page, heading).partition("```text\n")[2].partition("\n```")[0].splitlines()


def section(page: str, heading: str) -> str:
    """What stands under a heading."""
    found = (PAGES / page).read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    assert found, heading
    return found


def security_section(heading: str) -> str:
    """What stands under a heading of one of the pages about security."""
    title = f"\n## {heading}\n"
    pages = (one for one in PAGES.glob("security*.md") if title in one.read_text())
    return section(next(pages, PAGES / "security.md").name, heading)


def type_in(cluster: DevCluster, lines: list[str], *, directory: Path | None = None) -> str:
    """Type them one after the other; returns what they print."""
    told = ""
    for line in lines:
        done = try_line(cluster, line, directory=directory)
        assert done.returncode == 0, f"{line}: {done.stdout}\n{done.stderr}"
        told += done.stdout
    return told


def try_line(
    cluster: DevCluster, line: str, *, directory: Path | None = None, typed: str = ""
) -> subprocess.CompletedProcess[str]:
    """Type one, which may be refused; `typed`: what is typed where it asks."""
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", line.replace("strandline", COMMAND, 1)],
        cwd=directory, env={**os.environ, "STRANDLINE_BOOTSTRAP": cluster.bootstrap},
        input=typed, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S,
    )  # fmt: skip
