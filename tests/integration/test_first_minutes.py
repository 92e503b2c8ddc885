"""The README's own commands, one after the other, as a stranger types them: a cluster over three
regions loses one of them, and goes on."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.integration.conftest import COMMAND, COMMAND_TIMEOUT_S
from tests.integration.ports import port_base

pytestmark = pytest.mark.integration

README = Path(__file__).parents[2] / "README.md"
TYPED = ".venv/bin/strandline"


def commands() -> list[str]:
    """The block of the section about a cluster of one's own, without the set-up."""
    section = README.read_text().partition("## A cluster of your own")[2]
    block = section.partition("```\n")[2].partition("```")[0]
    lines = block.splitlines()
    assert lines[0] == "make setup"
    assert len(lines) > 5
    return lines[1:]


def test_the_commands_of_the_readme_work_as_they_are_typed(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if "STRANDLINE" not in name}
    said: dict[str, str] = {}
    try:
        for line in commands():
            assert TYPED in line
            typed = line.replace(TYPED, COMMAND)
            if "dev start" in line:
                typed += f" --port-base {port_base()}"
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", typed],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=COMMAND_TIMEOUT_S,
            )
            assert done.returncode == 0, f"{line}: {done.stdout}\n{done.stderr}"
            said[line.partition(TYPED)[2].strip()] = done.stdout
    finally:
        subprocess.run([COMMAND, "dev", "stop"], cwd=tmp_path, env=environment, check=False)
    consumed = said["consume hello --exit-at-end"].splitlines()
    assert sorted(line.split()[-1] for line in consumed if line.strip()) == ["here", "hi"]
    # Three partitions on five replicas, of which east's two are gone: each has a leader elsewhere.
    described = said["topic describe hello"]
    assert len(re.findall(r"^\s*[012]\s", described, re.MULTILINE)) == 3, described
