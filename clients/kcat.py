"""kcat: a shell script around the command."""

import subprocess
from functools import cache

from clients.cells import program_cells
from clients.client import Client
from clients.toolbox import PROGRAMS

COUNT = 20
"""A process for each record: the headers of kcat are those of its command line."""


@cache
def _version() -> str:
    """As installed; empty without it."""
    try:
        said = subprocess.run(["kcat", "-V"], capture_output=True, text=True).stdout
    except FileNotFoundError:
        return ""
    return next((line.split()[1] for line in said.splitlines() if "Version" in line), "")


CELLS = program_cells(lambda: [str(PROGRAMS / "kcat.sh")], is_librdkafka=True, count=COUNT)
KCAT = Client(
    name="kcat",
    version=_version(),
    tried="every codec, idempotent, assignment, a group of two",
    cells={name: cell for name, cell in CELLS.items() if name != "admin"},
    needs={"kcat": "apt-get install kcat"},
    not_tried={"admin": "kcat neither makes topics nor changes their configuration"},
)
